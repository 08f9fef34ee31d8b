"""300 hosts that are kept fresh for a month of simulated time, a fifth of whose sitemaps date every page today.

For `bench.sitemaps --only liars`. The same month is lived twice: with what the liars say, and with their dates
left out. What their word still does is the difference between the visits that their pages get. 30 % of all pages
are in sitemaps only.
"""

from __future__ import annotations

import asyncio
import bisect
import random
from collections import Counter
from pathlib import Path

from bench._keys import key_of
from skitter.frontier.link_batches import pack
from skitter.frontier.opening import open_rocks_frontier
from skitter.model import (
    Discovered,
    Fetched,
    Host,
    HostLease,
    NotModified,
    Outcome,
    Result,
    RobotsRead,
    Task,
    TaskKind,
    Via,
)
from skitter.settings import CrawlSettings, PolitenessSettings, RevisitSettings, Settings, TrapSettings
from skitter.testing.clock import FakeClock

DAY = 86_400.0
PAGES, DAYS, TICK = 10, 30, 60.0
VISITS_A_DAY = 0.5
_LISTED, _LIARS = 0.3, 0.2
_RATES = (1.0, 1 / 7, 1 / 7, 0.0, 0.0)


class DatedWeb:
    """Pages change at random times; sitemaps name them all, with the time of their last change, or today."""

    def __init__(self, hosts: int, began: float) -> None:
        randomly = random.Random(11)
        self.hosts = [f"http://h{number}.test" for number in range(hosts)]
        self.liars = set(randomly.sample(self.hosts, int(_LIARS * hosts)))
        self.pages = {host: [f"{host}/{number}" for number in range(PAGES)] for host in self.hosts}
        self.linked = {
            url
            for pages in self.pages.values()
            for number, url in enumerate(pages)
            if number >= _LISTED * PAGES
        }
        self.changes = {
            url: self._times(randomly, _RATES[number % len(_RATES)], began)
            for pages in self.pages.values()
            for number, url in enumerate(pages)
        }

    def _times(self, randomly: random.Random, rate: float, began: float) -> list[float]:
        times, at = [began - 30 * DAY], began
        while rate and at < began + DAYS * DAY:
            at += randomly.expovariate(rate) * DAY
            times.append(at)
        return times

    def changed_at(self, url: str, now: float) -> float:
        times = self.changes[url]
        return times[bisect.bisect_right(times, now) - 1]

    def page(self, task: Task, now: float) -> Result:
        digest = f"{task.url} {self.changed_at(task.url, now)}".encode()[-32:].rjust(32)
        if task.digest == digest:
            return NotModified()
        return Fetched(status=200, content_type="text/html", size=10, digest=digest, etag='"e"')

    def sitemap(self, url: str, now: float, *, is_silent: bool) -> Result:
        host = url.removesuffix("/sitemap.xml")
        is_liar = host in self.liars
        links = [
            Discovered(
                url=page,
                key=key_of(page),
                host=Host(host),
                depth=1,
                via=Via.SITEMAP,
                parent=key_of(url),
                lastmod=None if is_liar and is_silent else now if is_liar else self.changed_at(page, now),
            )
            for page in self.pages[host]
        ]
        return Fetched(status=200, size=10, digest=b"m" * 32, link_batches=pack(links))


class DatedMonth:
    def __init__(self, folder: Path, hosts: int, *, is_silent: bool) -> None:
        self._clock, self._is_silent = FakeClock(), is_silent
        self._began = self._clock.now()
        self.web = DatedWeb(hosts, self._began)
        settings = Settings(
            crawl=CrawlSettings(scope="any"),
            politeness=PolitenessSettings(address_rate=0.0, robots_ttl=DAYS * DAY),
            traps=TrapSettings(mode="off"),
            revisit=RevisitSettings(
                keep_fresh=True, per_second=VISITS_A_DAY * hosts * PAGES / DAY, equal_weights=True
            ),
        )
        self._frontier = open_rocks_frontier(folder, settings, self._clock)
        self.visits: list[Counter[str]] = [Counter() for _ in range(DAYS + 1)]
        self.asked: dict[str, float] = {}

    async def run(self) -> None:
        seeds = sorted(self.web.linked)
        await self._frontier.admit([_seed(url) for url in seeds])
        while self._clock.now() < self._began + DAYS * DAY:
            while await self._frontier.promote(self._clock.now()):
                pass
            for lease in await self._frontier.lease("bench", 4096, 600.0):
                await self._serve(lease)
            self._clock.advance(TICK)
        await self._frontier.close()

    async def _serve(self, lease: HostLease) -> None:
        """All hosts at the same time, each a delay after the other; the clock stands still."""
        outcomes = []
        for place, task in enumerate(lease.tasks):
            at = max(lease.not_before, self._clock.now()) + place * lease.delay
            outcomes.append(
                Outcome(
                    host=lease.host,
                    token=lease.token,
                    kind=task.kind,
                    key=task.key,
                    sent_at=at,
                    ended_at=at,
                    result=self._answer(task, at),
                )
            )
        await self._frontier.settle(outcomes)

    def _answer(self, task: Task, now: float) -> Result:
        if task.kind is TaskKind.ROBOTS:
            sitemap = task.url.replace("/robots.txt", "/sitemap.xml")
            return RobotsRead(status=200, body=f"User-agent: *\nDisallow:\nSitemap: {sitemap}\n".encode())
        if task.kind is TaskKind.SITEMAP:
            return self.web.sitemap(task.url, now, is_silent=self._is_silent)
        day = min(DAYS, int((now - self._began) / DAY))
        self.visits[day][task.url[: task.url.index("/", 8)]] += task.url in self.asked
        self.asked[task.url] = now
        return self.web.page(task, now)

    def of_liars(self, first: int, last: int) -> float:
        """Visits a page and day of the liars' pages in these days."""
        visits = sum(self.visits[day][host] for day in range(first, last) for host in self.web.liars)
        return visits / len(self.web.liars) / PAGES / (last - first)

    def of_honest(self, first: int, last: int) -> float:
        honest = [host for host in self.web.hosts if host not in self.web.liars]
        visits = sum(self.visits[day][host] for day in range(first, last) for host in honest)
        return visits / len(honest) / PAGES / (last - first)


def _seed(url: str) -> Discovered:
    return Discovered(
        url=url, key=key_of(url), host=Host(url[: url.index("/", 8)]), depth=0, via=Via.SEED, priority=80
    )


def liars(hosts: int, folder: Path) -> dict[str, object]:
    lying, silent = (
        DatedMonth(folder / name, hosts, is_silent=name == "silent") for name in ("lying", "silent")
    )
    for month in (lying, silent):
        asyncio.run(month.run())
    every = {url for pages in lying.web.pages.values() for url in pages}
    half = DAYS // 2
    return {
        "hosts": hosts,
        "pages": len(every),
        "in_sitemaps_only": len(every - lying.web.linked),
        "not_found": len(every - set(lying.asked)),
        "first_week": lying.of_liars(0, 7) / max(1e-9, silent.of_liars(0, 7)),
        "second_half": lying.of_liars(half, DAYS) / max(1e-9, silent.of_liars(half, DAYS)),
        "visits_a_page_and_day": lying.of_liars(half, DAYS),
        "honest_visits_a_page_and_day": lying.of_honest(half, DAYS),
    }
