"""Keys known for certain outlive a restart, and are never believed of a store that may not know them: what is
called known there is not admitted, so one such key would be a URL lost."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from pathlib import Path

import pytest

from skitter.frontier.engine.frontier import EngineFrontier
from skitter.frontier.opening import open_rocks_frontier
from skitter.frontier.stores.rocks import RocksStore
from skitter.model import Verdict, VerdictKind
from skitter.settings import CrawlSettings, FrontierSettings, Settings
from skitter.testing.clock import FakeClock
from tests.frontier_kit import discovered
from tests.keys import key_of

SETTINGS = Settings(crawl=CrawlSettings(scope="any"))
KNOWN = "known.keys"


def url(number: int) -> str:
    return f"http://a.test/{number}"


def opened(folder: Path, settings: Settings = SETTINGS) -> EngineFrontier:
    return open_rocks_frontier(folder, settings, FakeClock())


def admit(frontier: EngineFrontier, *numbers: int) -> list[Verdict]:
    return asyncio.run(frontier.admit([discovered(url(number), priority=None) for number in numbers]))


def crawled(folder: Path, *numbers: int) -> None:
    """So many more URLs, and a clean close."""
    frontier = opened(folder)
    admit(frontier, *numbers)
    asyncio.run(frontier.close())


def is_certain(frontier: EngineFrontier, number: int) -> bool:
    return bool(frontier._cache.known_keys.has(key_of(url(number))))


def killed(frontier: EngineFrontier) -> None:
    """Nothing is kept but what the store has."""
    frontier._cache.store.close()


class Reads:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.urls = 0
        self._get = RocksStore.get
        monkeypatch.setattr(RocksStore, "get", lambda store, table, key: self.get(store, table, key))

    def get(self, store: RocksStore, table: str, key: bytes) -> bytes | None:
        self.urls += table == "urls"
        return self._get(store, table, key)


def test_after_a_clean_close_known_links_are_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawled(tmp_path, *range(500))
    frontier, reads = opened(tmp_path), Reads(monkeypatch)
    verdicts = admit(frontier, *range(500))
    killed(frontier)
    assert {verdict.kind for verdict in verdicts} == {VerdictKind.KNOWN}
    assert reads.urls == 0


def test_after_a_death_they_are_read_until_they_are_learnt_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawled(tmp_path, *range(500))
    killed(opened(tmp_path))
    frontier = opened(tmp_path)
    assert not is_certain(frontier, 7)
    asyncio.run(frontier.promote(0.0))
    reads = Reads(monkeypatch)
    assert {verdict.kind for verdict in admit(frontier, *range(500))} == {VerdictKind.KNOWN}
    killed(frontier)
    assert reads.urls == 0


def test_a_table_is_believed_by_the_store_that_it_was_saved_with_and_by_no_other(tmp_path: Path) -> None:
    """A power loss or a backup may take the store back to where it was."""
    crawl, earlier = tmp_path / "crawl", tmp_path / "earlier"
    crawled(crawl, 1)
    shutil.copytree(crawl, earlier)
    crawled(crawl, 2)
    shutil.copy(crawl / KNOWN, earlier / KNOWN)
    frontier = opened(earlier)
    assert not is_certain(frontier, 2)
    assert admit(frontier, 1, 2) == [Verdict(VerdictKind.KNOWN), Verdict(VerdictKind.ADDED)]
    killed(frontier)


def test_what_was_let_in_since_a_close_is_not_claimed_when_it_is_lost(tmp_path: Path) -> None:
    """The crawl goes on, and dies with what it let in: the table still lies there, as it was saved."""
    crawl, lost = tmp_path / "crawl", tmp_path / "lost"
    crawled(crawl, 1)
    shutil.copytree(crawl, lost)
    frontier = opened(crawl)
    admit(frontier, 2)
    killed(frontier)
    shutil.copy(crawl / KNOWN, lost / KNOWN)
    frontier = opened(lost)
    assert is_certain(frontier, 1)
    assert not is_certain(frontier, 2)
    killed(frontier)


@pytest.mark.parametrize("damage", [b"", b"\0" * 17, None])
def test_a_file_that_is_damaged_or_gone_costs_reads_and_nothing_else(
    tmp_path: Path, damage: bytes | None
) -> None:
    crawled(tmp_path, 1)
    if damage is None:
        (tmp_path / KNOWN).unlink()
    else:
        (tmp_path / KNOWN).write_bytes(damage)
    frontier = opened(tmp_path)
    assert not is_certain(frontier, 1)
    assert admit(frontier, 1, 2) == [Verdict(VerdictKind.KNOWN), Verdict(VerdictKind.ADDED)]
    killed(frontier)


def test_a_table_that_has_no_room_any_more_is_left_alone(tmp_path: Path) -> None:
    """Who gives the frontier less memory than before has less."""
    crawled(tmp_path, 1)
    with (tmp_path / KNOWN).open("ab") as file:
        file.write(bytes(64 * 5_000_000))
    frontier = opened(tmp_path, Settings(crawl=SETTINGS.crawl, frontier=FrontierSettings(memory=64_000_000)))
    assert not is_certain(frontier, 1)
    killed(frontier)


def test_a_disk_without_room_keeps_nothing_of_what_did_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the crawl is closed all the same."""
    crawled(tmp_path, 1)
    frontier = opened(tmp_path)
    admit(frontier, 2)
    monkeypatch.setattr(os, "fsync", full)
    asyncio.run(frontier.close())
    assert [*tmp_path.glob("*.new")] == []
    frontier = opened(tmp_path)
    assert admit(frontier, 1, 2) == [Verdict(VerdictKind.KNOWN)] * 2
    killed(frontier)


def full(_descriptor: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")
