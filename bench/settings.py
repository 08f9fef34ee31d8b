"""What do changed settings cost a crawl that knows two million URLs?

    python -m bench.settings --urls 2000000 --hosts 100000

A child process makes a frontier of that many URLs, about half of them refused by scope and some by depth. Copies
of it are opened in turn, each by a fresh process: with the same settings, with narrower and with wider ones. Each
says what opening took, what a URL costs that a lease looks at, and what the walk over refused URLs takes until it
ends. Costs are CPU of the process's own thread. A table, the targets and one JSON object as the last line; exit
code 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from bench._gauge import disk_bytes
from bench._population import Population
from bench._report import last_line, progress, table
from skitter.frontier.engine.frontier import EngineFrontier
from skitter.frontier.opening import open_rocks_frontier
from skitter.model import Discovered, Fetched, Host, HostLease, Outcome, Result, RobotsRead, TaskKind, Via
from skitter.settings import CrawlSettings, PolitenessSettings, Settings, TrapSettings
from skitter.testing.clock import FakeClock
from skitter.urls.keys import Keys

MB = 1_000_000
DEPTH = 10
CHANGES = {
    "unchanged": CrawlSettings(max_depth=DEPTH),
    "narrower: exclude, max_depth": CrawlSettings(max_depth=DEPTH - 3, exclude=("/section-7/",)),
    "wider: max_depth": CrawlSettings(max_depth=DEPTH + 5),
    "wider: scope any": CrawlSettings(max_depth=DEPTH, scope="any"),
}
# What a URL may cost more at a lease where settings changed, and for how long a step of a walk may keep others
# waiting (ms).
DEARER, LONGEST_STEP = 1.5, 250.0
# Of a walk over twenty million URLs none of which comes back.
PER_URL = 10.0
_ADMITTED, _LEASED, _LEASE, _PAGES = 400, 128, 60.0, 40_000
_ROBOTS = RobotsRead(status=200, body=b"User-agent: *\nDisallow: /private\n", size=33)
_PAGE = Fetched(status=200, content_type="text/html", size=29_000)


class Reading(msgspec.Struct, kw_only=True):
    change: str
    open_ms: float
    us_per_lease: float
    refused_at_lease: int
    walk_seconds: float
    walk_us_per_url: float
    steps: int
    longest_step_ms: float
    came_back: int
    rss: int
    urls: int
    refused: int


def settings_of(crawl: CrawlSettings) -> Settings:
    return Settings(crawl=crawl, politeness=PolitenessSettings(host_budget=0), traps=TrapSettings(mode="off"))


# -- the frontier that is opened


async def make(folder: Path, urls: int, hosts: int) -> None:
    clock = FakeClock()
    frontier = open_rocks_frontier(folder, settings_of(CHANGES["unchanged"]), clock)
    key_of = Keys(Settings().keys).key_of
    for start in range(0, hosts, 2 * _ADMITTED):
        names = [
            f"https://h{number}.example.com" for number in range(start, min(hosts, start + 2 * _ADMITTED), 2)
        ]
        await frontier.admit(
            [
                Discovered(url=f"{name}/", key=key_of(f"{name}/"), host=Host(name), depth=0, via=Via.SEED)
                for name in names
            ]
        )
    web = Population(hosts, 1)
    while web.urls < urls:
        await frontier.admit(web.new_links(20) + [link for _ in range(19) for link in web.new_links(20)])
        if web.urls % 100_000 < _ADMITTED:
            progress(f"{web.urls:,} URLs admitted")
    while leases := await frontier.lease("bench", _LEASED, _LEASE):
        if all(task.kind is not TaskKind.ROBOTS for lease in leases for task in lease.tasks):
            break
        await answer(frontier, leases, clock.now(), _ROBOTS)
        clock.advance(0.001)
    await frontier.close()


async def answer(frontier: EngineFrontier, leases: list[HostLease], now: float, result: Result) -> None:
    outcomes = [
        Outcome(
            host=lease.host,
            token=lease.token,
            kind=task.kind,
            key=task.key,
            sent_at=now,
            ended_at=now,
            result=_ROBOTS if task.kind is TaskKind.ROBOTS else result,
        )
        for lease in leases
        for task in lease.tasks
    ]
    for start in range(0, len(outcomes), 64):
        await frontier.settle(outcomes[start : start + 64])


# -- one opening


async def read(folder: Path, change: str) -> Reading:
    clock = FakeClock(2_000_000_000.0)
    began = time.thread_time()
    frontier = open_rocks_frontier(folder, settings_of(CHANGES[change]), clock)
    opened = time.thread_time() - began
    before = await frontier.stats()
    clock.advance(100)
    tasks, spent = 0, 0.0
    while tasks < _PAGES and sum(before.tiers) > 2 * tasks:
        began = time.thread_time()
        leases = await frontier.lease("bench", _LEASED, _LEASE)
        spent += time.thread_time() - began
        tasks += sum(len(lease.tasks) for lease in leases)
        await answer(frontier, leases, clock.now(), _PAGE)
        clock.advance(1.0)
    at_lease = sum((await frontier.stats()).refusals.values()) - sum(before.refusals.values())
    steps, longest, began = 0, 0.0, time.thread_time()
    step_began = began
    while await frontier.promote(clock.now()):
        now = time.thread_time()
        steps, longest, step_began = steps + 1, max(longest, now - step_began), now
    walked = time.thread_time() - began
    after = await frontier.stats()
    urls = sum(after.urls.values())
    reading = Reading(
        change=change,
        open_ms=opened * 1000,
        us_per_lease=spent * 1e6 / (tasks + at_lease),
        refused_at_lease=at_lease,
        walk_seconds=walked if steps else 0.0,
        walk_us_per_url=walked * 1e6 / urls if steps else 0.0,
        steps=steps,
        longest_step_ms=longest * 1000,
        came_back=sum(after.came_back.values()),
        rss=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        urls=urls,
        refused=sum(before.refusals.values()),
    )
    await frontier.close()
    return reading


# -- all of them


def run(options: argparse.Namespace, folder: Path) -> int:
    made, copy = folder / "made", folder / "copy"
    _child("--make", str(made), str(options.urls), str(options.hosts))
    readings = []
    for change in (*CHANGES, "unchanged"):
        shutil.copytree(made, copy)
        readings.append(msgspec.json.decode(_child("--read", str(copy), change), type=Reading))
        progress(f"{change}: {readings[-1].us_per_lease:.1f} us a URL that a lease looked at")
        shutil.rmtree(copy)
    print(
        f"{readings[0].urls:,} URLs known, {readings[0].refused:,} of them refused; {disk_bytes(made) // MB} MB\n"
    )
    print(_table(readings))
    judged = _targets(readings)
    rows: list[list[object]] = [["target", "measured", "limit", ""]]
    rows += [[words, round(value, 2), limit, _verdict(value, limit)] for words, value, limit in judged]
    print(f"\n{table(rows)}")
    last_line({"bench": "settings", "readings": [msgspec.to_builtins(one) for one in readings]})
    return 0 if all(value <= limit for _, value, limit in judged) else 1


def _verdict(value: float, limit: float) -> str:
    return "PASS" if value <= limit else "FAIL"


def _table(readings: list[Reading]) -> str:
    heading = ["settings", "open ms", "us at a lease", "refused then", "walk s", "us a URL", "steps"]
    rows: list[list[object]] = [[*heading, "longest ms", "came back", "RSS MB"]]
    for one in readings:
        costs = [round(one.open_ms, 1), round(one.us_per_lease, 1), one.refused_at_lease]
        walk = [
            round(one.walk_seconds, 1),
            round(one.walk_us_per_url, 1),
            one.steps,
            round(one.longest_step_ms, 1),
        ]
        rows.append([one.change, *costs, *walk, one.came_back, one.rss // MB])
    return table(rows)


def _targets(readings: list[Reading]) -> list[tuple[str, float, float]]:
    usual = min(one.us_per_lease for one in readings if one.change == "unchanged")
    changed = [one for one in readings if one.change != "unchanged"]
    few = next(one for one in changed if one.change == "wider: max_depth")
    return [
        (
            "a URL that a lease looked at, times one with unchanged settings",
            max(o.us_per_lease for o in changed) / usual,
            DEARER,
        ),
        ("longest step of a walk, ms", max(one.longest_step_ms for one in changed), LONGEST_STEP),
        ("us of a walk for each URL known, where few come back", few.walk_us_per_url, PER_URL),
        ("walks where nothing changed", sum(o.steps for o in readings if o.change == "unchanged"), 0),
    ]


def _child(*arguments: str) -> bytes:
    command = [sys.executable, "-m", "bench.settings", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.settings", description=__doc__.splitlines()[0])
    parser.add_argument("--urls", type=int, default=2_000_000)
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--make", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--read", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.make:
        asyncio.run(make(Path(options.make[0]), int(options.make[1]), int(options.make[2])))
        return 0
    if options.read:
        reading = asyncio.run(read(Path(options.read[0]), options.read[1]))
        print(msgspec.json.encode(reading).decode())
        return 0
    with tempfile.TemporaryDirectory(prefix="skitter-settings-") as folder:
        return run(options, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
