"""A crawl in simulated time: the real frontier on RocksDB, a polite worker, a web of `_planned_webs`.

Requests to a host follow each other as a worker makes them; a single core reads what came back, one page after
the other. Estimates are asked for on the way, so that they can be held against what came of it.
"""

from __future__ import annotations

import heapq
import random
from pathlib import Path
from typing import NamedTuple

from bench._keys import key_of
from bench._planned_webs import Shape, Site
from skitter.frontier.link_batches import pack
from skitter.frontier.opening import open_rocks_frontier
from skitter.model import (
    Discovered,
    Failed,
    FailureKind,
    Fetched,
    Host,
    HostLease,
    Outcome,
    Result,
    RobotsRead,
    Task,
    TaskKind,
    Via,
)
from skitter.plan.estimate import Estimate
from skitter.settings import CrawlSettings, PolitenessSettings, Settings, TrapSettings
from skitter.testing.clock import FakeClock

TICK = 0.25
_CONCURRENCY = 256
# Estimates are asked for whenever so many times more pages are there.
_EVERY = 1.12


class Asked(NamedTuple):
    """What was estimate, when so much was done."""

    at: float
    pages: int
    bytes: int
    estimate: Estimate


class Ended(NamedTuple):
    seconds: float
    pages: int
    bytes: int
    asked: list[Asked]


class SimulatedCrawl:
    def __init__(self, folder: Path, shape: Shape, seed: int) -> None:
        settings = Settings(
            crawl=CrawlSettings(max_pages=shape.most_pages),
            politeness=PolitenessSettings(address_rate=0.0),
            traps=TrapSettings(mode="off"),
        )
        self.clock = FakeClock()
        self.shape = shape
        self._seed = seed
        self._began = self.clock.now()
        self._frontier = open_rocks_frontier(folder, settings, self.clock)
        self._answered: list[tuple[float, int, Outcome]] = []
        self._number = 0
        self._core_free_at = 0.0
        self._leased = 0
        self._failed: dict[str, int] = {}
        self._last = self._began

    async def run(self) -> Ended:
        await self._frontier.admit([_found(site, 0, None, 0) for site in self.shape.sites])
        asked: list[Asked] = []
        next_ask = 10.0
        while await self._step():
            stats = await self._frontier.stats()
            if stats.pages >= next_ask:
                next_ask = max(stats.pages * _EVERY, stats.pages + 1)
                at = self.clock.now() - self._began
                asked.append(Asked(at, stats.pages, stats.bytes, await self._frontier.estimate()))
        stats = await self._frontier.stats()
        await self._frontier.close()
        return Ended(self._last - self._began, stats.pages, stats.bytes, asked)

    async def _step(self) -> bool:
        """What has been answered is settled, and ready hosts are asked; False at the end."""
        now = self.clock.now()
        outcomes = []
        while self._answered and self._answered[0][0] <= now:
            self._last, _, outcome = heapq.heappop(self._answered)
            outcomes.append(outcome)
        if outcomes:
            await self._frontier.settle(outcomes)
        await self._frontier.promote(now)
        if len(self._answered) < _CONCURRENCY:
            for lease in await self._frontier.lease("bench", _CONCURRENCY, 600.0):
                self._serve(lease)
        horizon = await self._frontier.horizon()
        if self._answered:
            self.clock.advance(max(TICK, min(10.0, self._answered[0][0] - now)))
            return True
        if horizon.next_at is None or horizon.limit_reached:
            return False
        self.clock.advance(max(TICK, horizon.next_at - now))
        return True

    def _serve(self, lease: HostLease) -> None:
        site = self.shape.by_name[lease.host]
        start = max(lease.not_before, self.clock.now())
        for task in lease.tasks:
            randomly = random.Random(f"{self._seed} {task.url}")
            ended = start + site.answers_in * randomly.uniform(0.5, 1.5)
            result = self._answer(site, task, randomly)
            self._core_free_at = max(self._core_free_at, ended) + self.shape.cpu
            done = max(ended, self._core_free_at) if self.shape.cpu > 0.01 else ended
            self._number += 1
            outcome = Outcome(
                host=lease.host,
                token=lease.token,
                kind=task.kind,
                key=task.key,
                sent_at=start,
                ended_at=ended,
                result=result,
            )
            heapq.heappush(self._answered, (done, self._number, outcome))
            start = max(start + lease.delay, ended)

    def _answer(self, site: Site, task: Task, randomly: random.Random) -> Result:
        if task.kind is TaskKind.ROBOTS:
            words = f"User-agent: *\nCrawl-delay: {site.crawl_delay}\n" if site.crawl_delay else ""
            return RobotsRead(status=200, body=words.encode())
        page = int(task.url.rpartition("/")[2] or 0)
        fate = randomly.random()
        if page and fate < site.broken:
            return Fetched(status=404, size=500, content_type="text/html")
        if page and fate < site.broken + site.once and self._failed.setdefault(task.url, 0) < 1:
            self._failed[task.url] += 1
            return Failed(kind=FailureKind.SERVER_ERROR, detail="status 500", status=500)
        links = [
            _found(site, to, task, task.depth + 1)
            for to in dict.fromkeys(site.links(page, randomly))
            if to != page
        ]
        return Fetched(
            status=200,
            content_type="text/html",
            size=int(site.size * randomly.lognormvariate(0, 0.5)),
            digest=task.key * 2,
            link_batches=pack(links),
        )


def _found(site: Site, page: int, parent: Task | None, depth: int) -> Discovered:
    url = f"{site.url}/{page or ''}"
    return Discovered(
        url=url,
        key=key_of(url),
        host=Host(site.url),
        depth=depth,
        via=Via.SEED if parent is None else Via.LINK,
        parent=parent.key if parent is not None else None,
    )
