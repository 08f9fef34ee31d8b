"""How the crawl does, for machines that watch it: metrics, the past, hosts in trouble."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from skitter.frontier.base import Freshness, RevisitFigures
from skitter.service.api_context import ApiContext
from skitter.service.http.access import Role
from skitter.service.http.problem import Problem, Trouble
from skitter.service.http.routes import TEXT, Call, Route
from skitter.service.metrics.exposition import OPEN, PLAIN, exposition, prefers_open
from skitter.service.metrics.figures import told
from skitter.service.metrics.history import Past

_GROUP = "monitoring"
_SHOWN = 30
_LATEST = 32_503_680_000
_Moment = Annotated[float, Meta(ge=0, le=_LATEST)]


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which past: seconds since the epoch, the last hour unless given; `step` in seconds, chosen to fit."""

    first: _Moment | None = msgspec.field(name="from", default=None)
    last: _Moment | None = msgspec.field(name="to", default=None)
    step: Annotated[int, Meta(ge=1, le=2_592_000)] | None = None


class HostInTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """`last` and `detail` are of the most recent failure."""

    host: str
    failures: int
    kinds: dict[str, int]
    last: float
    detail: str


class HostsInTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """Failures from `since` on, half an hour to an hour ago; `kinds` are their sums over the hosts shown."""

    since: float
    kinds: dict[str, int]
    hosts: list[HostInTrouble]


class FreshnessNow(msgspec.Struct, frozen=True, kw_only=True):
    """`revisits` are the figures of a crawl that is kept fresh, null of any other. `expected` is what a walk over
    all pages found, which began at `expected_at`; the larger the crawl, the rarer one is made."""

    now: float
    revisits: RevisitFigures | None = None
    expected: Freshness | None = None
    expected_at: float | None = None


async def metrics(context: ApiContext, call: Call[None, None]) -> Response:
    now = context.clock.now()
    figures = told(
        context.telemetry,
        context.watch,
        await context.watch.readings.stats(context.frontier, now, context.measure),
        folder=context.folder.path,
        is_paused=context.committer.is_paused_by_operator,
        now=now,
    )
    is_open = prefers_open(call.request.headers.get("accept", ""))
    text = exposition(figures, context.watch.counted.latency, is_open=is_open)
    return Response(text, headers={"content-type": OPEN if is_open else PLAIN})


async def history(context: ApiContext, call: Call[None, Asked]) -> Past:
    recorded = context.watch.history
    if recorded is None:
        raise Problem(
            Trouble.UNAVAILABLE,
            "no history is recorded, since the crawl's folder could not be written when the service began: "
            "make room in it, or look at its owner and permissions, and start the service again",
        )
    asked = call.query
    # a whole day takes 7 ms to read and sum, mostly outside of the interpreter's lock: others need not wait
    return await asyncio.to_thread(recorded.past, asked.first, asked.last, asked.step, context.clock.now())


async def freshness(context: ApiContext, call: Call[None, None]) -> FreshnessNow:
    now, readings = context.clock.now(), context.watch.freshness
    stats = await context.watch.readings.stats(context.frontier, now, context.measure)
    if stats.revisits is None:
        return FreshnessNow(now=now)
    expected = await readings.read(context.frontier, now)
    return FreshnessNow(now=now, revisits=stats.revisits, expected=expected, expected_at=readings.at or None)


async def errors(context: ApiContext, call: Call[None, None]) -> HostsInTrouble:
    now = context.clock.now()
    worst = context.watch.troubles.worst(_SHOWN, now)
    hosts = [
        HostInTrouble(
            host=one.host, failures=sum(one.kinds.values()), kinds=one.kinds, last=one.at, detail=one.detail
        )
        for one in worst
    ]
    kinds: dict[str, int] = {}
    for host in hosts:
        for kind, count in host.kinds.items():
            kinds[kind] = kinds.get(kind, 0) + count
    return HostsInTrouble(since=context.watch.troubles.since(now), kinds=kinds, hosts=hosts)


ROUTES = (
    Route(
        method="GET",
        path="/metrics",
        role=Role.READ,
        group=_GROUP,
        summary="All figures, for Prometheus",
        detail="Text format 0.0.4, or OpenMetrics 1.0 for who prefers it. The names are in docs/metrics.md.",
        call=metrics,
        answer_media=TEXT,
    ),
    Route(
        method="GET",
        path="/v1/history",
        role=Role.READ,
        group=_GROUP,
        summary="The main figures over time",
        detail="A day in steps of 10 s, 30 days in steps of 5 min; at most 1,000 steps an answer.",
        call=history,
        query=Asked,
        answer=Past,
    ),
    Route(
        method="GET",
        path="/v1/freshness",
        role=Role.READ,
        group=_GROUP,
        summary="How fresh the copies of pages are, expected and audited",
        detail="By importance, plain, by tier, and of the hosts where most is missing.",
        call=freshness,
        answer=FreshnessNow,
    ),
    Route(
        method="GET",
        path="/v1/errors",
        role=Role.READ,
        group=_GROUP,
        summary="Hosts with the most failures lately, by kind",
        call=errors,
        answer=HostsInTrouble,
    ),
)
