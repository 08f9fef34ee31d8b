"""The chaos trial: one crawl of the synthetic web, given no peace for minutes, must still end exact.

    python -m bench.chaos --kills 200 --pauses 50 --pages 50000

Kills, pauses past the lease, clocks that jump between runs, torn and dirtied files and full disks strike at
seeded moments. Then the web's request log, the frontier's ledger and the archive are compared pairwise, and the
log is audited for manners. A table, the faults, one JSON object as the last line; exit code 1 when there is any.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench._account import Account
from bench._crawls import LogSize, web_crawl, write_quick_settings
from bench._damage import SmallDisk
from bench._jumps import library
from bench._report import last_line, progress, table
from bench._torment import JUMPS, Damage, Torment, Torments, planned
from bench._verdict import ATTEMPTS, dearest, toll, verdict
from skitter.testing.features import RobotsKind
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb

SHOWN = 10
PAGES_A_HOST = 25


def run(options: argparse.Namespace, folder: Path) -> int:
    plan = plan_of(options)
    config, log = folder / "quick.toml", folder / "requests.jsonl"
    write_quick_settings(config, delay=options.delay, segment_size=options.segment_size, lease=options.lease)
    expected = sum(row.requests(ATTEMPTS) for row in plan.expected().values()) + plan.hosts
    choose = random.Random(options.seed)
    if library() is None:
        progress("clocks do not jump: there is no C compiler to build one that can be set")
    with small_disk(folder / "disk") as (place, disk):
        acts = planned(
            choose,
            kills=options.kills,
            pauses=options.pauses,
            fills=options.fills if disk else 0,
            leaps=options.leaps if options.jumps and library() else 0,
        )
        latency = (0.0, options.latency)
        with SyntheticWeb(plan, log=log, latency=latency) as web, (folder / "output").open("ab") as output:
            command = web_crawl(web, place / "crawl", config, "--workers", str(options.workers))
            torment = Torment(
                command,
                place / "crawl",
                LogSize(log),
                expected,
                choose,
                options.lease,
                disk,
                jumps=options.jumps,
                damage=options.damage,
            )
            done = torment.run(acts, output)
        if options.keep:
            keep(place / "crawl", folder, done)
        progress("reading the log, the ledger and the archive")
        result = verdict(
            place / "crawl",
            log,
            plan,
            options.delay,
            done.deaths,
            runs=done.runs,
            pauses=done.pauses,
            others=done.others,
            starved=done.starved,
        )
    withheld = sum(plan.robots_kind(host) is RobotsKind.UNAVAILABLE for host in range(plan.hosts))
    result.blame("exit code", done.faults)
    if done.code != (3 if withheld else 0):
        result.blame("exit code", [f"{done.code} at the end"])
    show(options, plan, done, result)
    return 1 if result.faults else 0


def plan_of(options: argparse.Namespace) -> WebPlan:
    """A Crawl-delay that is longer than a start takes: a host that was forgotten would be asked too soon."""
    hosts = max(1, options.pages // PAGES_A_HOST)
    return WebPlan(seed=options.seed, hosts=hosts, pages=PAGES_A_HOST, crawl_delay=options.crawl_delay)


@contextmanager
def small_disk(place: Path) -> Iterator[tuple[Path, SmallDisk | None]]:
    disk = SmallDisk(place)
    if why := disk.mount():
        progress(f"the disk is not filled: {why}")
        yield place, None
        return
    try:
        yield place, disk
    finally:
        disk.unmount()


def keep(crawl: Path, folder: Path, done: Torments) -> None:
    """What the verdict is made of, off a disk that goes away with the trial."""
    (folder / "done.json").write_bytes(msgspec.json.encode(done))
    if not (folder / "crawl").exists():
        shutil.copytree(crawl, folder / "crawl", ignore=shutil.ignore_patterns("*.sock"))


def show(options: argparse.Namespace, plan: WebPlan, done: Torments, result: Account) -> None:
    faults = {kind: len(lines) for kind, lines in result.faults.items()}
    figures: dict[str, int | float] = {
        "hosts": plan.hosts,
        "runs": len({run.ended for run in done.runs}),
        **dict(sorted(done.counts.items())),
        "seconds": round(done.seconds, 1),
        "of these without a core": round(sum(end - begin for begin, end in done.starved), 1),
        **toll(result),
    }
    print(table([("", "count"), *figures.items(), *((f"FAULT {kind}", n) for kind, n in faults.items())]))
    heading = ("the dearest deaths", "in flight", "answered", "at most", "oldest, s")
    print("", table([heading, *dearest(result, done.runs[0].began, SHOWN)]), sep="\n")
    for kind, lines in result.faults.items():
        print(f"\n{kind}:", *lines[:SHOWN], sep="\n    ")
    named = {name.replace(",", "").replace(" ", "_"): value for name, value in figures.items()}
    last_line({"bench": "chaos", "seed": options.seed, "exit_code": done.code, **named, "faults": faults})


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.chaos", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--pauses", type=int, default=50)
    parser.add_argument("--fills", type=int, default=10, help="how often the disk is full; needs root")
    parser.add_argument(
        "--workers", type=int, default=0, help="processes; 0: one, and more when that is busy"
    )
    parser.add_argument("--jumps", type=float, default=JUMPS, help="share of the runs with another clock")
    parser.add_argument("--leaps", type=int, default=20, help="how often the clock is set while it runs")
    damages = tuple(Damage)
    parser.add_argument("--damage", type=Damage, choices=damages, default=Damage.ALL, help="after a kill")
    parser.add_argument("--pages", type=int, default=50_000, help="of the whole web, about")
    parser.add_argument("--seed", type=int, default=1, help="of the web and of what happens when")
    parser.add_argument("--delay", type=float, default=0.1, help="seconds between two requests to a host")
    parser.add_argument("--crawl-delay", type=float, default=1.5, help="what some hosts ask for instead (s)")
    parser.add_argument("--lease", type=float, default=2.0, help="seconds a lease lasts")
    parser.add_argument("--latency", type=float, default=0.2, help="think time of the slowest host (s)")
    parser.add_argument("--segment-size", type=int, default=2_000_000, help="small: segments end often")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave everything in this new folder")
    options = parser.parse_args(arguments)
    if options.keep:
        options.keep.mkdir(parents=True)
        return run(options, options.keep)
    with tempfile.TemporaryDirectory(prefix="skitter-chaos-") as folder:
        return run(options, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
