"""What do revisits cost the frontier: arithmetic and bytes, and ten million pages that are kept fresh?

    python -m bench.revisits                          # ten million pages, beside a hundred thousand
    python -m bench.revisits --pages 1000000
    python -m bench.revisits --only arithmetic

A child process writes the pages, each with a date for its next visit, into a frontier, and keeps them fresh for a
while in simulated time with a budget of 2,000 visits a second: promotion with its price, leases, settles. Another
child does the same with few pages by turns, so that the ratio says what size costs. A table, the targets and one
JSON object as the last line; exit code 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench._crawls import child_environment
from bench._report import last_line, progress, table
from skitter.frontier.rows import Found, UrlRow
from skitter.frontier.tables.layout import encode
from skitter.model import UrlState, Via
from skitter.schedule.change_rate import learn, prior_rate, rate_of, rate_of_all
from skitter.schedule.revisit import Visits, days_by_value, pack_visits, unpack_visits

FEW = 300_000
PER_SECOND = 2_000
MOST_US, MOST_BYTES = 5.0, 16
# Of the CPU of one core at that rate, for promotion and price.
MOST_SHARE = 0.5
LEAST_SERVED = 0.95
# What a visit costs with all pages, times one with few.
MOST_GROWTH = 2.0
_LOOPS = 200_000


def arithmetic() -> dict[str, float]:
    """All that is computed for one settled visit, as `engine/revisits.py` does it; the best of five."""
    packed = pack_visits(Visits(changes=1.5, days=20.0, interval=2.0, seen_at=1_767_225_600))
    return {"us_a_settle": min(_time(packed) for _ in range(5)), "bytes_a_url": _bytes(packed)}


def _time(packed: bytes) -> float:
    began = time.process_time()
    for number in range(_LOOPS):
        visits = unpack_visits(packed)
        prior = prior_rate(12.0, 300.0, prior_rate(120.0, 4000.0, rate_of_all(1e4, 1e6)))
        rate = rate_of(visits.changes, visits.days, prior)
        changes, days, _ = learn(visits.changes, visits.days, rate, 2.0, float(number & 1))
        rate = rate_of(changes, days, prior)
        pack_visits(visits._replace(changes=changes, days=days, interval=days_by_value(rate, 1.0, 0.01)))
    return (time.process_time() - began) * 1e6 / _LOOPS


def _bytes(packed: bytes) -> int:
    """By which a row grows whose page has been visited."""

    def size(visits: bytes) -> int:
        row = UrlRow("http://h.test/", UrlState.COMPLETED, 50, Found(1, Via.LINK), due=1.5, visits=visits)
        return len(encode(row))

    return size(packed) - size(b"")


def keep_fresh(folder: Path, pages: int, seconds: int) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "bench._kept_pages",
        str(folder),
        str(pages),
        str(seconds),
        str(PER_SECOND),
    ]
    with subprocess.Popen(command, env=child_environment(), stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        line = ""
        for line in child.stdout:
            progress(line.strip()[:100])
    if child.returncode:
        raise SystemExit(f"the child ended with {child.returncode}")
    told: dict[str, float] = json.loads(line)
    return told


def wrong_in(results: dict[str, dict[str, float]]) -> list[str]:
    wrong, plain, many, few = [], results.get("arithmetic"), results.get("many"), results.get("few")
    if plain and plain["us_a_settle"] > MOST_US:
        wrong.append(f"the arithmetic of a settle takes {plain['us_a_settle']:.1f} us")
    if plain and plain["bytes_a_url"] > MOST_BYTES:
        wrong.append(f"a URL takes {plain['bytes_a_url']:.0f} bytes")
    if many and many["served_a_second"] < LEAST_SERVED * PER_SECOND:
        wrong.append(f"{many['served_a_second']:.0f} visits a second were served")
    if many and many["promote_us"] * PER_SECOND > MOST_SHARE * 1e6:
        wrong.append(f"promotion takes {many['promote_us']:.0f} us a visit")
    if many and few and many["promote_us"] > MOST_GROWTH * few["promote_us"]:
        wrong.append(
            f"promotion costs {many['promote_us'] / few['promote_us']:.1f} times as much with all pages"
        )
    if many and many["violations"]:
        wrong.append(f"{many['violations']:.0f} violations of politeness")
    return wrong


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.revisits", description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=int, default=60, help="simulated, at 2,000 visits each")
    parser.add_argument("--only", choices=("arithmetic",))
    options = parser.parse_args(arguments)
    results: dict[str, dict[str, float]] = {"arithmetic": arithmetic()}
    if options.only is None:
        with tempfile.TemporaryDirectory(prefix="revisits-") as name:
            results["few"] = keep_fresh(Path(name) / "few", min(FEW, options.pages), options.seconds)
            results["many"] = keep_fresh(Path(name) / "many", options.pages, options.seconds)
    for part, told in results.items():
        print(table([(part, ""), *told.items()]), end="\n\n")
    wrong = wrong_in(results)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    last_line({"bench": "revisits", **results, "missed": wrong})
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
