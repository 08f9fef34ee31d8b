"""Two thousand hosts that drip a byte a second: do they keep the others from being crawled?

    python -m bench.slow --slow 2000

The same good hosts are crawled alone, and with the slow ones among them, in one process with its defaults. The
slow ones must all be under way at once and all end by the stall limit, and the good ones keep four fifths of
their pages a second. A table and one JSON object as the last line; exit code 1 otherwise.
"""

from __future__ import annotations

import argparse
import sys

from bench._mixed import Pass, Plan, bad_seed, crawl
from bench._report import last_line, table
from skitter.testing.hostile.catalogue import CATALOGUE

LEAST_SHARE = 0.8
SLOW = CATALOGUE["slow-body"]
# Some have not begun when the first ones are given up.
UNDER_WAY = 0.95


def figures(done: Pass) -> dict[str, float]:
    return {**done.figures(), "stalled": done.stats["failures"].get("stalled", 0)}


def faults(alone: Pass, mixed: Pass, slow: int) -> list[str]:
    found = []
    if lost := alone.archived - mixed.archived:
        found.append(f"{len(lost):,} good pages missing: {' '.join(sorted(lost)[:5])}")
    if mixed.rate < LEAST_SHARE * alone.rate:
        found.append(f"good pages at {mixed.rate / alone.rate:.0%} of their rate")
    if mixed.in_flight < UNDER_WAY * slow:
        found.append(f"only {mixed.in_flight:,} requests were under way at once")
    stalled, dead = mixed.stats["failures"].get("stalled", 0), mixed.stats["urls"]["dead_letter"]
    if (stalled, dead) != (slow, slow):
        found.append(f"{stalled:,} of {slow:,} slow ones ended as stalled, {dead:,} as dead letters")
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.slow", description=__doc__.splitlines()[0])
    parser.add_argument("--slow", type=int, default=2000, help="hosts that drip")
    parser.add_argument("--hosts", type=int, default=300, help="good ones")
    parser.add_argument("--pages", type=int, default=45, help="of a good host")
    options = parser.parse_args(arguments)
    plan = Plan(hosts=options.hosts, pages=options.pages, delay=1.0, attempts=1)
    alone = crawl(plan, [], "good hosts alone")
    slow = [bad_seed(SLOW, number) for number in range(options.slow)]
    mixed = crawl(plan, slow, f"with {options.slow:,} slow hosts")
    wrong = faults(alone, mixed, options.slow)
    ours, theirs = figures(alone), figures(mixed)
    rows = [(name.replace("_", " "), ours[name], theirs[name]) for name in ours]
    print(table([("", "good hosts alone", f"with {options.slow:,} slow"), *rows]))
    print(*(wrong or [f"good pages came at {mixed.rate / alone.rate:.1%} of their rate"]), sep="\n")
    last_line(
        {
            "bench": "slow",
            "slow": options.slow,
            "alone": ours,
            "mixed": theirs,
            "share": round(mixed.rate / alone.rate, 3),
            "faults": wrong,
        }
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
