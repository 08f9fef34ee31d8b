"""Audits a crawl of the synthetic web from the server's side: was it polite, was it complete?

    python -m skitter.testing.audit requests.jsonl --delay 1 --attempts 5

Reads nothing but the request log and the plan that the log opens with; asks the crawler nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

from skitter.errors import SkitterError
from skitter.testing.features import NAMED_PRODUCT
from skitter.testing.options import read_plan_text
from skitter.testing.plan import WebPlan
from skitter.testing.request_log import Request, read_log, read_plan

__all__ = ["Differences", "Request", "Violation", "ViolationKind", "compare", "read_log", "violations"]

# How much a gap may fall short of the delay: what two clocks and a float may differ by.
TOLERANCE = 0.0005
SHOWN = 10


class ViolationKind(StrEnum):
    OVERLAP = "overlap"
    TOO_SOON = "too soon"
    BEFORE_ROBOTS = "before robots.txt"
    DENIED = "denied by robots.txt"


class Violation(msgspec.Struct, frozen=True):
    kind: ViolationKind
    host: str
    request: Request
    detail: str

    def __str__(self) -> str:
        place = f"http://{self.host}{self.request.path}"
        return f"{self.kind}: {place} at {self.request.start:.6f}: {self.detail}"


class Gap(NamedTuple):
    """Between two request starts of a host."""

    seconds: float
    required: float
    host: str


class Differences(msgspec.Struct, frozen=True):
    """Between what was requested and what the plan expects, by URL; robots.txt by host name."""

    missing: tuple[str, ...]
    extra: tuple[str, ...]
    too_often: dict[str, tuple[int, int]]
    """URL to how often it was requested, and how often it should have been."""
    too_seldom: dict[str, tuple[int, int]]
    robots_missing: tuple[str, ...]

    def __bool__(self) -> bool:
        return any((self.missing, self.extra, self.too_often, self.too_seldom, self.robots_missing))


def violations(
    requests: Iterable[Request],
    delay_of: Callable[[str], float],
    *,
    parallel_of: Callable[[str], int] = lambda host: 1,
    denied: Callable[[str, str], bool] = lambda host, path: False,
) -> list[Violation]:
    """Every breach of politeness. `delay_of` and `parallel_of` say what a host (by name) demands and allows;
    `denied` whether its robots.txt refuses a path."""
    found: list[Violation] = []
    for host, rows in by_host(requests).items():
        found += _overlaps(host, rows, parallel_of(host))
        found += _too_soon(host, rows, delay_of(host))
        found += _before_robots(host, rows)
        found += (
            Violation(ViolationKind.DENIED, host, row, "robots.txt refuses the path")
            for row in rows
            if not is_robots(row.path) and denied(host, row.path)
        )
    return found


def by_host(requests: Iterable[Request]) -> dict[str, list[Request]]:
    hosts: dict[str, list[Request]] = {}
    for row in sorted(requests, key=lambda row: row.start):
        hosts.setdefault(row.host, []).append(row)
    return hosts


def is_robots(path: str) -> bool:
    """Also the place that a host's robots.txt was moved to."""
    return path.endswith("/robots.txt")


def gaps(requests: Iterable[Request], delay_of: Callable[[str], float]) -> Iterator[Gap]:
    for host, rows in by_host(requests).items():
        required = delay_of(host)
        for first, second in pairwise(rows):
            yield Gap(second.start - first.start, required, host)


def compare(
    requests: Iterable[Request],
    plan: WebPlan,
    attempts: int,
    *,
    spare: int = 0,
    max_redirects: int = 5,
    product: str = NAMED_PRODUCT,
    admits: Callable[[str], bool] | None = None,
) -> Differences:
    """What the crawl left out, invented or repeated.

    `spare` further requests of each URL are let pass: a killed worker's unsettled pages are fetched again.
    Aborted requests do not count as answers, but they do count as requests.
    """
    expected, hosts = plan.survey(max_redirects, product, admits)
    asked, robots = Counter[str](), set[str]()
    for row in requests:
        if is_robots(row.path):
            robots.add(row.host)
        else:
            host = plan.index(row.host)
            origin = f"http://{row.host}" if host is None else plan.origin(host)
            asked[f"{origin}{row.path}"] += 1
    due = {url: row.requests(attempts) for url, row in expected.items()}
    return Differences(
        missing=tuple(sorted(url for url in due if url not in asked)),
        extra=tuple(sorted(url for url in asked if url not in due)),
        too_often={url: (asked[url], due[url]) for url in due if asked[url] > due[url] + spare},
        too_seldom={url: (asked[url], due[url]) for url in due if 0 < asked[url] < due[url]},
        robots_missing=tuple(sorted(hosts - robots)),
    )


