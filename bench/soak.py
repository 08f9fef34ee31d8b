"""Hours of a served crawl with three workers, while everything goes wrong at once.

    python -m bench.soak --minutes 120

A server and three workers crawl the synthetic web. Workers are killed, drained and stopped past their leases, and
start again with other clocks; so does the server, in the first quarter. Proxies cut connections, the disk is full
now and then until the middle, a worker that was taken over delivers what is malformed, and strangers stand at the
door, at the address that the workers come from. Memory, descriptors, threads, disk and the latency of calls are
looked at every few seconds. In the end nothing may be lost, twice or impolite (as `bench.processes` judges it),
and the server's memory may grow by 1 % an hour at most, in the last third of its longest life: its caches are
small, so that they are full by then, and a life of less than an hour is not judged. A picture (`--picture`), a
table, one JSON object as the last line; exit code 1 on any fault.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from statistics import linear_regression, quantiles
from typing import NamedTuple
from urllib.parse import urlsplit

from bench._account import Account, Cause, Death
from bench._chart import chart
from bench._company import Company, Process, without_pandas
from bench._crawls import LogSize, child_environment, skitter_command
from bench._cuts import CuttingProxy
from bench._damage import SmallDisk
from bench._mallory import Mallory
from bench._report import last_line, progress, table
from bench._targets import Target, show_targets
from bench._torment import SPARE, Act, Torments
from bench._unrest import Strike, Unrest
from bench._verdict import ATTEMPTS, toll, verdict
from bench.chaos import SHOWN
from bench.processes import free_port, plan_of, settings_of, verified, worker_of
from skitter.testing.web import SyntheticWeb

STRANGERS = ("heads", "halves", "idle")
GROWTH_AN_HOUR = 1.0
_PAGE = os.sysconf("SC_PAGE_SIZE")
_FULL_FOR, _LOOKS_AGAIN = 6.0, 10.0
# Of the server's longest life: below that its caches still fill.
LEAST_HOURS = 1.0
# Bytes of the frontier's caches: so few are full soon, and what still grows then is a leak.
_MEMORY = 16_000_000
# Requests to each host that kills repeat, about.
_REPEATED = 3


class Sample(NamedTuple):
    minute: float
    pid: int
    mb: float
    descriptors: int
    threads: int
    disk_mb: float
    lease_ms: float


class Watch:
    """Looks at the server every few seconds; troubles beside the strikes are done here too."""

    def __init__(self, company: Company, crawl: Path, where: str, every: float) -> None:
        self._company, self._crawl, self._where, self._every = company, crawl, where, every
        self._ended = threading.Event()
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.samples: list[Sample] = []

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join(60)

    def _run(self) -> None:
        while not self._ended.wait(self._every):
            server = self._company.server._child
            with suppress(OSError, ValueError, IndexError):
                if server is not None and self._company.is_up and self._company.server.wakes_at is None:
                    self.samples.append(self._look(server))

    def _look(self, server: subprocess.Popen[bytes]) -> Sample:
        of_it = Path(f"/proc/{server.pid}")
        return Sample(
            (time.monotonic() - self._began) / 60,
            server.pid,
            int((of_it / "statm").read_text().split()[1]) * _PAGE / 1e6,
            len(os.listdir(of_it / "fd")),
            len(os.listdir(of_it / "task")),
            sum(file.stat().st_size for file in self._crawl.rglob("*") if file.is_file()) / 1e6,
            self._latency(),
        )

    def _latency(self) -> float:
        """Of the smallest call that waits for the same loop as a lease does."""
        began = time.perf_counter()
        with urllib.request.urlopen(f"{self._where}/v1/health", timeout=30) as answer:
            answer.read()
        return (time.perf_counter() - began) * 1000


class Troubles:
    """Strangers at the door, one kind after the other, and now and then a full disk."""

    def __init__(self, port: int, disk: SmallDisk | None, fills: int, seconds: float) -> None:
        self._port, self._disk = port, disk
        self._left, self._fill_every = fills, seconds / 2 / (fills + 1)
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=work, daemon=True)
            for work in (self._stand_at_the_door, self._fill_the_disk)
        ]
        self.crowds = self.fills = 0
        self.full: list[tuple[float, float]] = []

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(90)

    def deaths(self) -> list[Death]:
        """The moments at which a full disk may have taken what was not committed."""
        return [
            Death(began + second, Cause.FULL, began)
            for began, ended in self.full
            for second in range(int(ended - began) + 1)
        ]

    def _stand_at_the_door(self) -> None:
        while not self._ended.is_set():
            kind = STRANGERS[self.crowds % len(STRANGERS)]
            command = [sys.executable, "-m", "bench._strangers", kind, "127.0.0.1", str(self._port), "20"]
            subprocess.run(command, env=child_environment(), capture_output=True, check=False)
            self.crowds += 1
            self._ended.wait(10)

    def _fill_the_disk(self) -> None:
        while self._disk is not None and self._left and not self._ended.wait(self._fill_every):
            self._left -= 1
            began = time.time()
            self._disk.fill(SPARE)
            self._ended.wait(_FULL_FOR)
            self._disk.free()
            self.fills += 1
            self.full.append((began, time.time() + _LOOKS_AGAIN))


def strikes_of(choose: random.Random, options: argparse.Namespace) -> list[Strike]:
    """On workers all the time; on the server only in the first quarter, so that it then has a long life."""
    acts = [Act.KILL, Act.PAUSE, Act.EARLY_KILL, Act.DRAIN_KILL]
    found = [
        Strike(choose.uniform(0.02, 0.97), choose.choice(acts), choose.randint(1, options.workers))
        for _ in range(options.strikes)
    ]
    found += [Strike(choose.uniform(0.02, 0.25), act, 0) for act in (Act.KILL, Act.PAUSE, Act.DRAIN_KILL)]
    return sorted(found)


def delay_of(options: argparse.Namespace) -> float:
    """So long between two requests to a host that the one with most pages takes all the time."""
    options.crawl_delay = 1.0  # of the plan that is only counted
    asked: Counter[str] = Counter()
    for url, row in plan_of(options).expected().items():
        asked[urlsplit(url).netloc] += row.requests(ATTEMPTS)
    seconds: float = options.minutes * 60
    return seconds / (max(asked.values()) + _REPEATED)


def run(options: argparse.Namespace, folder: Path) -> int:
    options.delay = options.crawl_delay = delay_of(options)
    plan = plan_of(options)
    log, choose = folder / "requests.jsonl", random.Random(options.seed)
    expected = sum(row.requests(ATTEMPTS) for row in plan.expected().values()) + plan.hosts
    with ExitStack() as stack:
        disk = SmallDisk(folder / "disk")
        if why := disk.mount():
            progress(f"the disk is not filled: {why}")
        else:
            stack.callback(disk.unmount)
        crawl = disk.place / "crawl"
        web = stack.enter_context(SyntheticWeb(plan, log=log, latency=(0.0, options.latency)))
        port = free_port()
        proxies = [stack.enter_context(CuttingProxy(port, choose)) for _ in range(options.workers)]
        output = stack.enter_context((folder / "output").open("ab"))
        place = ("--listen", f"127.0.0.1:{port}", "--config", str(settings_of(options, web, folder)))
        environ = without_pandas(folder / "without")
        serve = skitter_command("serve", str(crawl), *web.seeds, *place, "--json")
        small = {**environ, "SKITTER_FRONTIER_MEMORY": str(_MEMORY)}
        server = Process("server", serve, output, small)
        workers = [
            Process(f"worker {number}", worker_of(proxy, folder / f"worker-{number}.log"), output, environ)
            for number, proxy in enumerate(proxies, start=1)
        ]
        company = Company(port, server, workers, Torments())
        stack.callback(company.leave)
        where = f"http://127.0.0.1:{port}"
        watch, mallory = Watch(company, crawl, where, options.every), Mallory(where, options.seed)
        troubles = Troubles(port, None if why else disk, options.fills, options.minutes * 60)
        for beside in (watch, mallory, troubles):
            beside.start()
        unrest = Unrest(company, LogSize(log), expected, choose, options.lease, give_up=options.minutes * 240)
        try:
            done = unrest.run(strikes_of(choose, options))
        finally:
            for beside in (troubles, mallory, watch):
                beside.end()
        progress("reading the log, the ledger and the archive")
        result = verdict(
            crawl,
            log,
            plan,
            options.delay,
            done.deaths,
            runs=done.runs,
            pauses=[*done.pauses, *troubles.full],
            others=troubles.deaths(),
        )
        result.blame("exit code", done.faults)
        result.blame("skitter verify", verified(crawl))
        if mallory.taken:
            result.blame("malformed delivery taken", [str(mallory.taken)])
    counts = {
        **dict(sorted(done.counts.items())),
        "connections cut": sum(proxy.cuts for proxy in proxies),
        "malformed deliveries": mallory.sent,
        "crowds at the door": troubles.crowds,
        "full disks": troubles.fills,
        "minutes": round(done.seconds / 60, 1),
    }
    return show(options, counts, watch.samples, mallory.waits, result)


def longest_life(samples: list[Sample]) -> list[Sample]:
    """Of one server process."""
    lives = {sample.pid: [one for one in samples if one.pid == sample.pid] for sample in samples}
    return max(lives.values(), key=len, default=[])


def growth_an_hour(life: list[Sample]) -> float:
    """Per cent, over the last third of a life: in peace 26,000 pages took a server from 95 to 131 MB, and the
    next 6,000 to 132."""
    last = life[len(life) * 2 // 3 :]
    if len(last) < 3:
        return 0.0
    slope = linear_regression([one.minute for one in last], [one.mb for one in last]).slope
    return slope * 60 / last[0].mb * 100


def lease_waits(waits: list[float]) -> dict[str, float]:
    if len(waits) < 2:
        return {}
    cuts = quantiles(waits, n=100)
    return {f"{words} of a lease, ms": round(cuts[at], 1) for words, at in (("median", 49), ("99th", 98))}


def show(
    options: argparse.Namespace,
    counts: dict[str, int | float],
    samples: list[Sample],
    leases: list[float],
    result: Account,
) -> int:
    life = longest_life(samples)
    faults = {kind: len(lines) for kind, lines in result.faults.items()}
    waits = [one.lease_ms for one in samples]
    p99 = quantiles(waits, n=100)[98] if len(waits) > 1 else 0.0
    figures: dict[str, int | float] = {
        **counts,
        **toll(result),
        "99th percentile of a call, ms": round(p99, 1),
        **lease_waits(leases),
    }
    print(table([("", "count"), *figures.items(), *((f"FAULT {kind}", n) for kind, n in faults.items())]))
    rows = [("minute", "MB", "descriptors", "threads", "disk, MB", "call, ms")]
    step = max(1, len(samples) // 20)
    print(
        "", table([*rows, *((*map(float, (one.minute, *one[2:])),) for one in samples[::step])]), "", sep="\n"
    )
    target = Target("growth of the server's memory, % an hour", growth_an_hour(life), most=GROWTH_AN_HOUR)
    is_judged = life_hours(life) >= LEAST_HOURS
    show_targets([target] if is_judged else [])
    for kind, lines in result.faults.items():
        print(f"\n{kind}:", *lines[:SHOWN], sep="\n    ")
    if options.picture:
        draw(options.picture, samples)
    last_line(
        {
            "bench": "soak",
            "seed": options.seed,
            **figures,
            "faults": faults,
            "growth": target.row() if is_judged else "not judged: too short a life",
            "hours": life_hours(life),
        }
    )
    return 1 if result.faults or (is_judged and not target.met) else 0


def life_hours(life: list[Sample]) -> float:
    return round((life[-1].minute - life[0].minute) / 60, 2) if life else 0.0


def draw(picture: Path, samples: list[Sample]) -> None:
    names = {
        "mb": "resident memory of the server, MB",
        "descriptors": "descriptors",
        "threads": "threads",
        "disk_mb": "the crawl's folder, MB",
        "lease_ms": "a call to the server, ms",
    }
    panels = {words: [float(getattr(one, name)) for one in samples] for name, words in names.items()}
    title = "A served crawl with three workers, while everything goes wrong at once"
    picture.write_text(chart(title, [one.minute for one in samples], panels))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--minutes", type=float, default=120.0, help="about: politeness makes it last so long"
    )
    parser.add_argument("--pages", type=int, default=20_000, help="of the whole web, about")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--strikes", type=int, default=60, help="on workers")
    parser.add_argument("--fills", type=int, default=2, help="how often the disk is full; needs root")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two looks")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lease", type=float, default=20.0, help="seconds a lease lasts")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--segment-size", type=int, default=2_000_000)
    parser.add_argument("--picture", type=Path, metavar="FILE.svg")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave everything in this new folder")
    options = parser.parse_args(arguments)
    if options.keep:
        options.keep.mkdir(parents=True)
        return run(options, options.keep)
    with tempfile.TemporaryDirectory(prefix="skitter-soak-") as folder:
        return run(options, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
