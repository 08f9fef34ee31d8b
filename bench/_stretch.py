"""A crawl's frontier under load, in process and in simulated time: admissions, then leases and settles.

Runs in a child of `bench.frontier`, writes one JSON line a reading to standard output, and ends by killing itself
with leases out and nothing closed.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import itertools
import os
import signal
import sys
import time
from pathlib import Path

import msgspec

from bench._gauge import Meter, disk_bytes, resident_bytes
from bench._population import Population
from skitter.committer.work_source import COMMITTED_AT_ONCE
from skitter.frontier.link_batches import pack
from skitter.frontier.opening import open_logged_frontier, open_rocks_frontier
from skitter.model import (
    Discovered,
    Fetched,
    HostLease,
    Outcome,
    RecordAt,
    Result,
    RobotsRead,
    Task,
    TaskKind,
)
from skitter.settings import CrawlSettings, FrontierSettings, PolitenessSettings, Settings, TrapSettings
from skitter.testing.clock import FakeClock

# Its pages all say the same, which nine of ten of a real crawl do not: they would be taken for a trap.
SETTINGS = Settings(
    crawl=CrawlSettings(scope="any"),
    politeness=PolitenessSettings(host_budget=0),
    traps=TrapSettings(mode="off"),
)
LINKS, NEW = 20, 2
# In the environment: the database of a log, if there is to be one.
LOG = "SKITTER_BENCH_LOG"
# As a crawl does. New URLs are admitted as those of twenty pages.
_SETTLED = COMMITTED_AT_ONCE
_ADMITTED = 20
# A busy machine likes to put a process aside when it asks for its CPU time: it is asked for rarely.
_MADE_AT_ONCE = 25
_LEASED = 128
_LEASE = 60.0
_ROBOTS = RobotsRead(status=200, body=b"User-agent: *\nDisallow: /private\n", size=33)


def with_memory(size: int) -> Settings:
    """0 leaves what is the default."""
    if not size:
        return SETTINGS
    return msgspec.structs.replace(SETTINGS, frontier=FrontierSettings(memory=size))


def with_log(settings: Settings, url: str) -> Settings:
    frontier = msgspec.structs.replace(settings.frontier, log=url, log_unreplicated=True)
    return msgspec.structs.replace(settings, frontier=frontier)


class Reading(msgspec.Struct, kw_only=True):
    phase: str
    urls: int
    hosts: int
    pages: int
    robots: int
    us_per_url: float = 0.0
    us_per_page: float = 0.0
    us_per_task: float = 0.0
    pace: float
    wall: float
    rss: int
    disk: int
    filter_bytes: int
    filter_trusted: float
    false_positives: float
    violations: int
    now: float


class Load:
    def __init__(self, folder: Path, hosts: int, seed: int, memory: int = 0, log: str = "") -> None:
        """`log` is a database that every commit goes to first."""
        self._folder = folder
        self._clock = FakeClock()
        settings = with_memory(memory)
        if log:
            self._frontier, _ = open_logged_frontier(folder, with_log(settings, log), self._clock)
        else:
            self._frontier = open_rocks_frontier(folder, settings, self._clock)
        self._web = Population(hosts, seed)
        self._meter = Meter()
        self._began = time.monotonic()
        self._flying: list[tuple[float, int, HostLease, Task, float]] = []
        self._order = itertools.count()
        self._pages = self._robots = 0
        self._links, self._new = LINKS, NEW

    async def admit(self, urls: int, every: int) -> None:
        mark = 0
        reading_at = min(every, 100_000)
        while self._web.urls < urls:
            with self._meter.aside():
                batches = [self._new_batch() for _ in range(_MADE_AT_ONCE)]
            for batch in batches:
                await self._frontier.admit(batch)
                self._clock.advance(0.05)
            if self._web.urls >= reading_at:
                spent = self._meter.read()
                await self._say("admit", us_per_url=spent * 1e6 / (self._web.urls - mark))
                mark = self._web.urls
                reading_at = mark + every

    def _new_batch(self) -> list[Discovered]:
        return [link for _ in range(_ADMITTED) for link in self._web.new_links(LINKS)]

    async def greet(self, every: int) -> None:
        """Every host's robots.txt comes first; until pages are nine tenths of what is asked."""
        pages = robots = 0
        while True:
            await self._second()
            asked, read = self._pages - pages, self._robots - robots
            if asked + read >= every:
                await self._say("robots", us_per_task=self._meter.read() * 1e6 / (asked + read))
                pages, robots = self._pages, self._robots
                if asked >= 9 * read:
                    return

    async def crawl(self, pages: int, every: int) -> None:
        """That many pages more. The few robots.txt of hosts just found are part of what a page costs."""
        mark, end = self._pages, self._pages + pages
        while self._pages < end:
            await self._second()
            if self._pages - mark >= every:
                await self._say("crawl", us_per_page=self._meter.read() * 1e6 / (self._pages - mark))
                mark = self._pages

    async def crawl_bare(self, pages: int) -> None:
        """That many pages more that bring no links at all: lease and settle by themselves."""
        self._links = self._new = 0
        self._meter.read()  # what was crawled since the last reading brought links
        mark, end = self._pages, self._pages + pages
        while self._pages < end:
            await self._second()
        await self._say("bare", us_per_page=self._meter.read() * 1e6 / (self._pages - mark))

    async def _second(self) -> None:
        """One simulated second of a worker: what was answered is settled, ready hosts are leased."""
        now = self._clock.now()
        with self._meter.aside():
            outcomes = self._answered(now)
        for start in range(0, len(outcomes), _SETTLED):
            await self._frontier.settle(outcomes[start : start + _SETTLED])
        await self._frontier.promote(now)
        await self._frontier.reap(now)
        leases = await self._frontier.lease("bench", _LEASED, _LEASE)
        with self._meter.aside():
            for lease in leases:
                self._send(lease)
        self._clock.advance(1.0)

    def _send(self, lease: HostLease) -> None:
        for place, task in enumerate(lease.tasks):
            sent = lease.not_before + place * lease.delay
            heapq.heappush(self._flying, (sent + 0.2, next(self._order), lease, task, sent))

    def _answered(self, now: float) -> list[Outcome]:
        outcomes = []
        while self._flying and self._flying[0][0] <= now:
            ended, _, lease, task, sent = heapq.heappop(self._flying)
            outcomes.append(
                Outcome(
                    host=lease.host,
                    token=lease.token,
                    kind=task.kind,
                    key=task.key,
                    sent_at=sent,
                    ended_at=ended,
                    result=self._answer(task),
                    address="192.0.2.1",
                )
            )
        return outcomes

    def _answer(self, task: Task) -> Result:
        if task.kind is TaskKind.ROBOTS:
            self._robots += 1
            return _ROBOTS
        self._pages += 1
        return Fetched(
            status=200,
            content_type="text/html",
            size=29_000,
            digest=task.key * 2,
            record=RecordAt("skitter-20260101000000-00001.warc.gz", self._pages * 9_000, 9_000),
            title="An article about something",
            link_batches=pack(self._web.page_links(task.url, task.key, self._links, self._new)),
            # by the path alone: the first pages of most hosts resemble those of others
            simhash=int.from_bytes(task.key[8:], "big"),
        )

    async def _say(
        self, phase: str, *, us_per_url: float = 0.0, us_per_page: float = 0.0, us_per_task: float = 0.0
    ) -> None:
        with self._meter.aside():
            stats = await self._frontier.stats()
            figures = stats.seen_filter
            reading = Reading(
                phase=phase,
                urls=sum(stats.urls.values()),
                hosts=sum(stats.hosts.values()),
                pages=stats.pages,
                robots=stats.robots_fetches,
                us_per_url=us_per_url,
                us_per_page=us_per_page,
                us_per_task=us_per_task,
                pace=self._meter.pace,
                wall=time.monotonic() - self._began,
                rss=resident_bytes(),
                disk=disk_bytes(self._folder),
                filter_bytes=figures.bytes if figures else 0,
                filter_trusted=figures.trusted if figures else 0.0,
                false_positives=figures.false_positive_rate if figures else 0.0,
                violations=stats.politeness.violations,
                now=self._clock.now(),
            )
            print(msgspec.json.encode(reading).decode(), flush=True)


async def _run(folder: Path, urls: int, hosts: int, pages: int, seed: int, memory: int) -> None:
    load = Load(folder, hosts, seed, memory, os.environ.get(LOG, ""))
    await load.admit(urls, max(100_000, urls // 20))
    if not pages:
        return
    await load.greet(max(5_000, hosts // 10))
    await load.crawl(pages, max(5_000, pages // 10))
    await load.crawl_bare(max(5_000, pages // 5))


if __name__ == "__main__":
    # as in a crawl: a page's values hold no cycles
    gc.set_threshold(50_000, 20, 50)
    asyncio.run(_run(Path(sys.argv[1]), *map(int, sys.argv[2:])))
    os.kill(os.getpid(), signal.SIGKILL)
