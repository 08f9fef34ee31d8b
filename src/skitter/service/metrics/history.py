"""The figures of the last day in steps of 10 s, and of the last 30 days in steps of 5 min.

Beside the path: a sample is the difference between two readings of the frontier's ledger and of the watch; it
goes to two rings of fixed size in the crawl's folder; what a kill costs is the sample that was not taken yet.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from skitter.errors import SkitterError
from skitter.frontier.base import Stats
from skitter.model import FailureKind
from skitter.service.api_context import ApiContext
from skitter.service.metrics.ring import Ring, Rows
from skitter.service.metrics.watch import Watch
from skitter.telemetry import LATENCY_BOUNDS, STANDINGS, STATUS_CLASSES, TIERS, Metric

FOLDER = "history"
FINE, COARSE = 10, 300
SLOTS = 8640
"""A day of 10 s steps, and 30 days of 5 min ones."""
MOST_POINTS = 1000
_USUAL_POINTS = 360
_USUAL_SPAN = 3600.0
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}

_KINDS = tuple(str(kind) for kind in FailureKind)
_BUCKETS = tuple(f"<={bound}" for bound in (*LATENCY_BOUNDS, "inf"))
_COUNTED = (
    "seconds",
    "pages",
    "fetches",
    "bytes",
    "added",
    "violations",
    "revisits",
    "changed",
    *(f"status {name}" for name in STATUS_CLASSES),
    *(f"failed {kind}" for kind in _KINDS),
    *(f"took {bucket}" for bucket in _BUCKETS),
)
_STOOD = (
    "workers",
    "dead_letters",
    "waiting_retry",
    *(f"queued {tier}" for tier in TIERS),
    *(f"hosts {standing}" for standing in STANDINGS),
    "watched",
    "fresh",
    "fresh_plain",
    "audited",
    "age",
    "price",
    "budget",
    "late",
)
COLUMNS = (*_COUNTED, *_STOOD)


class RevisitsPast(msgspec.Struct, frozen=True, kw_only=True):
    """How a crawl was kept fresh: visits of known pages in each step, and how many of them found a change.
    `fresh` is the share that was expected to be current (by importance; `fresh_plain`: of all alike), `audited`
    what visits at random times had found up to then, `age` in days, `price` in days of freshness, `budget` in
    visits a second, `late` in seconds. Null where nothing was known."""

    visits: list[int]
    changed: list[int]
    watched: list[int]
    fresh: list[float | None]
    fresh_plain: list[float | None]
    audited: list[float | None]
    age: list[float | None]
    price: list[float | None]
    budget: list[float | None]
    late: list[float]


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """Figures by time: `at` is when each step began, and every list has one value for each of them. Steps without
    a running service are left out. Counts (`errors`, `statuses`, `violations`, `added`) are of the step, rates
    are means over it, the others are as they stood at its end. `latency` is in seconds, null where nothing was
    answered. `revisits` is null where no page was watched."""

    step: int
    at: list[float]
    pages_per_second: list[float]
    requests_per_second: list[float]
    bytes_per_second: list[float]
    added: list[int]
    errors: dict[str, list[int]]
    statuses: dict[str, list[int]]
    queued: dict[str, list[int]]
    hosts: dict[str, list[int]]
    latency: dict[str, list[float | None]]
    waiting_retry: list[int]
    dead_letters: list[int]
    workers: list[int]
    violations: list[int]
    revisits: RevisitsPast | None = None


class History:
    """The two rings, and what was read last: a sample is what came since."""

    def __init__(self, folder: Path, now: float, slots: int = SLOTS) -> None:
        folder.mkdir(exist_ok=True)
        self._fine = Ring(folder / "day", COLUMNS, FINE, slots)
        self._coarse = Ring(folder / "month", COLUMNS, COARSE, slots)
        self._last_at = now
        self._last: list[float] | None = None

    def close(self) -> None:
        self._fine.close()
        self._coarse.close()

    def sample(self, stats: Stats, watch: Watch, now: float) -> None:
        """What came since the last reading belongs to the step that most of that time lies in. A process's first
        reading only says where counting begins."""
        totals = _totals(stats, watch)
        last, self._last = self._last, totals
        seconds, middle, self._last_at = now - self._last_at, (now + self._last_at) / 2, now
        if last is None or not 0 < seconds < COARSE:
            return
        # nothing was fetched less than not at all, whatever a ledger has taken back
        came = [max(0.0, new - old) for new, old in zip(totals, last, strict=True)]
        counted, stood = [seconds, *came], _standing(stats, watch, now)
        for ring in (self._fine, self._coarse):
            before = (ring.get(middle) or [0.0] * len(COLUMNS))[: len(counted)]
            ring.put(middle, [*(old + new for old, new in zip(before, counted, strict=True)), *stood])

    def past(self, first: float | None, last: float | None, step: int | None, now: float) -> Past:
        """The last hour unless asked for another time. At most `MOST_POINTS` steps; `step` is rounded up to what
        there is."""
        last = now if last is None else min(last, now)
        first = last - _USUAL_SPAN if first is None else max(first, now - COARSE * self._coarse.slots)
        span = max(0.0, last - first)
        ring = self._fine if first >= now - FINE * self._fine.slots and (step or 0) < COARSE else self._coarse
        step = max(step or int(span / _USUAL_POINTS), int(span / MOST_POINTS), ring.step)
        step = -(-step // ring.step) * ring.step
        return _told(_joined(ring.between(first, last), step), step)


@asynccontextmanager
async def recording(context: ApiContext) -> AsyncIterator[None]:
    """Samples are taken until the block is left, one of them then. Without a place to write them, none are: a
    service that answers is worth more than one with a past."""
    try:
        history = History(context.folder.path / FOLDER, context.clock.now())
    except OSError:
        try:
            yield
        finally:
            await context.watch.end_walks()
        return
    context.watch.history = history
    await _sample(context, history)
    sampling = asyncio.create_task(_sample_for_ever(context, history))
    try:
        yield
    finally:
        context.watch.history = None
        sampling.cancel()
        await asyncio.wait((sampling,))
        await _sample(context, history)
        await context.watch.end_walks()
        history.close()
        if not sampling.cancelled():
            sampling.result()


async def _sample_for_ever(context: ApiContext, history: History) -> None:
    while True:
        await asyncio.sleep(FINE - context.clock.now() % FINE)
        await _sample(context, history)


async def _sample(context: ApiContext, history: History) -> None:
    # a store that cannot be read has others to complain; the next sample is of the time since the last
    with contextlib.suppress(SkitterError):
        stats = await context.frontier.stats()
        if stats.revisits is not None:
            context.watch.freshness.begin(context.frontier, context.clock.now())
        history.sample(stats, context.watch, context.clock.now())


def _totals(stats: Stats, watch: Watch) -> list[float]:
    counted = watch.counted
    named = {name: stats.statuses.get(name, 0) for name in STATUS_CLASSES}
    named["other"] = sum(stats.statuses.values()) - sum(named.values())
    return [
        counted.value(Metric.PAGES),
        stats.fetches,
        stats.bytes,
        counted.value(Metric.ADDED),
        stats.politeness.violations,
        stats.revisits.visits if stats.revisits is not None else 0,
        stats.revisits.changed if stats.revisits is not None else 0,
        *named.values(),
        *(stats.failures.get(kind, 0) for kind in _KINDS),
        *counted.latency.counts,
    ]


def _standing(stats: Stats, watch: Watch, now: float) -> list[float]:
    return [
        watch.roster.live(now),
        stats.urls["dead_letter"],
        stats.urls["failed"],
        *stats.tiers,
        *(stats.hosts.get(standing, 0) for standing in STANDINGS),
        *_how_fresh(stats, watch),
    ]


def _how_fresh(stats: Stats, watch: Watch) -> list[float]:
    """In the order of the columns; 0 where nothing is known."""
    found, freshness = stats.revisits, watch.freshness.last
    if found is None:
        return [0.0] * 8
    expected = (freshness.expected, freshness.expected_plain, freshness.age) if freshness else (None,) * 3
    fresh, plain, age = (value or 0.0 for value in expected)
    audited = found.audited_freshness or 0.0
    return [found.watched, fresh, plain, audited, age, found.price, found.budget, found.late]


def _joined(rows: Rows, step: int) -> Rows:
    """Rows of wider steps: what was counted is summed, what stood is as it last was."""
    if not len(rows):
        return rows
    starts = rows[:, 0] // step * step
    firsts = np.flatnonzero(np.diff(starts, prepend=-1.0))
    lasts = np.append(firsts[1:], len(rows)) - 1
    counted = np.add.reduceat(rows[:, 1 : 1 + len(_COUNTED)], firsts, axis=0)
    return np.concatenate([starts[firsts, None], counted, rows[lasts, 1 + len(_COUNTED) :]], axis=1)


def _told(rows: Rows, step: int) -> Past:
    columns = dict(zip(COLUMNS, rows.T[1:], strict=True))
    seconds = np.maximum(columns["seconds"], 0.001)

    def rate(name: str) -> list[float]:
        return _listed(np.round(columns[name] / seconds, 3))

    def whole(name: str) -> list[int]:
        return [int(value) for value in columns[name].tolist()]

    def by(prefix: str, names: Sequence[str]) -> dict[str, list[int]]:
        return {name: whole(f"{prefix} {name}") for name in names}

    took = np.stack([columns[f"took {bucket}"] for bucket in _BUCKETS], axis=1)
    return Past(
        step=step,
        at=_listed(rows[:, 0]),
        pages_per_second=rate("pages"),
        requests_per_second=rate("fetches"),
        bytes_per_second=rate("bytes"),
        added=whole("added"),
        errors={kind: counts for kind, counts in by("failed", _KINDS).items() if any(counts)},
        statuses=by("status", STATUS_CLASSES),
        queued=by("queued", TIERS),
        hosts=by("hosts", STANDINGS),
        latency={name: _quantile(took, share) for name, share in _QUANTILES.items()},
        waiting_retry=whole("waiting_retry"),
        dead_letters=whole("dead_letters"),
        workers=whole("workers"),
        violations=whole("violations"),
        revisits=_revisits_told(columns) if columns["watched"].any() else None,
    )


def _revisits_told(columns: dict[str, npt.NDArray[np.float64]]) -> RevisitsPast:
    def whole(name: str) -> list[int]:
        return [int(value) for value in columns[name].tolist()]

    def known(name: str) -> list[float | None]:
        return [value or None for value in _listed(np.round(columns[name], 6))]

    return RevisitsPast(
        visits=whole("revisits"),
        changed=whole("changed"),
        watched=whole("watched"),
        fresh=known("fresh"),
        fresh_plain=known("fresh_plain"),
        audited=known("audited"),
        age=known("age"),
        price=[value or None for value in _listed(columns["price"])],
        budget=[value or None for value in _listed(columns["budget"])],
        late=_listed(np.round(columns["late"], 1)),
    )


def _listed(values: npt.NDArray[np.float64]) -> list[float]:
    listed: list[float] = values.tolist()
    return listed


def _quantile(took: Rows, share: float) -> list[float | None]:
    """The time within which `share` of the answers came, by step, spread evenly within a bucket. What took longer
    than the last bound counts as being there."""
    bounds = np.array((0.0, *LATENCY_BOUNDS, LATENCY_BOUNDS[-1]))
    upto = np.cumsum(took, axis=1)
    wanted = share * upto[:, -1]
    bucket = np.argmax(upto >= wanted[:, None], axis=1)
    each = np.arange(len(took))
    inside = took[each, bucket]
    below = upto[each, bucket] - inside
    part = np.divide(wanted - below, inside, out=np.zeros(len(took)), where=inside > 0)
    times = bounds[bucket] + (bounds[bucket + 1] - bounds[bucket]) * part
    return [
        round(time, 4) if total > 0 else None
        for time, total in zip(times.tolist(), upto[:, -1].tolist(), strict=True)
    ]
