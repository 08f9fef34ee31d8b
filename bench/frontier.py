"""Does the frontier cost the same with twenty million URLs as with a hundred thousand?

    python -m bench.frontier --urls 20000000 --hosts 1000000
    python -m bench.frontier --fairness

A child process admits that many URLs, leases and settles a long stretch of pages in simulated time, the last of
them without any links, and kills itself with leases out. A fresh process opens what is left and asks for a lease.
What a new URL costs is judged over the last quarter of them, merges and all: after each of these readings the
child is stopped and another one admits the first 100,000 of a new frontier, so that both meet the same machine.
A curve, the targets and one JSON object as the last line; exit code 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bench._fairness import fairness
from bench._report import last_line, progress, table
from bench._stretch import Reading, with_memory
from skitter.frontier.opening import open_rocks_frontier
from skitter.testing.clock import FakeClock

MB = 1_000_000
# A new URL at the end, times one of the first so many, and how much of all is the end: it has merges in it.
GROWTH = 1.5
FIRST = 100_000
LAST = 0.25
MOST_RSS = 1_000 * MB
REOPENED = 5.0
PER_PAGE = 120.0
MEMORY = 1_000_000_000
# Filters must be learnt again within five minutes of a crawl, twenty million keys or fewer.
LEARNT = 300.0
MOST_BEATS = 10_000


class Target(msgspec.Struct, frozen=True):
    words: str
    value: float
    limit: float

    @property
    def met(self) -> bool:
        return self.value <= self.limit


def load(folder: Path, options: argparse.Namespace) -> Iterator[Reading]:
    """The child's readings, until it is dead; among those of the end what the beginning costs at that moment."""
    command = _command(folder, options, options.urls, options.pages)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for line in child.stdout:
            reading = msgspec.json.decode(line, type=Reading)
            progress(_words(reading))
            yield reading
            if reading.phase == "admit" and reading.urls > options.urls * (1 - LAST):
                yield _beginning(folder.with_name("beginning"), options, child)
    if child.returncode != -9:
        raise SystemExit(f"the load ended by itself, with {child.returncode}")


def _command(folder: Path, options: argparse.Namespace, urls: int, pages: int) -> list[str]:
    numbers = (urls, options.hosts, pages, options.seed, options.memory)
    return [sys.executable, "-m", "bench._stretch", str(folder), *map(str, numbers)]


def _beginning(folder: Path, options: argparse.Namespace, child: subprocess.Popen[bytes]) -> Reading:
    """The first URLs of a new frontier, while the child is stopped."""
    child.send_signal(signal.SIGSTOP)
    try:
        # it ends by killing itself, as the other does
        said = subprocess.run(_command(folder, options, FIRST, 0), stdout=subprocess.PIPE, check=False).stdout
    finally:
        child.send_signal(signal.SIGCONT)
        shutil.rmtree(folder, ignore_errors=True)
    first = msgspec.json.decode(said.splitlines()[0], type=Reading)
    progress(_words(replace(first, phase="begin")))
    return replace(first, phase="begin")


def _words(reading: Reading) -> str:
    costs = {
        "admit": f"{reading.us_per_url:.1f} us a URL",
        "begin": f"{reading.us_per_url:.1f} us a URL at the beginning, as of now",
        "robots": f"{reading.us_per_task:.0f} us a task",
        "crawl": f"{reading.us_per_page:.0f} us a page",
        "bare": f"{reading.us_per_page:.0f} us a page without links",
    }
    return (
        f"{reading.wall:6.0f} s  {reading.urls:>11,} URLs {reading.hosts:>9,} hosts  {costs[reading.phase]},"
        f" {reading.rss // MB} MB, {reading.disk // MB} MB on disk"
    )


def reopen(folder: Path, now: float, memory: int) -> float:
    """Seconds of a fresh process, imports and all, until its first lease is granted."""
    began = time.monotonic()
    command = [sys.executable, "-m", "bench.frontier", "--memory", str(memory)]
    subprocess.run([*command, "--reopen", str(folder), str(now)], check=True)
    return time.monotonic() - began


async def lease_one(folder: Path, now: float, memory: int) -> int:
    clock = FakeClock(now)
    frontier = open_rocks_frontier(folder, with_memory(memory), clock)
    return 0 if await frontier.lease("bench", 1, 60.0) else 1


class Learnt(msgspec.Struct):
    """How the filters came back after the kill: `beats` are promotions, of which a crawl makes one a second."""

    beats: int
    cpu: float
    longest: float


async def learn(folder: Path, now: float, memory: int) -> Learnt:
    """Promotions until every part of the filter is trusted again; only this does the process do."""
    clock = FakeClock(now)
    frontier = open_rocks_frontier(folder, with_memory(memory), clock)
    learnt = Learnt(0, 0.0, 0.0)
    while (figures := (await frontier.stats()).seen_filter) is not None and figures.trusted < 1.0:
        began = time.process_time()
        await frontier.promote(clock.now())
        spent = time.process_time() - began
        learnt = Learnt(learnt.beats + 1, learnt.cpu + spent, max(learnt.longest, spent))
        clock.advance(1.0)
        if learnt.beats > MOST_BEATS:
            break
    return learnt


