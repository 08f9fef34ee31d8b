"""A crawl that can ask nobody says so once for each wait that differs, not for every breath of a slow host."""

from __future__ import annotations

import io
from pathlib import Path

from skitter.console.display.display import PlainDisplay
from skitter.console.run.wait_notes import WaitNotes
from skitter.log import Log
from tests.frontier_fixtures import driver as driver
from tests.frontier_fixtures import start as start
from tests.frontier_kit import Driver, failed, seed


def test_a_wait_is_told_once_and_again_when_it_is_another_or_lasts_long(
    driver: Driver, tmp_path: Path
) -> None:
    stream = io.StringIO()
    log = Log(tmp_path / "log", driver.clock)
    notes = WaitNotes(driver.frontier, PlainDisplay(stream), log)

    def told() -> int:
        now, until = driver.clock.now(), driver.stats().next_at
        driver.ask(notes.look(until, now))
        return stream.getvalue().count("nothing to do until")

    driver.admit(seed("http://a.test/"))
    assert told() == 0  # it may be asked now
    driver.answer(driver.lease_one(), failed())
    assert told() == 1
    assert told() == 1
    assert "Waiting for http://a.test (connect_refused: as the test says)" in stream.getvalue()
    driver.clock.advance(60)
    driver.answer(driver.lease_one(), failed())
    assert told() == 1  # the same host again, a minute later
    driver.clock.advance(3600)
    driver.answer(driver.lease_one(), failed())
    assert told() == 2
    driver.admit(seed("http://b.test/"))
    driver.answer(driver.lease_one(), failed())
    assert told() == 3
    log.close()
    assert (tmp_path / "log").read_text().count('"crawl_waits"') == 3
