"""Who gets how much: tier shares against their weights, and what a host with a million URLs costs the others."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from bench._report import last_line, progress, table
from skitter.frontier.rocks.frontier import RocksFrontier
from skitter.model import Discovered, Fetched, Host, HostLease, Outcome, RobotsRead, TaskKind, Via
from skitter.schedule.priority import TIERS
from skitter.settings import CrawlSettings, FrontierSettings, PolitenessSettings, Settings
from skitter.testing.clock import FakeClock
from skitter.urls.canonical import key_of

_PRIORITY = (90, 60, 30, 10)
_WEIGHTS = ((8, 4, 2, 1), (1, 1, 1, 1), (50, 10, 5, 1))
_BIG = Host("https://big.example.com")
_OTHERS = 200
_SECONDS = 200
_PAGE = Fetched(status=200, content_type="text/html", size=1000)
_NO_RULES = RobotsRead(status=404)


class Crawl:
    """A frontier in simulated time whose every task is answered at once."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.clock = FakeClock()
        self.frontier = RocksFrontier(folder, settings, self.clock)
        self.latencies: list[float] = []

    async def admit(self, host: str, count: int, priority: int) -> None:
        for start in range(0, count, 5_000):
            urls = (f"{host}/{number}" for number in range(start, min(count, start + 5_000)))
            await self.frontier.admit([_seed(Host(host), url, priority) for url in urls])

    async def turn(self, capacity: int) -> list[HostLease]:
        began = time.perf_counter()
        leases = await self.frontier.lease("bench", capacity, 600.0)
        self.latencies.append(time.perf_counter() - began)
        outcomes = [self._answered(lease, place) for lease in leases for place in range(len(lease.tasks))]
        await self.frontier.settle(outcomes)
        return leases

    def _answered(self, lease: HostLease, place: int) -> Outcome:
        task = lease.tasks[place]
        sent = lease.not_before + place * lease.delay
        return Outcome(
            host=lease.host,
            token=lease.token,
            kind=task.kind,
            key=task.key,
            sent_at=sent,
            ended_at=sent,
            result=_PAGE if task.kind is TaskKind.PAGE else _NO_RULES,
        )


def _seed(host: Host, url: str, priority: int) -> Discovered:
    return Discovered(url=url, key=key_of(url), host=host, depth=0, via=Via.SEED, priority=priority)


def _settings(weights: tuple[int, ...], tasks: int) -> Settings:
    return Settings(
        crawl=CrawlSettings(scope="any"),
        politeness=PolitenessSettings(host_budget=0),
        frontier=FrontierSettings(tier_weights=weights, tasks_per_lease=tasks),
    )


async def shares(folder: Path, weights: tuple[int, ...], pages: int = 6_000) -> list[float]:
    """More hosts are ready in every tier than are leased, one task a lease: only the weights decide."""
    crawl = Crawl(folder, _settings(weights, 1))
    tiers = {f"https://t{tier}-{i}.example.com": tier for tier in range(TIERS) for i in range(40)}
    for host, tier in tiers.items():
        await crawl.admit(host, pages // 30, _PRIORITY[tier])
    await crawl.turn(1_000)
    served = [0] * TIERS
    while sum(served) < pages:
        crawl.clock.advance(2.0)
        for lease in await crawl.turn(8):
            served[tiers[lease.host]] += len(lease.tasks)
    await crawl.frontier.close()
    return [count / sum(served) for count in served]


async def neighbours(folder: Path, big: int) -> tuple[list[str], float, float]:
    """The turns of small hosts in order, and the median and the worst latency (us) of a lease call, while a
    host with `big` URLs (none for 0) of the same tier is queued as well."""
    crawl = Crawl(folder, _settings((8, 4, 2, 1), 5))
    if big:
        await crawl.admit(_BIG, big, 60)
    for number in range(_OTHERS):
        await crawl.admit(f"https://s{number}.example.com", 1_000, 60)
    order: list[str] = []
    for _ in range(_SECONDS):
        order += [lease.host for lease in await crawl.turn(20) if lease.host != _BIG]
        crawl.clock.advance(1.0)
    await crawl.frontier.close()
    latencies = sorted(crawl.latencies[10:])
    return order, statistics.median(latencies) * 1e6, latencies[-1] * 1e6


def fairness(queued: int) -> int:
    with tempfile.TemporaryDirectory(prefix="skitter-fairness-") as folder:
        return asyncio.run(_fairness(Path(folder), queued))


async def _fairness(folder: Path, queued: int) -> int:
    rows: list[list[object]] = [["weights", "F0", "F1", "F2", "F3", "furthest off", ""]]
    worst = 0.0
    for weights in _WEIGHTS:
        progress(f"tier weights {weights}")
        got = await shares(folder / "-".join(map(str, weights)), weights)
        off = max(abs(g * sum(weights) / w - 1) for g, w in zip(got, weights, strict=True))
        worst = max(worst, off)
        figures = [f"{share:.1%}" for share in got]
        rows.append([str(weights), *figures, f"{off:.1%}", "PASS" if off <= 0.1 and min(got) > 0 else "FAIL"])
    progress(f"{_OTHERS} hosts by themselves")
    order, median, longest = await neighbours(folder / "without", 0)
    progress(f"the same beside a host with {queued:,} URLs")
    order_with, median_with, longest_with = await neighbours(folder / "with", queued)
    # the large host takes one turn in 200 seconds of 20: compare what both runs had room for
    same = order[: len(order_with)] == order_with
    unslowed = same and median_with <= 1.5 * median + 200
    print(table(rows))
    print()
    print(
        table(
            [
                ["lease call, 20 hosts", "median us", "longest us", "small hosts' turns"],
                ["without the large host", round(median), round(longest), len(order)],
                [f"beside {queued:,} URLs", round(median_with), round(longest_with), len(order_with)],
            ]
        )
    )
    print(
        f"\nturns of the others in the same order: {'yes' if same else 'no'}; {'PASS' if unslowed else 'FAIL'}"
    )
    passed = worst <= 0.1 and unslowed
    last_line(
        {
            "bench": "fairness",
            "furthest_off": round(worst, 4),
            "same_order": same,
            "lease_us": [round(median), round(median_with)],
            "lease_us_longest": [round(longest), round(longest_with)],
            "turns": [len(order), len(order_with)],
            "passed": passed,
        }
    )
    return 0 if passed else 1