def relearn(folder: Path, now: float, memory: int) -> Learnt:
    command = [sys.executable, "-m", "bench.frontier", "--memory", str(memory)]
    said = subprocess.run(
        [*command, "--learn", str(folder), str(now)], check=True, stdout=subprocess.PIPE
    ).stdout
    return msgspec.json.decode(said, type=Learnt)


def targets(readings: list[Reading], reopened: float, learnt: Learnt) -> list[Target]:
    beginning = [reading for reading in readings if reading.phase == "begin"]
    admitting = [reading for reading in readings if reading.phase == "admit"]
    crawling = [reading for reading in readings if reading.phase == "crawl"]
    bare = [reading for reading in readings if reading.phase == "bare"]
    if not beginning or not crawling or not bare:
        raise SystemExit("the load ended before it had crawled: nothing to judge")
    growth = _cost(admitting[-len(beginning) :]) / _cost(beginning)
    return [
        Target("CPU of a new URL in the last quarter, times that of the first 100,000", growth, GROWTH),
        Target("largest resident size, MB", max(r.rss for r in readings) / MB, MOST_RSS / MB),
        Target("seconds from kill -9 to the first lease", reopened, REOPENED),
        Target("seconds of a crawl until the filters are learnt again", float(learnt.beats), LEARNT),
        Target(
            "us of lease and settle, links included, a page at the end", crawling[-1].us_per_page, PER_PAGE
        ),
        Target("us of lease and settle, a page without links", bare[-1].us_per_page, PER_PAGE),
        Target("politeness violations", readings[-1].violations, 0),
    ]


def _cost(readings: list[Reading]) -> float:
    """Of readings of the same number of URLs each."""
    return statistics.mean(reading.us_per_url for reading in readings)


def curve(readings: list[Reading]) -> str:
    heading: list[object] = [
        "phase",
        "URLs",
        "hosts",
        "robots",
        "pages",
        "us a URL",
        "us a task",
        "us a page",
    ]
    heading += ["pace ms", "RSS MB", "disk MB", "filter MB", "trusted", "false positives"]
    rows: list[list[object]] = [heading]
    for r in readings:
        costs = [round(cost, 1) if cost else "" for cost in (r.us_per_url, r.us_per_task, r.us_per_page)]
        sizes = [r.rss // MB, r.disk // MB, r.filter_bytes // MB]
        trust = [f"{r.filter_trusted:.0%}", f"{r.false_positives:.2%}"]
        rows.append([r.phase, r.urls, r.hosts, r.robots, r.pages, *costs, round(r.pace, 2), *sizes, *trust])
    return table(rows)


def run(options: argparse.Namespace, folder: Path) -> int:
    readings = list(load(folder / "frontier", options))
    reopened = reopen(folder / "frontier", readings[-1].now, options.memory)
    learnt = relearn(folder / "frontier", readings[-1].now, options.memory)
    judged = targets(readings, reopened, learnt)
    print(curve(readings))
    print()
    rows: list[list[object]] = [["target", "measured", "limit", ""]]
    rows += [[t.words, round(t.value, 2), t.limit, "PASS" if t.met else "FAIL"] for t in judged]
    print(table(rows))
    last = readings[-1]
    print(
        f"{last.disk / max(1, last.urls):.0f} bytes a URL on disk; learning {last.urls:,} keys again took"
        f" {learnt.cpu:.1f} s of CPU, {learnt.cpu / max(1, last.urls) * 1e6:.2f} us a key, {learnt.longest:.2f} s"
        " in one beat at most"
    )
    last_line(
        {
            "bench": "frontier",
            "urls": readings[-1].urls,
            "hosts": readings[-1].hosts,
            "pages": readings[-1].pages,
            "reopen_seconds": round(reopened, 2),
            "learnt": msgspec.to_builtins(learnt),
            "targets": {t.words: [round(t.value, 2), t.limit, t.met] for t in judged},
            "curve": [msgspec.to_builtins(reading) for reading in readings],
        }
    )
    return 0 if all(target.met for target in judged) else 1


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.frontier", description=__doc__.splitlines()[0])
    parser.add_argument("--urls", type=int, default=20_000_000)
    parser.add_argument("--hosts", type=int, default=1_000_000)
    parser.add_argument("--pages", type=int, default=300_000, help="settled in the stretch, 20 links each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--memory",
        type=int,
        default=MEMORY,
        help="frontier.memory in bytes: what docs/operations.md advises for so many URLs",
    )
    parser.add_argument(
        "--fairness", action="store_true", help="only: tier shares, and one host with a million URLs"
    )
    parser.add_argument("--queued", type=int, default=1_000_000, help="URLs of the large host of --fairness")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave the frontier in this new folder")
    parser.add_argument("--reopen", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--learn", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.reopen:
        return asyncio.run(lease_one(Path(options.reopen[0]), float(options.reopen[1]), options.memory))
    if options.learn:
        learnt = asyncio.run(learn(Path(options.learn[0]), float(options.learn[1]), options.memory))
        print(msgspec.json.encode(learnt).decode())
        return 0
    if options.fairness:
        return fairness(options.queued)
    if options.keep:
        options.keep.mkdir(parents=True)
        return run(options, options.keep)
    with tempfile.TemporaryDirectory(prefix="skitter-frontier-") as folder:
        return run(options, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
