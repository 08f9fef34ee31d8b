"""The kill trial: a crawl of the synthetic web is killed (`kill -9`) again and again, and must still end exact.

    python -m bench.kills --kills 10 --hosts 1000 --pages 20

With `--items` an extractor makes items of every page, and what is in the table must be what the archived pages
give when it runs over them again, each once.

The same command is started again after each kill and at last left to finish. Then the web's request log, the
frontier's ledger and the archive are compared pairwise, and the log is audited for manners. A table, the faults,
one JSON object as the last line; exit code 1 when there is any fault.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec

from bench._account import Account
from bench._crawls import LogSize, start, web_crawl, write_quick_settings
from bench._items import PLUGIN, compare_items
from bench._report import last_line, progress, table
from bench._verdict import ATTEMPTS, verdict
from skitter.testing.features import RobotsKind
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb

SHOWN = 10
# Of every four kills one strikes while the crawl starts (recovery must be able to die) and one shortly after a
# Ctrl-C (so must draining and closing); the others strike a crawl at full speed.
CYCLE, EARLY, DRAINING = 4, 0, 2
EARLIEST, LATEST = 0.05, 1.5
DRAIN = 0.6
INTERRUPTED = 130
GIVE_UP = 1800.0


class Trial(msgspec.Struct, kw_only=True):
    kills: list[float]
    code: int
    seconds: float
    runs: int


class Killer:
    """Starts the crawl, kills it when its moment has come, and starts it again."""

    def __init__(
        self, command: list[str], size: LogSize, moments: list[float], expected: int, seed: int
    ) -> None:
        self._command = command
        self._size = size
        self._moments = moments
        self._expected = expected
        self._random = random.Random(seed)
        self._began = time.monotonic()

    def run(self, output: IO[bytes]) -> Trial:
        kills: list[float] = []
        self._output = output
        for number, moment in enumerate(self._moments, start=1):
            child = start(self._command, output)
            code = self._wait_until_due(child, moment, number)
            if code == INTERRUPTED:
                continue
            if code is not None:
                return self._trial(kills, code)
            child.kill()
            child.wait()
            # Not when the signal was sent: a request that the web had not read yet is stamped with the closing
            # of its connection, which the kernel does while the process dies.
            kills.append(time.time())
        child = start(self._command, output)
        code = self._await(child, lambda: False, "left to finish")
        return self._trial(kills, -1 if code is None else code)

    def _trial(self, kills: list[float], code: int) -> Trial:
        return Trial(kills=kills, code=code, seconds=time.monotonic() - self._began, runs=len(kills) + 1)

    def _wait_until_due(self, child: subprocess.Popen[bytes], moment: float, number: int) -> int | None:
        """The exit code when the crawl was quicker."""
        if number % CYCLE == EARLY:
            return _exit_within(child, self._random.uniform(EARLIEST, LATEST))
        # Python has a Ctrl-C of its own while it starts: wait for the crawl's first words.
        silent = self._said()
        code = self._wait_for(child, moment, number)
        if code is None and number % CYCLE == DRAINING:
            code = self._await(child, lambda: self._said() > silent, "it has not spoken yet")
        if code is None and number % CYCLE == DRAINING:
            child.send_signal(signal.SIGINT)
            return _exit_within(child, self._random.uniform(0, DRAIN))
        return code

    def _said(self) -> int:
        return os.fstat(self._output.fileno()).st_size

    def _wait_for(self, child: subprocess.Popen[bytes], moment: float, number: int) -> int | None:
        """Until the web has seen its share of the requests, and then somewhere within the next few pulses."""
        target = int(moment * self._expected)
        words = f"kill {number} of {len(self._moments)} is due at {target:,}"
        code = self._await(child, lambda: self._size.look() >= target, words)
        if code is None:
            time.sleep(self._random.uniform(0, 0.2))
        return code

    def _await(self, child: subprocess.Popen[bytes], there: Callable[[], bool], words: str) -> int | None:
        next_words = 0.0
        while not there():
            try:
                return child.wait(0.05)
            except subprocess.TimeoutExpired:
                pass
            now = time.monotonic()
            if now - self._began > GIVE_UP:
                child.kill()
                raise SystemExit(f"the crawl did not end within {GIVE_UP:g} s")
            if now > next_words:
                progress(
                    f"{now - self._began:5.0f} s  {self._size.look():,} of {self._expected:,} requests; {words}"
                )
                next_words = now + 1
        return None


def _exit_within(child: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def run(options: argparse.Namespace, folder: Path) -> int:
    plan = WebPlan(seed=options.seed, hosts=options.hosts, pages=options.pages)
    config = folder / "quick.toml"
    write_quick_settings(config, delay=options.delay, segment_size=options.segment_size)
    log = folder / "requests.jsonl"
    expected = sum(row.requests(ATTEMPTS) for row in plan.expected().values()) + plan.hosts
    choose = random.Random(options.seed)
    moments = sorted(choose.uniform(0, 0.99) for _ in range(options.kills))
    latency = (0.0, options.latency)
    with SyntheticWeb(plan, log=log, latency=latency) as web, (folder / "output").open("ab") as output:
        more = ["--workers", str(options.workers)] if options.workers else []
        more += ["--with", str(PLUGIN)] if options.items else []
        command = web_crawl(web, folder / "crawl", config, *more)
        trial = Killer(command, LogSize(log), moments, expected, options.seed).run(output)
    progress("reading the log, the ledger and the archive")
    result = verdict(folder / "crawl", log, plan, options.delay, trial.kills)
    wanted = (
        3 if any(kind is RobotsKind.UNAVAILABLE for kind in map(plan.robots_kind, range(plan.hosts))) else 0
    )
    if options.items:
        progress("making the items again")
        items, differing = compare_items(folder / "crawl")
        result.blame("items", differing)
        print(f"{items:,} items, the same when they are made again" if not differing else "items differ")
    if trial.code != wanted:
        result.blame("exit code", [f"{trial.code}, not {wanted}"])
    show(options, plan, trial, result)
    return 1 if result.faults else 0


def show(options: argparse.Namespace, plan: WebPlan, trial: Trial, result: Account) -> None:
    withheld = sum(plan.robots_kind(host) is RobotsKind.UNAVAILABLE for host in range(plan.hosts))
    rows: list[tuple[str, object]] = [
        ("", "count"),
        ("hosts", plan.hosts),
        ("of them without a readable robots.txt", withheld),
        ("kills", len(trial.kills)),
        ("seconds", trial.seconds),
        ("requests the web saw", result.requests),
        ("fetches the frontier settled", result.settled),
        ("records in the archive", result.archived),
        ("requests lost in flight", result.lost_in_flight),
        ("requests lost answered, not settled", result.lost_unsettled),
        ("oldest of these at its kill, s", result.oldest_lost),
        ("most lost in one kill", result.most_lost),
        *((f"FAULT {kind}", len(lines)) for kind, lines in result.faults.items()),
    ]
    print(table(rows))
    for kind, lines in result.faults.items():
        print(f"\n{kind}:", *lines[:SHOWN], sep="\n    ")
    last_line(
        {
            "bench": "kills",
            "hosts": plan.hosts,
            "pages": plan.pages,
            "seed": options.seed,
            "kills": len(trial.kills),
            "seconds": round(trial.seconds, 1),
            "exit_code": trial.code,
            "requests": result.requests,
            "settled": result.settled,
            "archived": result.archived,
            "lost_in_flight": result.lost_in_flight,
            "lost_unsettled": result.lost_unsettled,
            "oldest_lost_seconds": round(result.oldest_lost, 3),
            "most_lost_in_one_kill": result.most_lost,
            "faults": {kind: len(lines) for kind, lines in result.faults.items()},
        }
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.kills", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the web and of the moments of the kills")
    parser.add_argument("--delay", type=float, default=0.2, help="seconds between two requests to a host")
    parser.add_argument("--latency", type=float, default=0.2, help="think time of the slowest host (s)")
    parser.add_argument("--segment-size", type=int, default=4_000_000, help="small: segments end often")
    parser.add_argument("--workers", type=int, default=0, help="worker processes; 0 leaves it to the crawl")
    parser.add_argument("--items", action="store_true", help="with a plugin, whose items must be exact too")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="leave crawl, log and output in this new folder"
    )
    options = parser.parse_args(arguments)
    if options.keep:
        options.keep.mkdir(parents=True)
        return run(options, options.keep)
    with tempfile.TemporaryDirectory(prefix="skitter-kills-") as folder:
        return run(options, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
