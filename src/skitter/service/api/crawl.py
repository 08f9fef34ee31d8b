"""The crawl as a whole: is it alive, what are its figures, may it go on."""

from __future__ import annotations

import msgspec

from skitter import __version__
from skitter.frontier.base import Stats
from skitter.service.access import Role
from skitter.service.brain import Brain
from skitter.service.routes import Call, Route

_GROUP = "crawl"


class Alive(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    version: str


class Running(msgspec.Struct, frozen=True, kw_only=True):
    paused: bool


class CrawlStats(msgspec.Struct, frozen=True, kw_only=True):
    """The frontier's figures now. `now` is the server's clock, which all times of the API are by."""

    now: float
    paused: bool
    stats: Stats


async def alive(brain: Brain, call: Call[None, None]) -> Alive:
    return Alive(status="ok", version=__version__)


async def stats(brain: Brain, call: Call[None, None]) -> CrawlStats:
    return CrawlStats(
        now=brain.clock.now(), paused=brain.control.is_paused, stats=await brain.frontier.stats()
    )


async def pause(brain: Brain, call: Call[None, None]) -> Running:
    brain.control.pause()
    return Running(paused=True)


async def resume(brain: Brain, call: Call[None, None]) -> Running:
    brain.control.resume()
    return Running(paused=False)


ROUTES = (
    Route(
        method="GET",
        path="/v1/health",
        role=None,
        group=_GROUP,
        summary="Whether the service answers",
        call=alive,
        answer=Alive,
    ),
    Route(
        method="GET",
        path="/v1/stats",
        role=Role.READ,
        group=_GROUP,
        summary="The figures of the crawl, now",
        call=stats,
        answer=CrawlStats,
    ),
    Route(
        method="POST",
        path="/v1/crawl/pause",
        role=Role.OPERATOR,
        group=_GROUP,
        summary="Hand out no more work",
        detail="Requests in flight end as usual, results are taken. Until resumed, or the process ends.",
        call=pause,
        answer=Running,
    ),
    Route(
        method="POST",
        path="/v1/crawl/resume",
        role=Role.OPERATOR,
        group=_GROUP,
        summary="Hand out work again",
        call=resume,
        answer=Running,
    ),
)
