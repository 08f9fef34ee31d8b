"""The crawl at a glance, for who looks at it: its headline, its disk, its workers, its latest requests."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from skitter import __version__
from skitter.committer.report import FetchShown, shown
from skitter.frontier.base import UrlList
from skitter.headline import Headline
from skitter.model import UrlState
from skitter.plan.estimate import Estimate, time_left
from skitter.recent import LastFetches
from skitter.service.api_context import ApiContext
from skitter.service.headline_now import headline_now
from skitter.service.http.access import Role
from skitter.service.http.problem import Trouble
from skitter.service.http.routes import Call, Route
from skitter.service.metrics.figures import free_bytes
from skitter.service.steering.hosts import HostName, named

_GROUP = "crawl"
_MOST_ANCHORS = 1_000
_ANCHORS_SHOWN = 5
_MOST_LEASES = 10_000
_STATES = {state.name.lower(): state for state in UrlState}
State = Literal["queued", "in_progress", "completed", "failed", "dead_letter", "denied", "gone", "refused"]
_CURSOR = "^([0-9a-f]{2}){0,64}$"


class CrawlNow(msgspec.Struct, frozen=True, kw_only=True):
    """`headline` says in a sentence how the crawl does. `anchors` are prefixes that seeds brought into scope, the
    first few of `anchor_count` (counted up to 1,000). `started_at` is when this process began with the crawl;
    `disk_used` is what the crawl's folder takes. `left` are the seconds that are left: at least, likely and at
    most; null where nothing can be said."""

    now: float
    name: str
    version: str
    headline: Headline
    started_at: float
    max_pages: int
    anchors: list[str]
    anchor_count: int
    disk_free: int
    disk_used: int
    left: tuple[float, float, float] | None


class EstimateNow(msgspec.Struct, frozen=True, kw_only=True):
    """What is left, as it was found at `at`; null while the first walk over the hosts fails."""

    at: float
    estimate: Estimate | None


class WorkerNow(msgspec.Struct, frozen=True, kw_only=True):
    """`doing` is working, idle (it holds no host) or silent (it asked for nothing in the last minute).
    `in_flight` is null where the worker does not tell."""

    worker: str
    doing: str
    heard_at: float
    hosts: int
    tasks: int
    in_flight: int | None


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    workers: list[WorkerNow]


class FetchesAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=LastFetches.KEPT)] = 20


class Fetches(msgspec.Struct, frozen=True, kw_only=True):
    """Newest first, and the latest that failed; of this process, and lost with it."""

    fetches: list[FetchShown]
    last_failure: FetchShown | None


class UrlsAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`state` as `explain` has it, `why` a kind of failure or refusal; `after` comes from the answer before."""

    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100
    state: State | None = None
    why: Annotated[str, Meta(max_length=60)] = ""
    host: HostName | None = None
    after: Annotated[str, Meta(max_length=128, pattern=_CURSOR)] = ""


async def crawl_now(context: ApiContext, call: Call[None, None]) -> CrawlNow:
    now = context.clock.now()
    context.measure()
    workers = context.watch.roster.live(now) if context.registry is not None else None
    found = await headline_now(context.frontier, context.committer, context.telemetry, now, workers=workers)
    anchors = await context.frontier.anchors(limit=_MOST_ANCHORS)
    await context.watch.estimate.read(context.frontier, now)
    return CrawlNow(
        now=now,
        name=context.folder.path.absolute().name,
        version=__version__,
        headline=found,
        started_at=context.telemetry.started,
        max_pages=context.telemetry.max_pages,
        anchors=anchors[:_ANCHORS_SHOWN],
        anchor_count=len(anchors),
        disk_free=free_bytes(context.folder.path),
        disk_used=await context.disk_use.bytes(now),
        left=time_left(context.watch.estimate.last, now - context.watch.estimate.at),
    )


async def estimate(context: ApiContext, call: Call[None, None]) -> EstimateNow:
    readings = context.watch.estimate
    found = await readings.read(context.frontier, context.clock.now())
    return EstimateNow(at=readings.at, estimate=found)


async def workers(context: ApiContext, call: Call[None, None]) -> Workers:
    now, roster = context.clock.now(), context.watch.roster
    held: dict[str, list[int]] = {}
    for lease in await context.frontier.leases(limit=_MOST_LEASES):
        held.setdefault(lease.worker, []).append(lease.tasks)
    in_flight = context.registry.in_flight_by_name() if context.registry is not None else {}
    found = [
        WorkerNow(
            worker=name,
            doing="silent" if now - at >= roster.LIVE else "working" if name in held else "idle",
            heard_at=at,
            hosts=len(held.get(name, ())),
            tasks=sum(held.get(name, ())),
            in_flight=in_flight.get(name),
        )
        for name, at in sorted(roster.heard(now).items())
    ]
    return Workers(workers=found)


async def fetches(context: ApiContext, call: Call[None, FetchesAsked]) -> Fetches:
    last, frontier = context.telemetry.last, context.frontier
    return Fetches(
        fetches=[await shown(one, frontier) for one in last.newest(call.query.limit)],
        last_failure=await shown(last.failed, frontier) if last.failed is not None else None,
    )


async def urls(context: ApiContext, call: Call[None, UrlsAsked]) -> UrlList:
    asked = call.query
    host = named(asked.host)[-1] if asked.host is not None else None
    return await context.frontier.urls(
        limit=asked.limit,
        state=_STATES[asked.state] if asked.state else None,
        why=asked.why,
        host=host,
        after=asked.after,
    )


ROUTES = (
    Route(
        method="GET",
        path="/v1/crawl",
        role=Role.READ,
        group=_GROUP,
        summary="The crawl at a glance: how it does in a sentence, its seeds, its disk",
        call=crawl_now,
        answer=CrawlNow,
    ),
    Route(
        method="GET",
        path="/v1/estimate",
        role=Role.READ,
        group=_GROUP,
        summary="What is left: URLs, pages, bytes and time with their bands, and what limits it",
        detail="Made anew every few seconds at most, by a walk over all hosts. A band is low, likely and high.",
        call=estimate,
        answer=EstimateNow,
    ),
    Route(
        method="GET",
        path="/v1/workers",
        role=Role.READ,
        group=_GROUP,
        summary="Who works, and who is idle",
        call=workers,
        answer=Workers,
    ),
    Route(
        method="GET",
        path="/v1/fetches",
        role=Role.READ,
        group=_GROUP,
        summary="The latest requests",
        call=fetches,
        query=FetchesAsked,
        answer=Fetches,
    ),
    Route(
        method="GET",
        path="/v1/urls",
        role=Role.READ,
        group="urls",
        summary="URLs by state, by kind of failure or refusal, by host",
        detail="In no order that matters. A call looks at 100,000 URLs at most; `after` goes on where it ended.",
        call=urls,
        query=UrlsAsked,
        answer=UrlList,
        problems=(Trouble.UNKNOWN_HOST,),
    ),
)
