"""The crawl as a whole: is it alive, what are its figures, may it go on."""

from __future__ import annotations

import msgspec

from skitter import __version__
from skitter.frontier.base import Stats
from skitter.service.api_context import ApiContext
from skitter.service.http.access import Role
from skitter.service.http.problem import Trouble
from skitter.service.http.routes import Call, Route
from skitter.service.steering.running import Running
from skitter.service.steering.settings import SettingsAsked, SettingsNow

_GROUP = "crawl"


class Alive(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    version: str


class CrawlStats(msgspec.Struct, frozen=True, kw_only=True):
    """The frontier's figures now. `now` is the server's clock, which all times of the API are by."""

    now: float
    paused: bool
    stats: Stats


async def alive(context: ApiContext, call: Call[None, None]) -> Alive:
    return Alive(status="ok", version=__version__)


async def stats(context: ApiContext, call: Call[None, None]) -> CrawlStats:
    return CrawlStats(
        now=context.clock.now(),
        paused=context.committer.is_paused_by_operator,
        stats=await context.frontier.stats(),
    )


async def pause(context: ApiContext, call: Call[None, None]) -> Running:
    context.committer.pause()
    return Running(paused=True)


async def resume(context: ApiContext, call: Call[None, None]) -> Running:
    context.committer.resume()
    return Running(paused=False)


async def settings(context: ApiContext, call: Call[None, None]) -> SettingsNow:
    return context.in_force.told()


async def change_settings(context: ApiContext, call: Call[SettingsAsked, None]) -> SettingsNow:
    return context.in_force.change(call.body)


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
    Route(
        method="GET",
        path="/v1/settings",
        role=Role.READ,
        group=_GROUP,
        summary="The settings in force",
        call=settings,
        answer=SettingsNow,
    ),
    Route(
        method="PATCH",
        path="/v1/settings",
        role=Role.OPERATOR,
        group=_GROUP,
        summary="Change settings of the running crawl",
        detail=(
            "Only those that `can_change` names; the others need a restart. A change is kept for later runs."
        ),
        call=change_settings,
        body=SettingsAsked,
        answer=SettingsNow,
        problems=(Trouble.NEEDS_RESTART, Trouble.UNKNOWN_SETTING, Trouble.BAD_SETTING),
    ),
)
