"""The account of a crawl of the synthetic web: three independent records of it, compared pairwise.

What the web says it was asked (its request log), what the frontier says was settled (its ledger) and what the
archive holds. A request that was made and not settled was lost in a kill, is made again, and must have been in
flight or unsettled at that kill; every other difference is a fault. Pure: reads nothing, asks nobody.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

import msgspec

from bench._records import Fetch, Known, Record, ident_of
from bench._starved import Span, Spans
from skitter.testing.audit import is_robots
from skitter.testing.features import MOVED_ROBOTS, NAMED_PRODUCT, Kind, RobotsKind
from skitter.testing.plan import WebPlan
from skitter.testing.request_log import Request

MAX_REDIRECTS = 5
# Two processes and the kernel read the time: what they may disagree by.
CLOCKS = 0.01
# An answered request is settled with the next pulse (0.05 s), and a pulse waits for all answers that arrived
# together: 0.4 s was seen at full speed, 1.1 s on a machine that was busy with other things as well.
UNSETTLED = 3.0
# A place is held until its page is read, and what was read waits for the next commit: 128 pages of a busy crawl,
# so that 384 were outstanding; 407 were lost just after a pause, when all places are read at once and taken anew.
PLACES = 256
MOST_LOST = 2 * PLACES


class Cause(StrEnum):
    """What may take requests with it that were made."""

    KILL = "a kill"
    TEAR = "a torn log"
    """Its last commits are gone, as after a power loss."""
    FULL = "a full disk"


class Death(NamedTuple):
    """A moment at which requests may have been lost. With a torn log it is when what was torn off was written."""

    at: float
    cause: Cause = Cause.KILL
    event: float = 0.0
    """Something that may have happened at one of several moments has them all; what it cost is counted once."""


class Toll(msgspec.Struct):
    """Requests that one cause has cost."""

    in_flight: int = 0
    unsettled: int = 0
    """Answered, by the web's own word, and not settled."""
    ages: list[float] = msgspec.field(default_factory=list)
    """Seconds between each of those answers and the death."""


class Loss(msgspec.Struct):
    """What one kill, one torn log or one full disk has cost."""

    at: float
    cause: Cause
    in_flight: int = 0
    unsettled: int = 0
    oldest: float = 0.0

    @property
    def all(self) -> int:
        return self.in_flight + self.unsettled


class Account(msgspec.Struct, kw_only=True):
    requests: int
    settled: int
    archived: int
    tolls: dict[Cause, Toll] = msgspec.field(default_factory=lambda: {cause: Toll() for cause in Cause})
    losses: list[Loss] = msgspec.field(default_factory=list)
    faults: dict[str, list[str]] = msgspec.field(default_factory=dict)

    @property
    def lost_in_flight(self) -> int:
        return sum(toll.in_flight for toll in self.tolls.values())

    @property
    def lost_unsettled(self) -> int:
        return sum(toll.unsettled for toll in self.tolls.values())

    @property
    def oldest_lost(self) -> float:
        """Seconds between an answer and the death that lost it, at most."""
        return max((age for toll in self.tolls.values() for age in toll.ages), default=0.0)

    @property
    def most_lost(self) -> int:
        return max((loss.all for loss in self.losses), default=0)

    @property
    def lost(self) -> int:
        return self.lost_in_flight + self.lost_unsettled

    def blame(self, kind: str, lines: Iterable[str]) -> None:
        found = sorted(lines)
        if found:
            self.faults.setdefault(kind, []).extend(found)


class Due(msgspec.Struct):
    """How often each URL is to be settled. Where a URL may be settled less often (a flaky page, whose failure
    was spent on a request that a kill lost), `least` has it."""

    pages: dict[str, int]
    robots: dict[str, int]
    least: dict[str, int]
    withheld: set[str]
    """Hosts whose robots.txt cannot be had: their URLs stay queued."""


