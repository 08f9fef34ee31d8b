"""The worker's loop does not go on behind a fault of ours, nor for ever behind a fault of the web's."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from skitter.committer.work_source import Delivery
from skitter.errors import ArchiveFailed
from skitter.folder import CrawlFolder
from skitter.frontier.base import Settlement, Stats
from skitter.model import Host, HostLease, TaskKind, Token
from skitter.seeds import read_seeds
from skitter.settings import (
    CrawlSettings,
    FetchSettings,
    FrontierSettings,
    PolitenessSettings,
    RetrySettings,
    Settings,
    TrapSettings,
)
from skitter.telemetry import Ended
from skitter.wiring import Crawl, open_crawl
from tests.keys import KEYS
from tests.raw_server import RawServer, page, sends, serving


def test_a_disk_that_cannot_be_synced_stops_the_crawl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    async def crawl(url: str) -> None:
        settings = Settings(
            crawl=CrawlSettings(linger=60.0),
            fetch=FetchSettings(allow_private=True),
            frontier=FrontierSettings(sync_interval=0.0),
            retry=RetrySettings(backoff=(30.0,)),
        )
        async with open_crawl(CrawlFolder(tmp_path), settings) as parts:
            await parts.frontier.admit(read_seeds([url], [], KEYS))
            # only while it runs: finishing a segment syncs too, and must be able to
            with monkeypatch.context() as patched:
                patched.setattr(os, "fsync", fails)
                await parts.loop.run()

    # the host fails for ever, so the loop would wait for its retry and not end by itself
    broken = sends(page(b"no", status=b"500 No"))
    with serving(broken) as server, pytest.raises(ArchiveFailed, match="Input/output"):
        asyncio.run(crawl(server.url + "/"))


def test_a_crawl_of_a_host_on_which_nobody_listens_comes_to_its_end(tmp_path: Path) -> None:
    """Its robots.txt cannot be had: it is given up, what waits for it becomes dead letters, nothing is left."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    settings = Settings(
        fetch=FetchSettings(allow_private=True),
        retry=RetrySettings(backoff=(0.1,), quarantine_after=1, quarantine=0.1, quarantines=1),
    )

    async def crawl() -> tuple[Ended, dict[str, int], dict[str, int]]:
        async with open_crawl(CrawlFolder(tmp_path), settings) as parts:
            seeds = [f"http://127.0.0.1:{port}/{number}" for number in range(3)]
            await parts.frontier.admit(read_seeds(seeds, [], KEYS))
            ended = await parts.loop.run()
            stats = await parts.frontier.stats()
            return ended, stats.urls, stats.hosts

    ended, urls, hosts = asyncio.run(crawl())
    assert ended is Ended.COMPLETE
    assert {state: count for state, count in urls.items() if count} == {"dead_letter": 3}
    assert hosts["given_up"] == 1
    assert "host_given_up" in CrawlFolder(tmp_path).log.read_text()


