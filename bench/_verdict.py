"""The verdict on one crawl of the synthetic web: its account, its archive and its manners, as lists of faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from bench._account import MOST_LOST, Account, Cause, Death, Toll, account, due_of, named
from bench._crawls import ROBOTS_ATTEMPTS
from bench._jumps import Run, by_real_time
from bench._records import archive_faults, known, records
from bench._starved import Span
from skitter.testing.audit import Violation, ViolationKind, is_robots, violations
from skitter.testing.plan import WebPlan
from skitter.testing.request_log import Request, read_log

ATTEMPTS = 5
MANNERS = ("overlap", "too soon", "before robots.txt", "denied by robots.txt")


def verdict(
    folder: Path,
    log: Path,
    plan: WebPlan,
    delay: float,
    kills: Sequence[float] = (),
    admits: Callable[[str], bool] | None = None,
    runs: Sequence[Run] = (),
    pauses: Sequence[tuple[float, float]] = (),
    others: Sequence[Death] = (),
    starved: Sequence[Span] | None = None,
) -> Account:
    """`kills` are the times at which a crawl was stopped at once, `others` what else took requests with it;
    `admits` is what its scope let in; `runs` says how far the clocks of its processes were off, `pauses` when it
    was stopped, `starved` when it had no core."""
    requests = read_log(log)
    archive = folder / "archive"
    due = due_of(plan, attempts=ATTEMPTS, robots_attempts=ROBOTS_ATTEMPTS, admits=admits)
    found = records(archive)
    kept = known(folder / "frontier")
    if runs:
        fetches = by_real_time(named(kept.fetches, found), requests, runs)
        kept = kept._replace(fetches=fetches)
    result = account(requests, kept, found, due, [*map(Death, kills), *others], pauses, starved)
    result.blame("archive", archive_faults(archive, found))
    for kind, line in breaches(requests, plan, delay):
        result.blame(kind, [line])
    return result


def toll(result: Account) -> dict[str, int | float]:
    """What a disturbed crawl came to and what the disturbance cost, in words, for a table."""
    faults = {kind: len(lines) for kind, lines in result.faults.items()}
    return {
        "requests the web saw": result.requests,
        "fetches the frontier settled": result.settled,
        "records in the archive": result.archived,
        "URLs lost": faults.get("missing", 0) + faults.get("left undone", 0),
        "archived twice": faults.get("archived, not settled", 0) + faults.get("completed twice", 0),
        "politeness violations": sum(faults.get(kind, 0) for kind in MANNERS),
        "requests repeated, in flight at a death": result.lost_in_flight,
        "requests repeated, answered and not settled": result.lost_unsettled,
        **{name: figure for cause, toll in result.tolls.items() for name, figure in _split(cause, toll)},
        "deaths that cost a request": len(result.losses),
        "most lost in one death": result.most_lost,
    }


def dearest(result: Account, began: float, shown: int) -> list[tuple[str, int, int, int, float]]:
    """The deaths that cost most: when and what, how much of it was in flight, and all that may be."""
    worst = sorted(result.losses, key=lambda loss: -loss.all)[:shown]
    return [
        (f"{loss.cause}, {loss.at - began:.1f} s", loss.in_flight, loss.unsettled, MOST_LOST, loss.oldest)
        for loss in worst
    ]


def _split(cause: Cause, toll: Toll) -> Iterator[tuple[str, int | float]]:
    if not toll.in_flight + toll.unsettled:
        return
    yield f"after {cause}, in flight", toll.in_flight
    yield f"after {cause}, answered", toll.unsettled
    if toll.ages:
        yield f"median age of an answer that {cause} took, s", round(median(toll.ages), 3)
        yield f"oldest answer that {cause} took, s", round(max(toll.ages), 3)


def breaches(requests: Sequence[Request], plan: WebPlan, delay: float) -> list[tuple[str, str]]:
    """What the audit says of the crawl's manners: kinds and places."""

    def denied(name: str, path: str) -> bool:
        host = plan.index(name)
        return host is not None and not plan.allows(host, path)

    found = violations(requests, lambda name: max(delay, plan.delay(name)), denied=denied)
    rude = violations(requests, lambda name: delay)
    pages: dict[str, float] = {}
    for row in requests:
        if not is_robots(row.path):
            pages[row.host] = min(row.start, pages.get(row.host, row.start))
    # A robots.txt whose answer a kill lost is asked for again: what delay it names is not known yet.
    kept = [v for v in found if not _is_unread(v, pages)] + [v for v in rude if _is_unread(v, pages)]
    return [(violation.kind, str(violation)) for violation in kept]


def _is_unread(violation: Violation, pages: dict[str, float]) -> bool:
    row = violation.request
    too_soon = violation.kind is ViolationKind.TOO_SOON
    return too_soon and is_robots(row.path) and row.start < pages.get(row.host, float("inf"))