def due_of(
    plan: WebPlan, *, attempts: int, robots_attempts: int, admits: Callable[[str], bool] | None = None
) -> Due:
    expected, hosts = plan.survey(MAX_REDIRECTS, NAMED_PRODUCT, admits)
    robots = Counter[str]()
    withheld: set[str] = set()
    for name in hosts:
        host = plan.index(name)
        assert host is not None
        kind = plan.robots_kind(host)
        robots[plan.url(host, "/robots.txt")] += robots_attempts if kind is RobotsKind.UNAVAILABLE else 1
        if kind is RobotsKind.MOVED:
            robots[plan.url(host, MOVED_ROBOTS)] += 1
        elif kind is RobotsKind.ELSEWHERE:
            robots[plan.url(plan.hub(host), "/robots.txt")] += 1
        elif kind is RobotsKind.UNAVAILABLE:
            withheld.add(name)
    return Due(
        pages={url: row.requests(attempts) for url, row in expected.items()},
        robots=dict(robots),
        least={url: 1 for url, row in expected.items() if row.kind is Kind.FLAKY},
        withheld=withheld,
    )


def account(
    requests: Sequence[Request],
    known: Known,
    archive: Sequence[Record],
    due: Due,
    deaths: Sequence[Death] = (),
    pauses: Sequence[Span] = (),
    starved: Sequence[Span] | None = None,
) -> Account:
    """`starved` is when the crawl had no core. Whoever gives it knows every death, too: what is asked again
    before the next one was not lost in it."""
    fetches = named(known.fetches, archive)
    result = Account(requests=len(requests), settled=len(fetches), archived=len(archive))
    result.blame("frontier's totals", known.disagreements)
    _ledger_and_archive(result, fetches, archive)
    _log_and_archive(result, requests, archive)
    lost = _log_and_ledger(result, requests, fetches)
    if starved is not None:
        lost = _without_rash(result, lost, requests, deaths, due)
    _explain_lost(result, lost, deaths, pauses, Spans(starved or ()))
    _settled_and_due(result, fetches, due)
    left = (url for url, state in known.states.items() if state in ("queued", "failed", "in_progress"))
    result.blame("left undone", (url for url in left if _host(url) not in due.withheld))
    return result


def _host(url: str) -> str:
    return url.split("/", 3)[2]


def named(fetches: Iterable[Fetch], archive: Iterable[Record]) -> list[Fetch]:
    """Errands have their URL from their record."""
    urls = {(record.segment, record.offset): record.url for record in archive}
    return [
        fetch
        if fetch.url or fetch.record is None
        else fetch._replace(url=urls.get(fetch.record[:2], "unknown"))
        for fetch in fetches
    ]


def _ledger_and_archive(result: Account, fetches: Iterable[Fetch], archive: Iterable[Record]) -> None:
    there = {(record.segment, record.offset): record for record in archive}
    claimed = Counter(fetch.record[:2] for fetch in fetches if fetch.record)
    result.blame("settled, not archived", (f"{place}" for place in claimed if place not in there))
    result.blame("archived, not settled", (there[place].url for place in there if place not in claimed))
    result.blame("settled twice with one record", (f"{place}" for place, n in claimed.items() if n > 1))
    for fetch in fetches:
        record = there.get(fetch.record[:2]) if fetch.record else None
        # 599 is our own word for the last redirect of too many
        status = record.status if record is not None and fetch.status == 599 else fetch.status
        if record is not None and (record.url, record.status) != (fetch.url, status):
            result.blame("ledger and record differ", [f"{fetch} {record}"])
        if fetch.url != "unknown" and ident_of(fetch.url) != fetch.host:
            result.blame("ledger and record differ", [f"{fetch.url} under another host"])


def _log_and_archive(result: Account, requests: Iterable[Request], archive: Iterable[Record]) -> None:
    asked = Counter((_url(row), row.status) for row in requests)
    held = Counter((record.url, record.status) for record in archive)
    more = (f"{url} {status}: {n}" for (url, status), n in held.items() if n > asked[url, status])
    result.blame("archived, not requested", more)


def _url(row: Request) -> str:
    return f"http://{row.host}{row.path}"


def _log_and_ledger(result: Account, requests: Iterable[Request], fetches: Iterable[Fetch]) -> list[Request]:
    """Each fetch is the last request of its URL that had started when it was sent; returns what is left over."""
    asked: dict[str, list[Request]] = defaultdict(list)
    for row in sorted(requests, key=lambda row: row.start):
        asked[_url(row)].append(row)
    for fetch in sorted(fetches, key=lambda fetch: fetch.sent_at):
        rows = asked[fetch.url]
        place = bisect_left(rows, fetch.sent_at + CLOCKS, key=lambda row: row.start)
        if place:
            del rows[place - 1]
        else:
            result.blame("settled, not requested", [f"{fetch.url} at {fetch.sent_at:.3f}"])
    return [row for rows in asked.values() for row in rows]


