"""What a log in PostgreSQL costs a frontier, and how long another machine takes to go on with it.

    python -m bench.log --urls 1000000 --hosts 50000 --pages 100000

The same load as in `bench.frontier`, in processes of their own, by turns: RocksDB alone, and with every commit
in a log first. The database is on this machine, on its disk, with fsync and without a standby: its CPU and its
WAL are what is asked for, a commit's latency is its own. Then the machine with the log dies, and others take
over: one that has nothing and replays the log, one that has a checkpoint, and a standby that has followed. A
table, and one JSON object as the last line; exit code 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from bench._crawls import child_environment
from bench._postgres import Postgres
from bench._report import last_line, progress, table
from bench._stretch import LOG, SETTINGS, Reading, with_log
from skitter.archive.objects import Objects
from skitter.frontier.log.base import Log, Standing
from skitter.frontier.log.checkpoints import Checkpoints
from skitter.frontier.opening import log_of, open_logged_frontier, standby_in
from skitter.settings import Settings
from skitter.testing.clock import FakeClock

MOST_CPU, MOST_US, MOST_WAL = 1.2, 40.0, 600.0


class Cost(msgspec.Struct, kw_only=True):
    """Of one run: the frontier's own CPU, and the database's, a page."""

    us_per_page: float
    us_per_url: float
    paced: float
    """CPU a page in units of a fixed piece of work that was timed along the way: a busy machine slows both."""
    database_us: float = 0.0
    wal: float = 0.0
    wall: float = 0.0


def stretch(folder: Path, options: argparse.Namespace, database: Postgres | None) -> Cost:
    environ = {**child_environment(), LOG: database.url if database else ""}
    numbers = map(str, (options.urls, options.hosts, options.pages, options.seed, 0))
    child = subprocess.Popen(
        [sys.executable, "-m", "bench._stretch", str(folder), *numbers], env=environ, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    readings: list[Reading] = []
    spent: list[tuple[float, int]] = []
    for line in child.stdout:
        readings.append(msgspec.json.decode(line, type=Reading))
        spent.append((database.cpu(), database.wal()) if database else (0.0, 0))
    child.wait()
    crawled = [number for number, reading in enumerate(readings) if reading.phase == "crawl"]
    first, last = crawled[0] - 1, crawled[-1]
    pages = readings[last].pages - readings[first].pages
    return Cost(
        us_per_page=statistics.median(readings[number].us_per_page for number in crawled),
        paced=statistics.median(readings[number].us_per_page / readings[number].pace for number in crawled),
        us_per_url=statistics.median(each.us_per_url for each in readings if each.phase == "admit"),
        database_us=(spent[last][0] - spent[first][0]) * 1e6 / pages,
        wal=(spent[last][1] - spent[first][1]) / pages,
        wall=(readings[last].wall - readings[first].wall) * 1e6 / pages,
    )


async def first_lease(folder: Path, settings: Settings, files: Objects | None) -> float:
    """Seconds from an empty or older folder to the first host that is given."""
    began = time.monotonic()
    clock = FakeClock(time.time() + 1e6)
    frontier, _ = open_logged_frontier(folder, settings, clock, fetch=files.fetch if files else None)
    leases = await frontier.lease("bench", 1, 60.0)
    assert leases
    took = time.monotonic() - began
    await frontier.close()
    return took


async def checkpoint(folder: Path, settings: Settings, files: Objects) -> tuple[float, int]:
    """As the owner takes one: seconds, and bytes in the object store."""
    frontier, store = open_logged_frontier(folder, settings, FakeClock(time.time()))
    began = time.monotonic()
    await Checkpoints(store, files, folder, 300.0).take()
    took = time.monotonic() - began
    await frontier.close()
    return took, sum(files.list().values())


def _until_silent(log: Log) -> Standing:
    """The owner's death is noticed after its lapse; what is measured begins then."""
    while (standing := log.standing()) is None or not standing.is_free:
        time.sleep(0.2)
    log.close()
    return standing


def takeovers(place: Path, owner: Path, database: Postgres) -> dict[str, float]:
    settings = with_log(SETTINGS, database.url)
    files = Objects(f"file://{place}/objects")
    took: dict[str, float] = {}
    standing = _until_silent(log_of(settings.frontier))
    progress("another machine replays the whole log")
    took["whole log, s"] = asyncio.run(first_lease(place / "cold" / "frontier", settings, None))
    took["commits replayed"] = standing.sequence
    shutil.rmtree(place / "cold")
    progress("a checkpoint")
    took["checkpoint, s"], size = asyncio.run(checkpoint(owner, settings, files))
    took["checkpoint, MB"] = size / 1e6
    progress("another machine begins with the checkpoint")
    took["from the checkpoint, s"] = asyncio.run(first_lease(place / "second" / "frontier", settings, files))
    progress("a standby")
    warm = place / "third" / "frontier"
    warm.parent.mkdir()
    standby = standby_in(warm, settings.frontier, log_of(settings.frontier), files.fetch)
    standby.step()
    standby.close()
    took["from a standby, s"] = asyncio.run(first_lease(warm, settings, files))
    return took


def run(options: argparse.Namespace, place: Path) -> int:
    alone: list[Cost] = []
    logged: list[Cost] = []
    with Postgres() as database:
        owner = place / "logged" / "frontier"
        owner.parent.mkdir()
        for turn in range(options.turns):
            progress(f"turn {turn + 1}: RocksDB alone")
            alone.append(stretch(place / f"alone-{turn}", options, None))
            progress(f"turn {turn + 1}: with a log")
            if turn == options.turns - 1:
                logged.append(stretch(owner, options, database))
            else:
                with Postgres() as other:
                    logged.append(stretch(place / f"logged-{turn}", options, other))
        took = takeovers(place, owner, database)
    return show(options, alone, logged, took)


def show(options: argparse.Namespace, alone: list[Cost], logged: list[Cost], took: dict[str, float]) -> int:
    def median(costs: list[Cost], field: str) -> float:
        return float(statistics.median(getattr(cost, field) for cost in costs))

    names = ("us_per_page", "us_per_url", "database_us", "wal", "wall")
    words = (
        "frontier's CPU, us a page",
        "frontier's CPU, us a new URL",
        "database's CPU, us a page",
        "WAL, bytes a page",
        "elapsed, us a page",
    )
    rows = [
        (word, median(alone, name), median(logged, name)) for word, name in zip(words, names, strict=True)
    ]
    print(table([("", "RocksDB alone", "with a log"), *rows]))
    print(table([("take-over", ""), *((name, round(value, 2)) for name, value in took.items())]))
    ratio = median(logged, "paced") / median(alone, "paced")
    misses = {
        "frontier's CPU": ratio > MOST_CPU,
        "database's CPU": median(logged, "database_us") > MOST_US,
        "WAL": median(logged, "wal") > MOST_WAL,
    }
    print(
        f"frontier's CPU with a log: {ratio:.2f} times that without",
        *(n for n, is_missed in misses.items() if is_missed),
    )
    figures = {name: [round(median(costs, name), 1) for costs in (alone, logged)] for name in names}
    last_line({"bench": "log", "urls": options.urls, **figures, "ratio": round(ratio, 3), **took})
    return int(any(misses.values()))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.log", description=__doc__.splitlines()[0])
    parser.add_argument("--urls", type=int, default=200_000)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="skitter-log-", dir=os.environ.get("TMPDIR")) as place:
        return run(options, Path(place))


if __name__ == "__main__":
    sys.exit(main())
