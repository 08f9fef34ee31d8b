"""What hostile hosts cost the good ones: a crawl of good hosts, and the same crawl with hostile ones among them.

    python -m bench.hostile --hosts 2000 --hostile 500

Every misbehaviour of `skitter.testing.hostile` takes its turn. The crawl is bound by politeness, not by the
machine, so what the good hosts lose was taken from them. A table and one JSON object as the last line; exit
code 1 when a good page is missing, the good pages come more than a tenth slower, or the machine was the limit.
"""

from __future__ import annotations

import argparse
import itertools
import sys

from bench._mixed import Pass, Plan, bad_seed, crawl
from bench._report import last_line, table
from skitter.testing.hostile.catalogue import CATALOGUE, FOUND_ONLY

LEAST_SHARE = 0.9
# Of what politeness allows the good hosts alone must come this near, or the machine was the limit and nothing is
# shown.
LEAST_ALONE = 0.95


def hostile_seeds(count: int) -> list[str]:
    cases = itertools.cycle(case for case in CATALOGUE.values() if case.name not in FOUND_ONLY)
    return [bad_seed(case, number) for number, case in zip(range(count), cases, strict=False)]


def figures(done: Pass) -> dict[str, float]:
    return {**done.figures(), "politeness_violations": done.stats["politeness"]["violations"]}


def faults(alone: Pass, mixed: Pass, expected: int, allowed: float) -> list[str]:
    """`allowed` is what politeness allows, pages a second."""
    found = [
        f"{name}: {expected - len(done.archived):,} good pages missing"
        for name, done in (("alone", alone), ("mixed", mixed))
        if len(done.archived) != expected
    ]
    if lost := alone.archived - mixed.archived:
        found.append(f"lost: {' '.join(sorted(lost)[:5])}")
    if alone.rate < LEAST_ALONE * allowed:
        found.append(f"the machine is too busy for {allowed:.0f} pages/s: raise --delay")
    if mixed.rate < LEAST_SHARE * alone.rate:
        found.append(f"good pages at {mixed.rate / alone.rate:.0%} of their rate")
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.hostile", description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=2000, help="good ones")
    parser.add_argument("--hostile", type=int, default=500)
    parser.add_argument("--pages", type=int, default=8, help="of a good host")
    parser.add_argument("--delay", type=float, default=10.0, help="seconds between two requests to a host")
    options = parser.parse_args(arguments)
    plan = Plan(hosts=options.hosts, pages=options.pages, delay=options.delay, attempts=5)
    alone = crawl(plan, [], "good hosts alone")
    mixed = crawl(plan, hostile_seeds(options.hostile), f"with {options.hostile:,} hostile hosts")
    allowed = options.hosts / options.delay
    wrong = faults(alone, mixed, options.hosts * options.pages, allowed)
    ours, theirs = figures(alone), figures(mixed)
    rows = [(name.replace("_", " "), ours[name], theirs[name]) for name in ours]
    print(table([("", "good hosts alone", f"with {options.hostile:,} hostile"), *rows]))
    print(*(wrong or [f"good pages came at {mixed.rate / alone.rate:.1%} of their rate"]), sep="\n")
    failures = mixed.stats["failures"]
    last_line(
        {
            "bench": "hostile",
            "hosts": options.hosts,
            "hostile": options.hostile,
            "allowed_pages_per_second": round(allowed, 1),
            "alone": ours,
            "mixed": theirs,
            "share": round(mixed.rate / alone.rate, 3),
            "failures": failures,
            "faults": wrong,
        }
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