def _overlaps(host: str, rows: list[Request], parallel: int) -> Iterator[Violation]:
    """An aborted request counts as long as the server could not know that its client had left: it has
    marked the later one then. Where several may run at once only the ends tell how many did."""
    open_ends: list[float] = []
    for row in rows:
        open_ends = [end for end in open_ends if end > row.start]
        in_flight = len(open_ends)
        if in_flight >= parallel or (parallel == 1 and row.overlapped):
            others = max(in_flight, 1)
            yield Violation(
                ViolationKind.OVERLAP, host, row, f"{others} in flight, {parallel} allowed at once"
            )
        if row.end is None:
            open_ends.append(float("inf"))
        elif not row.aborted:
            open_ends.append(row.end)


def _too_soon(host: str, rows: list[Request], delay: float) -> Iterator[Violation]:
    for first, second in pairwise(rows):
        gap = second.start - first.start
        if gap < delay - TOLERANCE:
            detail = f"{gap:.6f} s after {first.path}, delay {delay:g} s"
            yield Violation(ViolationKind.TOO_SOON, host, second, detail)


def _before_robots(host: str, rows: list[Request]) -> Iterator[Violation]:
    answers = [row.end for row in rows if is_robots(row.path) and row.end is not None and not row.aborted]
    answered = min(answers, default=float("inf"))
    for row in rows:
        if not is_robots(row.path) and row.start < answered:
            yield Violation(ViolationKind.BEFORE_ROBOTS, host, row, "its robots.txt was not answered yet")


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return _audit(options)
    except SkitterError as fault:
        print(f"skitter.testing.audit: {fault}", file=sys.stderr)
        return fault.exit_code


def _audit(options: argparse.Namespace) -> int:
    requests = read_log(options.log)
    plan = read_plan_text(options.plan) if options.plan else read_plan(options.log)

    own_delay: float = options.delay

    def delay_of(host: str) -> float:
        return max(own_delay, plan.delay(host))

    def denied(host: str, path: str) -> bool:
        index = plan.index(host)
        return index is not None and not plan.allows(index, path, options.product)

    breaches = violations(requests, delay_of, parallel_of=lambda host: options.parallel, denied=denied)
    differences = compare(
        requests,
        plan,
        options.attempts,
        spare=options.spare,
        max_redirects=options.max_redirects,
        product=options.product,
    )
    _print_counts(requests, list(gaps(requests, delay_of)))
    _print_breaches(breaches)
    if not options.partial:
        _print_differences(differences)
    failed = bool(breaches or (differences and not options.partial))
    print("verdict: " + ("FAILED" if failed else "polite" if options.partial else "polite and complete"))
    return int(failed)


def _print_counts(requests: list[Request], between: list[Gap]) -> None:
    hosts = {row.host for row in requests}
    robots = sum(is_robots(row.path) for row in requests)
    aborted = sum(row.aborted for row in requests)
    unfinished = sum(row.end is None for row in requests)
    print(f"{len(requests)} requests ({robots} for robots.txt) to {len(hosts)} hosts")
    print(f"{aborted} aborted by the client, {unfinished} unfinished")
    if between:
        least = min(between, key=lambda gap: gap.seconds - gap.required)
        print(f"smallest gap against the delay: {least.seconds:.6f} s of {least.required:g} s ({least.host})")


def _print_breaches(breaches: list[Violation]) -> None:
    for kind in ViolationKind:
        found = [breach for breach in breaches if breach.kind is kind]
        print(f"{kind}: {len(found)}")
        for breach in found[:SHOWN]:
            print(f"    {breach}")


def _print_differences(differences: Differences) -> None:
    lists: dict[str, list[str]] = {
        "missing": list(differences.missing),
        "extra": list(differences.extra),
        "too often": [f"{url} {n} times, not {due}" for url, (n, due) in differences.too_often.items()],
        "too seldom": [f"{url} {n} times, not {due}" for url, (n, due) in differences.too_seldom.items()],
        "robots.txt never asked for": list(differences.robots_missing),
    }
    for title, lines in lists.items():
        print(f"{title}: {len(lines)}")
        for line in lines[:SHOWN]:
            print(f"    {line}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        allow_abbrev=False,
        prog="python -m skitter.testing.audit",
        description="Judge a crawl by the synthetic web's request log.",
    )
    parser.add_argument("log", type=Path)
    parser.add_argument("--delay", type=float, default=1.0, help="the crawl's own delay in seconds (1)")
    parser.add_argument("--parallel", type=int, default=1, help="requests allowed at once on a host (1)")
    parser.add_argument("--attempts", type=int, default=5, help="fetches of a failing URL (5)")
    parser.add_argument("--spare", type=int, default=0, help="further requests of a URL to let pass (0)")
    parser.add_argument("--max-redirects", type=int, default=5)
    parser.add_argument("--product", default=NAMED_PRODUCT, help="what robots.txt groups were matched with")
    parser.add_argument("--partial", action="store_true", help="the crawl was not to end: judge manners only")
    parser.add_argument("--plan", metavar="JSON", help="another plan than the one that the log opens with")
    return parser


if __name__ == "__main__":
    sys.exit(main())