def _without_rash(
    result: Account, lost: Iterable[Request], requests: Iterable[Request], deaths: Sequence[Death], due: Due
) -> list[Request]:
    """What was asked again although nothing had happened is to blame; a robots.txt that several hosts refer to is
    asked for on behalf of each."""
    starts: dict[str, list[float]] = defaultdict(list)
    for row in sorted(requests, key=lambda row: row.start):
        starts[_url(row)].append(row.start)
    moments, explicable = sorted(deaths), []
    for row in lost:
        url = _url(row)
        asked, death = starts[url], _death_of(row, moments)
        place = bisect_left(asked, row.start) + 1
        again = asked[place] if place < len(asked) and due.robots.get(url, 0) < 2 else None
        if again is None or (death is not None and death.at < again + CLOCKS):
            explicable.append(row)
        else:
            result.blame("repeated without a kill", [f"{url} {row.start:.3f}, again {again:.3f}"])
    return explicable


def _explain_lost(
    result: Account,
    lost: Iterable[Request],
    deaths: Sequence[Death],
    pauses: Sequence[Span],
    starved: Spans,
) -> None:
    losses: dict[tuple[Cause, float], Loss] = {}
    moments = sorted(deaths)
    for row in lost:
        death = _death_of(row, moments)
        waited = 0.0 if death is None or row.end is None else _running(row.end, death.at, pauses, starved)
        if death is None or waited > UNSETTLED:
            times = f"{row.start:.3f} to {row.end}, status {row.status}"
            result.blame("repeated without a kill", [f"{_url(row)} {times}"])
            continue
        event = death.event or death.at
        loss = losses.setdefault((death.cause, event), Loss(event, death.cause))
        toll = result.tolls[death.cause]
        if row.end is None or row.aborted or row.end > death.at:
            toll.in_flight += 1
            loss.in_flight += 1
        else:
            toll.unsettled += 1
            toll.ages.append(waited)
            loss.unsettled += 1
            loss.oldest = max(loss.oldest, waited)
    result.losses = sorted(losses.values(), key=lambda loss: loss.at)
    too_many = (loss for loss in result.losses if loss.all > MOST_LOST)
    lines = (f"{loss.all} at {loss.at:.3f}, not {MOST_LOST} at most: {loss.cause}" for loss in too_many)
    result.blame("too much lost at once", lines)


def _death_of(row: Request, deaths: Sequence[Death]) -> Death | None:
    """The first that can have taken it: in what was torn off a log there is nothing of a request in flight."""
    answered_at = float("inf") if row.end is None or row.aborted else row.end
    for death in islice(deaths, bisect_left(deaths, (row.start - CLOCKS,)), None):
        if death.cause is not Cause.TEAR or death.at > answered_at - CLOCKS:
            return death
    return None


def _running(since: float, until: float, pauses: Sequence[Span], starved: Spans) -> float:
    """Seconds between two moments in which the crawl was not stopped and had a core: it could have settled."""
    stopped = (min(until, end) - max(since, begin) for begin, end in pauses)
    return until - since - sum(seconds for seconds in stopped if seconds > 0) - starved.between(since, until)


def _settled_and_due(result: Account, fetches: Iterable[Fetch], due: Due) -> None:
    settled = Counter(fetch.url for fetch in fetches)
    wanted = due.pages | due.robots
    for kind, lines in _miscounts(settled, wanted, due.least):
        result.blame(kind, [lines])
    done = Counter(f.url for f in fetches if f.result != "failed" and not is_robots(f.url))
    result.blame("completed twice", (url for url, n in done.items() if n > 1))


def _miscounts(
    settled: Counter[str], wanted: dict[str, int], least: dict[str, int]
) -> Iterator[tuple[str, str]]:
    for url in wanted.keys() | settled.keys():
        want, had = wanted.get(url, 0), settled[url]
        if not want:
            yield "extra", url
        elif not had:
            yield "missing", url
        elif had > want:
            yield "settled too often", f"{url} {had} times, not {want}"
        elif had < least.get(url, want):
            yield "settled too seldom", f"{url} {had} times, not {want}"
