"""A frontier that an earlier version made keeps no rules: what it knows is judged once by those in force."""

from __future__ import annotations

from pathlib import Path

from skitter.frontier.rows import Note
from skitter.settings import CrawlSettings, FrontierSettings, Settings
from tests.frontier_kit import Driver, discovered
from tests.frontier_stores import MemoryDisk

A = "http://a.test"


def test_a_frontier_without_rules_is_judged_whole_by_those_in_force(tmp_path: Path) -> None:
    disk = MemoryDisk(tmp_path / "frontier")
    driver = Driver(disk, Settings(crawl=CrawlSettings(exclude=("/old/",))))
    driver.open_host(A + "/")
    driver.admit(discovered(A + "/old/1"), discovered(A + "/new/1"))
    driver.die()
    store = disk.open(FrontierSettings())
    changes = store.changes()
    changes.delete("meta", Note.RULES.encode())
    store.commit(changes)
    store.close()

    driver.open(Settings(crawl=CrawlSettings(exclude=("/new/",))))
    assert driver.promote() == 1
    driver.clock.advance(2)
    assert [task.url for task in driver.lease_one().tasks] == [A + "/", A + "/old/1"]
    assert driver.stats().refusals == {"excluded": 1}
    driver.reopen()
    assert driver.stats().rejudging == ()
    driver.close()