class SlowFrontier:
    """Leasing and renewing take longer than a lease lasts, by the clock that everybody here reads."""

    def __init__(self, parts: Crawl, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self._clock, self._now = parts.clock, parts.clock.now
        self._lease, self._renew = parts.frontier.lease, parts.frontier.renew
        self._seconds = seconds
        self._ahead = 0.0
        monkeypatch.setattr(parts.clock, "now", lambda: self._now() + self._ahead)
        monkeypatch.setattr(parts.frontier, "lease", self.lease)
        monkeypatch.setattr(parts.frontier, "renew", self.renew)

    async def lease(
        self,
        worker: str,
        capacity: int,
        duration: float,
        *,
        most_tasks: int | None = None,
        staggered: bool = False,
    ) -> list[HostLease]:
        leases = await self._lease(worker, capacity, duration, most_tasks=most_tasks, staggered=staggered)
        self._ahead += self._seconds if leases else 0.0
        return leases

    async def renew(self, leases: Sequence[tuple[Host, Token]], duration: float) -> list[float | None]:
        deadlines = await self._renew(leases, duration)
        self._ahead += self._seconds if leases else 0.0
        return deadlines


def test_a_machine_that_takes_longer_to_lease_than_a_lease_lasts_asks_for_everything_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(
        crawl=CrawlSettings(workers=1),
        fetch=FetchSettings(allow_private=True),
        politeness=PolitenessSettings(delay=0.0, slow_factor=0.0),
        frontier=FrontierSettings(lease_duration=1.0),
        traps=TrapSettings(probe=False),
    )

    async def crawl(seeds: list[str]) -> tuple[Ended, Stats]:
        async with open_crawl(CrawlFolder(tmp_path), settings) as parts, asyncio.timeout(30):
            await parts.frontier.admit(read_seeds(seeds, [], KEYS))
            SlowFrontier(parts, 1.5, monkeypatch)
            return await parts.loop.run(), await parts.frontier.stats()

    with (
        serving(sends(page(b"a page"), keep=True)) as one,
        serving(sends(page(b"a page"), keep=True)) as other,
    ):
        seeds = [f"{server.url}/{number}" for server in (one, other) for number in range(5)]
        ended, stats = asyncio.run(crawl(seeds))
        asked = [received.raw.split()[1] for server in (one, other) for received in server.requests]
    assert ended is Ended.COMPLETE
    assert (stats.leases_expired, stats.stale_outcomes) == (0, 0)
    assert sorted(asked) == sorted(2 * [b"/robots.txt", *(b"/%d" % number for number in range(5))])


Stuck = TypeVar("Stuck", bound="StuckDesk")


class StuckDesk:
    """Its commits wait, once there are pages among them, until nothing more is asked of the web."""

    def __init__(self, parts: Crawl, asked: Callable[[], int], monkeypatch: pytest.MonkeyPatch) -> None:
        self._committer, self._settled, self._asked = parts.committer, parts.committer.commit_batch, asked
        self.count = self.most_owed = self.asked_at_last = 0
        monkeypatch.setattr(parts.committer, "commit_batch", self.settled)

    async def settled(self, deliveries: Sequence[Delivery]) -> list[Settlement]:
        if any(delivery.outcome.kind is TaskKind.PAGE for delivery in deliveries):
            self.asked_at_last = -1
            while self.asked_at_last < self._asked():
                self.asked_at_last = self._asked()
                await asyncio.sleep(0.6)  # a busy machine takes that long for its next request
            self.most_owed = max(self.most_owed, self.asked_at_last - self.count)
        self.count += len(deliveries)
        return await self._settled(deliveries)


class HaltingDesk(StuckDesk):
    """Commits one part of a settle, and the next only when nothing more is asked of the web: what was asked since
    the first is `meanwhile`."""

    meanwhile: int | None = None
    _before: int | None = None

    async def settled(self, deliveries: Sequence[Delivery]) -> list[Settlement]:
        is_more_to_come = self._committer.uncommitted > len(deliveries)
        settlements = await super().settled(deliveries)
        if self._before is not None and self.meanwhile is None:
            self.meanwhile = self.asked_at_last - self._before
        self._before = self._asked() if is_more_to_come else None
        return settlements


def crawled(
    folder: Path, kind: type[Stuck], monkeypatch: pytest.MonkeyPatch, *, hosts: int, concurrency: int
) -> Stuck:
    """Sixty pages of each host, through such a committer."""
    settings = Settings(
        crawl=CrawlSettings(workers=1),
        fetch=FetchSettings(allow_private=True, concurrency=concurrency),
        politeness=PolitenessSettings(delay=0.0, slow_factor=0.0),
        traps=TrapSettings(mode="off", probe=False),
    )

    async def crawl(servers: Sequence[RawServer]) -> Stuck:
        async with open_crawl(CrawlFolder(folder), settings) as parts, asyncio.timeout(60):
            seeds = [f"{server.url}/{number}" for server in servers for number in range(60)]
            await parts.frontier.admit(read_seeds(seeds, [], KEYS))
            committer = kind(parts, lambda: sum(len(server.requests) for server in servers), monkeypatch)
            assert await parts.loop.run() is Ended.COMPLETE
            return committer

    with contextlib.ExitStack() as stack:
        answer = sends(page(b"a page"), keep=True)
        return asyncio.run(crawl([stack.enter_context(serving(answer)) for _ in range(hosts)]))


def test_beyond_one_commit_nothing_is_asked_for_ahead_of_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a kill would cost more than was in flight."""
    committer = crawled(tmp_path, StuckDesk, monkeypatch, hosts=3, concurrency=2)
    assert committer.count == 3 * 61
    assert 64 <= committer.most_owed <= 64 + 2


def test_what_is_committed_gives_up_its_places_before_all_of_its_settle_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committer = crawled(tmp_path, HaltingDesk, monkeypatch, hosts=6, concurrency=100)
    assert committer.meanwhile is not None
    assert committer.meanwhile > 0
