"""A frontier of so many fetched pages that is kept fresh for some simulated seconds; a child of `bench.revisits`.

    python -m bench._kept_pages FOLDER PAGES SECONDS PER_SECOND

Pages are written as settling would leave them, a fifth of which change every day. What promotion, leases and
settles cost is CPU of this process, told apart. One JSON object as the last line.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench._gauge import cpu_seconds, disk_bytes, resident_bytes
from bench._keys import key_of
from skitter.frontier.engine.frontier import EngineFrontier
from skitter.frontier.opening import open_rocks_frontier
from skitter.frontier.rows import Answer, Found, UrlRow
from skitter.frontier.tables.transaction import Transaction
from skitter.model import (
    Fetched,
    Host,
    HostLease,
    NotModified,
    Outcome,
    RecordAt,
    Result,
    Task,
    TaskKind,
    UrlKey,
    UrlState,
    Via,
)
from skitter.schedule.revisit import Visits, pack_visits
from skitter.settings import CrawlSettings, PolitenessSettings, RevisitSettings, Settings, TrapSettings
from skitter.testing.clock import FakeClock

DAY = 86_400.0
_OF_HOST, _FEWEST_HOSTS = 200, 10_000
_WRITTEN_AT_ONCE = 10_000
_SETTLED_AT_ONCE = 100
_LEASED, _LEASE = 4_096, 60.0
_CHANGING = 5
_FOUND = Found(2, Via.LINK)
_WARM_UP = 10


class KeptPages:
    def __init__(self, folder: Path, pages: int, per_second: float) -> None:
        settings = Settings(
            crawl=CrawlSettings(scope="any"),
            politeness=PolitenessSettings(host_budget=0, address_rate=0.0),
            traps=TrapSettings(mode="off"),
            revisit=RevisitSettings(keep_fresh=True, per_second=per_second),
        )
        self._folder, self._pages, self._per_second = folder, pages, per_second
        self._clock = FakeClock()
        self._frontier = open_rocks_frontier(folder, settings, self._clock)
        self._flying: list[tuple[float, int, HostLease, Task, float]] = []
        self._order = itertools.count()
        self._randomly = random.Random(7)
        self._cpu = {"promote": 0.0, "lease": 0.0, "settle": 0.0}
        self.served = 0

    # -- the pages

    def write(self) -> None:
        """Their dates lie in the time that the budget needs for all of them, from now on."""
        rows = self._rows(self._clock.now())
        written = 0
        while some := list(itertools.islice(rows, _WRITTEN_AT_ONCE)):
            with Transaction.begin(_cache(self._frontier), self._clock.now()) as tx:
                for key, row, at in some:
                    _, host = tx.host(Host(row.url[: row.url.index("/", 8)]))
                    host.robots.status, host.robots.read_at = 404, tx.now
                    host.robots.until = tx.now + 100 * DAY
                    tx.plan_visit(key, row, at)
                    tx.put_url(key, row)
                    tx.count(UrlState.COMPLETED, 1)
                    tx.count_answer(row, 1)
            written += len(some)
            if written % 500_000 == 0:
                print(f"{written:,} pages written, {resident_bytes() / 1e6:.0f} MB", flush=True)

    def _rows(self, now: float) -> Iterator[tuple[UrlKey, UrlRow, float]]:
        """Host after host: so each host's row is written once. Their dates lie all over."""
        spread = self._pages / self._per_second
        hosts = max(_FEWEST_HOSTS, self._pages // _OF_HOST)
        draw = self._randomly.random
        for number in range(self._pages):
            host, page = divmod(number, self._pages // hosts)
            url = f"http://h{host}.test/section-{page % 5}/an-article-about-{page}.html"
            key, seen = key_of(url), now - (0.5 + draw()) * spread - 7 * DAY
            visits = Visits(changes=0.5, days=20.0, interval=(now - seen) / DAY, seen_at=int(seen))
            answer = Answer(at=seen, status=200, body_status=200, digest=key * 2, etag='"e"')
            row = UrlRow(url, UrlState.COMPLETED, 50, _FOUND, answer=answer, visits=pack_visits(visits))
            yield key, row, now + draw() * spread

    # -- simulated time

    async def run(self, seconds: int) -> None:
        for second in range(-_WARM_UP, seconds):
            if second == 0:
                self._cpu = dict.fromkeys(self._cpu, 0.0)
                self.served = 0
            await self._second()
            if second % 10 == 0:
                price = (await self._frontier.stats()).revisits
                print(
                    f"second {second}, {self.served:,} visits, price {price.price if price else 0:.3g}",
                    flush=True,
                )

    async def _second(self) -> None:
        now = self._clock.now()
        outcomes = self._answered(now)
        self.served += len(outcomes)
        began = cpu_seconds()
        for start in range(0, len(outcomes), _SETTLED_AT_ONCE):
            await self._frontier.settle(outcomes[start : start + _SETTLED_AT_ONCE])
        began = self._count("settle", began)
        while await self._frontier.promote(now):
            pass
        began = self._count("promote", began)
        leases = await self._frontier.lease("bench", _LEASED, _LEASE)
        self._count("lease", began)
        for lease in leases:
            for place, task in enumerate(lease.tasks):
                sent = lease.not_before + place * lease.delay
                heapq.heappush(self._flying, (sent + 0.2, next(self._order), lease, task, sent))
        self._clock.advance(1.0)

    def _count(self, part: str, began: float) -> float:
        now = cpu_seconds()
        self._cpu[part] += now - began
        return now

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
                )
            )
        return outcomes

    def _answer(self, task: Task) -> Result:
        assert task.kind is TaskKind.PAGE
        if self._randomly.randrange(_CHANGING):
            return NotModified()
        return Fetched(
            status=200,
            content_type="text/html",
            size=20_000,
            digest=self._randomly.randbytes(32),
            etag='"e"',
            record=RecordAt("s", 0, 9_000),
        )

    async def told(self, seconds: int) -> dict[str, float]:
        stats = await self._frontier.stats()
        assert stats.revisits is not None
        visits = max(1, self.served)
        return {
            "pages": self._pages,
            "visits": self.served,
            "served_a_second": self.served / seconds,
            **{f"{part}_us": spent * 1e6 / visits for part, spent in self._cpu.items()},
            "price": stats.revisits.price,
            "late_s": stats.revisits.late,
            "violations": stats.politeness.violations,
            "rss_mb": resident_bytes() / 1e6,
            "disk_mb": disk_bytes(self._folder) / 1e6,
        }


def _cache(frontier: EngineFrontier):  # type: ignore[no-untyped-def]
    return frontier._cache


async def _main(folder: Path, pages: int, seconds: int, per_second: float) -> None:
    kept = KeptPages(folder, pages, per_second)
    began = time.monotonic()
    kept.write()
    print(f"written in {time.monotonic() - began:.0f} s", flush=True)
    await kept.run(seconds)
    print(json.dumps(await kept.told(seconds)), flush=True)
    await kept._frontier.close()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
