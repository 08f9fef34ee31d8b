"""Where do a page's microseconds go, stage by stage?

    python -m bench.profile            # a table
    python -m bench.profile --write    # and into docs/performance.md

The mirror crawl of `bench.mirror` (one host, 16 requests at once) runs with a stopwatch on its stages, several
times; beside it, what the same bytes cost nginx, memcpy, SHA-256 and gzip. One JSON object as the last line; exit
code 2 when a program is missing.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import msgspec

from bench._crawls import run_with_usage
from bench._mirrors import crawl_arguments, machine_cpu
from bench._nginx import serving
from bench._peers import DOCS, PROJECT, complain, found, want
from bench._profiled import Profile
from bench._records import records
from bench._report import last_line, progress, table, ticking
from bench._yardsticks import yardsticks

PAGE = PROJECT / "docs" / "performance.md"
BEGIN, END = "<!-- bench.profile begins -->", "<!-- bench.profile ends -->"
OTHER_THREADS = "other threads (sync, tables, RocksDB)"
EVENT_LOOP = "event loop, the rest"
STOPWATCH = "of all this, the stopwatch itself"


class Crawled(msgspec.Struct):
    """Microseconds a page by stage; `elsewhere` is how many cores were busy with other things meanwhile."""

    pages: int
    stages: dict[str, float]
    total: float
    stopwatch: float
    elsewhere: float


def crawled(port: int, number: int) -> Crawled:
    with (
        tempfile.TemporaryDirectory(prefix="skitter-profile-") as name,
        ticking(f"crawl {number}", every=10.0),
    ):
        folder = Path(name)
        report = folder / "profile.json"
        command = [sys.executable, "-m", "bench._profiled", str(report), *crawl_arguments(port, folder)]
        before = machine_cpu()
        usage = run_with_usage(command)
        if usage.code:
            raise SystemExit(f"the crawl ended with {usage.code}")
        elsewhere = (machine_cpu() - before - usage.cpu) / usage.wall
        profile = msgspec.json.decode(report.read_bytes(), type=Profile)
        pages = sum(record.status == 200 for record in records(folder / "crawl" / "archive"))
    return told(profile, pages, elsewhere)


def told(profile: Profile, pages: int, elsewhere: float) -> Crawled:
    each = 1e6 / pages
    stages = {stage: seconds * each for stage, seconds in profile.spent.items()}
    stages[EVENT_LOOP] = stages.pop("outside", 0.0)
    stages[OTHER_THREADS] = (profile.process - sum(profile.spent.values())) * each
    stopwatch = sum(profile.calls.values()) * profile.overhead * each
    return Crawled(pages, stages, profile.process * each, stopwatch, elsewhere)


def rows_of(rounds: Sequence[Crawled]) -> list[tuple[str, float, str]]:
    """Stage, us a page, share; the dearest first, the total last."""
    total = median(done.total for done in rounds)
    middle = {stage: median(done.stages[stage] for done in rounds) for stage in rounds[0].stages}
    rows = [(stage, us, f"{us / total:.0%}") for stage, us in sorted(middle.items(), key=lambda row: -row[1])]
    rows.append(("all", total, "100%"))
    watch = median(done.stopwatch for done in rounds)
    return [*rows, (STOPWATCH, watch, f"{watch / total:.0%}")]


def written(rounds: Sequence[Crawled], sticks: Mapping[str, float]) -> str:
    busy = median(done.elsewhere for done in rounds)
    lines = [
        BEGIN,
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores of {platform.machine()}, Python"
        f" {platform.python_version()}; {rounds[0].pages:,} pages, medians of {len(rounds)} crawls;"
        f" {busy:.1f} cores were busy with other things (nginx takes 0.1 to 0.3).",
        "",
        "| stage | us a page | share |",
        "|---|---:|---:|",
        *(f"| {stage} | {us:,.0f} | {share} |" for stage, us, share in rows_of(rounds)),
        "",
        "| the same page | us of CPU |",
        "|---|---:|",
        *(f"| {name} | {us:,.1f} |" for name, us in sticks.items()),
        END,
    ]
    return "\n".join(lines)


def write(text: str, page: Path = PAGE) -> None:
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page} has no place for the table: {BEGIN} and {END}")
    page.write_text(before + text + after)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="refresh the table in docs/performance.md")
    parser.add_argument("--quick", action="store_true", help="one crawl")
    options = parser.parse_args(arguments)
    absent = want("nginx", "openjdk-17-doc")
    if absent:
        return complain("profile", absent)
    if want("wrk"):
        progress("wrk is missing: nginx is not measured")
    with tempfile.TemporaryDirectory(prefix="skitter-nginx-") as folder:
        os.chmod(folder, 0o755)
        with serving(found("nginx") or "nginx", DOCS, Path(folder)) as port:
            rounds = [
                crawled(port, number) for number in range(1, (1 if options.quick else options.rounds) + 1)
            ]
    sticks = yardsticks(DOCS)
    print(
        table(
            [("stage", "us a page", "share"), *((s, round(us, 1), part) for s, us, part in rows_of(rounds))]
        )
    )
    print(table([("the same page", "us of CPU"), *((name, round(us, 1)) for name, us in sticks.items())]))
    if options.write:
        write(written(rounds, sticks))
    last_line(
        {
            "bench": "profile",
            "pages": rounds[0].pages,
            "crawls": [msgspec.to_builtins(done) for done in rounds],
            "yardsticks": {name: round(us, 2) for name, us in sticks.items()},
        }
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
