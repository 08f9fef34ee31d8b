"""Who gets how much: tier shares against their weights, and what a host with a million URLs costs the others."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import tempfile
import time
from pathlib import Path

from bench._keys import key_of
from bench._report import last_line, progress, table
from skitter.frontier.opening import open_rocks_frontier
from skitter.model import Discovered, Fetched, Host, HostLease, Outcome, RobotsRead, TaskKind, Via
from skitter.schedule.priority import TIERS
from skitter.settings import CrawlSettings, FrontierSettings, PolitenessSettings, Settings, TrapSettings
from skitter.testing.clock import FakeClock

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
        self.frontier = open_rocks_frontier(folder, settings, self.clock)
        self.latencies: list[float] = []

    async def admit(self, host: str, count: int, priority: int) -> None:
        for start in range(0, count, 5_000):
            urls = (f"{host}/{number}" for number in range(start, min(count, start + 5_000)))
            await self.frontier.admit([_seed(Host(host), url, priority) for url in urls])

    async def turn(self, capacity: int) -> list[HostLease]:
        began = time.thread_time()
        leases = await self.frontier.lease("bench", capacity, 600.0)
        self.latencies.append(time.thread_time() - began)
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
            result=_NO_RULES if task.kind is TaskKind.ROBOTS else _PAGE,
        )


def _seed(host: Host, url: str, priority: int) -> Discovered:
    return Discovered(url=url, key=key_of(url), host=host, depth=0, via=Via.SEED, priority=priority)


def _settings(weights: tuple[int, ...], tasks: int) -> Settings:
    return Settings(
        crawl=CrawlSettings(scope="any"),
        politeness=PolitenessSettings(host_budget=0),
        frontier=FrontierSettings(tier_weights=weights, tasks_per_lease=tasks),
        traps=TrapSettings(mode="off"),  # every page says the same
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


class Neighbours:
    """Small hosts of one tier, and beside them a host with `big` URLs (0: there is none)."""

    def __init__(self, folder: Path, big: int) -> None:
        self.big = big
        self._crawl = Crawl(folder, _settings((8, 4, 2, 1), 5))
        self.turns: dict[str, list[int]] = {f"https://s{number}.example.com": [] for number in range(_OTHERS)}
        self.turns |= {_BIG: []} if big else {}

    async def fill(self) -> None:
        for host in self.turns:
            await self._crawl.admit(host, self.big if host == _BIG else 1_000, 60)

    async def second(self, number: int) -> None:
        for lease in await self._crawl.turn(20):
            self.turns[lease.host].append(number)
        self._crawl.clock.advance(1.0)

    def row(self) -> list[object]:
        big = self.turns.get(_BIG, [])
        return [
            f"beside {self.big:,} URLs" if self.big else "without the large host",
            round(self.median()),
            round(self._crawl.latencies[-1] * 1e6),
            min(len(turns) for host, turns in self.turns.items() if host != _BIG),
            self.longest_wait(),
            len(big),
        ]

    def median(self) -> float:
        self._crawl.latencies.sort()
        return statistics.median(self._crawl.latencies) * 1e6

    def longest_wait(self) -> int:
        """Seconds between two turns of a small host, at most."""
        small = [turns for host, turns in self.turns.items() if host != _BIG]
        return max(later - earlier for turns in small for earlier, later in itertools.pairwise(turns))


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
        rows.append([str(weights), *figures, f"{off:.1%}", _verdict(off <= 0.1)])
    alone, beside = Neighbours(folder / "alone", 0), Neighbours(folder / "beside", queued)
    for crawl in (alone, beside):
        progress(f"{_OTHERS} hosts, {crawl.big:,} URLs on one more")
        await crawl.fill()
    # in turn, second by second: whatever else the machine does, it does to both
    for number in range(_SECONDS):
        await alone.second(number)
        await beside.second(number)
    # one more host in the round is one turn more to wait, and at 20 turns a second no more than a second
    unslowed = beside.longest_wait() <= alone.longest_wait() + 1 and beside.median() <= 1.5 * alone.median()
    print(table(rows))
    heading = [
        "lease call, 20 hosts",
        "median us",
        "longest us",
        "fewest turns",
        "longest wait s",
        "its turns",
    ]
    print("", table([heading, alone.row(), beside.row()]), "", sep="\n")
    print(f"tier shares within 10 %: {_verdict(worst <= 0.1)}; nobody slowed down: {_verdict(unslowed)}")
    last_line(
        {
            "bench": "fairness",
            "furthest_off": round(worst, 4),
            "lease_us": [round(alone.median()), round(beside.median())],
            "longest_wait": [alone.longest_wait(), beside.longest_wait()],
            "passed": worst <= 0.1 and unslowed,
        }
    )
    return 0 if worst <= 0.1 and unslowed else 1


def _verdict(met: bool) -> str:
    return "PASS" if met else "FAIL"
