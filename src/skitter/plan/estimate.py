"""The estimate of a crawl: URLs, pages, bytes and time that are left, each with a band, and what limits it.

Made from what hosts have left (`workload.py`) and what the crawl did so far. The same for `skitter plan`, the
live display, the dashboard and the API. Pure arithmetic; a band is where the truth was in four of five cases, by
`bench/plan.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import msgspec

from skitter.plan.finishing import Finish, Queue, finish
from skitter.plan.growth import Band
from skitter.plan.workload import HostLeft

# Workers that lag behind what politeness allows by more than this are what limits a crawl.
_SHORT = 1.5
# What bands of single hosts do not say: how well paces of today hold tomorrow, and errors that hosts share.
_PACE = 0.2
_SHARED = 0.6
MOST_HOSTS = 20


class SoFar(msgspec.Struct, frozen=True, kw_only=True):
    """What a crawl did until now. `settled` are URLs that had an answer or are given up for good, `denied` those
    that robots.txt forbids; `retries_in` is how long the last retry that has a date waits (s), and `failing`
    how long one may yet wait that fails again, if any request failed. `max_pages` 0: no
    limit. `is_open`: links to any host are followed, so that it has no end by itself."""

    pages: int = 0
    settled: int = 0
    denied: int = 0
    requests: int = 0
    bytes: int = 0
    retries_in: float = 0.0
    failing: float = 0.0
    max_pages: int = 0
    is_open: bool = False


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """What sets the pace, and for which share of the time that is left."""

    what: str
    share: float
    words: str


class HostEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """`seconds` as politeness has it, from now on."""

    host: str
    urls: Band
    bytes: float
    seconds: Band
    interval: float
    why: str


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """What is left. `capacity` is in URLs a second, null where politeness alone sets the pace. `hosts` are those
    that take longest."""

    urls: Band
    pages: Band
    bytes: Band
    seconds: Band
    capacity: float | None
    limits: tuple[Limit, ...]
    hosts: tuple[HostEstimate, ...]
    is_open: bool = False
    reaches_limit: bool = False


def estimate(left: Sequence[HostLeft], so_far: SoFar, capacity: float | None = None) -> Estimate:
    """`capacity` where it is known how many URLs a second can be had; otherwise what hosts were asked so far
    tells whether it is short."""
    as_asked = False
    if capacity is None:
        capacity = _capacity(left)
        as_asked = capacity is None
    urls = _total(left)
    judged = so_far.settled + so_far.denied
    share = so_far.pages / judged if so_far.pages else 1.0
    each = so_far.requests / judged if so_far.pages else 1.0
    room = (so_far.max_pages - so_far.pages) / share if so_far.max_pages else float("inf")
    ends = [
        _finish(left, as_asked, factor, each, capacity, max(0.0, room)) for factor in _factors(left, urls)
    ]
    likely = ends[1]
    waits = so_far.retries_in if likely.urls < room else 0.0
    seconds = Band(
        max(ends[0].seconds * (1 - _PACE), min(waits, likely.seconds)),
        max(likely.seconds, waits),
        max(ends[2].seconds * (1 + _PACE), waits) + (so_far.failing if likely.urls < room else 0.0),
    )
    urls = urls.at_most(max(0.0, room))
    return Estimate(
        urls=urls,
        pages=urls.times(share),
        bytes=_bytes(left, urls),
        seconds=seconds,
        capacity=capacity,
        limits=tuple(_limits(left, likely, capacity, waits)),
        hosts=tuple(_host(one, each, as_asked) for one in left if one.host)[:MOST_HOSTS],
        is_open=so_far.is_open,
        reaches_limit=likely.urls >= room,
    )


def _capacity(left: Sequence[HostLeft]) -> float | None:
    """How many URLs a second the workers manage, if that is less than what politeness allows. If it is not, hosts
    will be asked as they were asked so far."""
    met = [one for one in left if one.gap > 0]
    polite = sum(one.count / max(one.interval, 0.001) for one in met)
    real = sum(one.count / max(one.gap, one.interval, 0.001) for one in met)
    return real if met and polite > _SHORT * real else None


def _interval(one: HostLeft, as_asked: bool) -> float:
    return max(one.interval, one.gap) if as_asked else one.interval


def _total(left: Sequence[HostLeft]) -> Band:
    """Hosts err to both sides, and so the errors of many make up for each other; not all of it, as they are of
    one web."""
    likely = sum(one.urls.likely * one.count for one in left)
    below = [((one.urls.likely - one.urls.low), one.count) for one in left]
    above = [((one.urls.high - one.urls.likely), one.count) for one in left]
    return Band(max(0.0, likely - _spread(below)), likely, likely + _spread(above))


def _spread(errors: Sequence[tuple[float, int]]) -> float:
    alone = sqrt(sum(count * error * error for error, count in errors))
    return max(alone, _SHARED * sum(count * error for error, count in errors))


def _factors(left: Sequence[HostLeft], urls: Band) -> tuple[float, float, float]:
    """How far between its own bounds each host is taken to be: -1 its lowest, 0 its likely, 1 its highest. The
    longest host ends a crawl, whatever the others do: where it is most of the work, it is taken at its bounds."""
    low = sum((one.urls.likely - one.urls.low) * one.count for one in left)
    high = sum((one.urls.high - one.urls.likely) * one.count for one in left)
    return (
        -(urls.likely - urls.low) / low if low else -1.0,
        0.0,
        (urls.high - urls.likely) / high if high else 1.0,
    )


def _finish(
    left: Sequence[HostLeft],
    as_asked: bool,
    factor: float,
    each: float,
    capacity: float | None,
    most: float,
) -> Finish:
    queues = [
        Queue(_between(one.urls, factor) * each, _interval(one, as_asked), one.opens_in, one.count)
        for one in left
    ]
    return finish(queues, capacity or float("inf"), most * each)


def _between(band: Band, factor: float) -> float:
    side = band.high if factor > 0 else band.low
    return band.likely + abs(factor) * (side - band.likely)


def _bytes(left: Sequence[HostLeft], urls: Band) -> Band:
    likely = sum(one.bytes * one.count for one in left)
    whole = sum(one.urls.likely * one.count for one in left)
    return urls.times(likely / whole) if whole else Band(0.0, 0.0, 0.0)


def _host(one: HostLeft, each: float, as_asked: bool) -> HostEstimate:
    pace = each * _interval(one, as_asked)
    seconds = one.urls.times(pace)
    return HostEstimate(
        host=one.host,
        urls=one.urls,
        bytes=one.bytes,
        seconds=seconds.plus(Band(one.opens_in, one.opens_in, one.opens_in)),
        interval=_interval(one, as_asked),
        why=one.why,
    )


def _limits(left: Sequence[HostLeft], end: Finish, capacity: float | None, waits: float) -> list[Limit]:
    whole = max(end.seconds, waits)
    if whole <= 0:
        return []
    found = []
    if capacity and end.short:
        words = f"workers: they manage {capacity:,.3g} URLs a second, and politeness allows more"
        found.append(Limit(what="workers", share=end.short / whole, words=words))
    polite = max(0.0, end.seconds - end.short)
    if polite:
        found.append(Limit(what="politeness", share=polite / whole, words=_polite(left)))
    if waits > end.seconds:
        share = (waits - end.seconds) / whole
        found.append(Limit(what="retries", share=share, words="retries that wait for their date"))
    return sorted(found, key=lambda limit: -limit.share)


def _polite(left: Sequence[HostLeft]) -> str:
    longest = left[0]
    close = sum(one.count for one in left if one.seconds >= 0.8 * longest.seconds)
    name = longest.host or "one of many hosts"
    others = f" and {close - 1:,} more like it" if close > 1 else ""
    pace = f"{longest.urls.likely:,.0f} URLs, one every {longest.interval:.3g} s"
    return f"politeness to {name} ({pace}){others}"


def time_left(found: Estimate | None, ago: float) -> tuple[float, float, float] | None:
    """Of an estimate that was made `ago` seconds ago; None where nothing can be said: links to any host are
    followed, or pages have brought more than they took from the queue all along."""
    if found is None or (found.is_open and not found.reaches_limit) or found.seconds.high == float("inf"):
        return None
    low, likely, high = (max(0.0, seconds - ago) for seconds in found.seconds)
    return low, likely, high
