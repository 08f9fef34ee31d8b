"""What goes back to its queue: dead letters, which wait for the operator, and what is to be looked at again."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from skitter.frontier.base import DeadLetter
from skitter.service.api_context import ApiContext
from skitter.service.http.access import Role
from skitter.service.http.problem import Trouble
from skitter.service.http.routes import Call, Route
from skitter.service.steering import urls as steering
from skitter.service.steering.hosts import HostName, named
from skitter.service.steering.urls import RefreshAsked, Refreshed, RequeueAsked, Requeued

_GROUP = "dead letters"


class LettersAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 100
    host: HostName | None = None


class Letters(msgspec.Struct, frozen=True, kw_only=True):
    dead_letters: list[DeadLetter]


async def dead_letters(context: ApiContext, call: Call[None, LettersAsked]) -> Letters:
    asked = call.query
    hosts = [None] if asked.host is None else named(asked.host)
    found = [
        letter for one in hosts for letter in await context.frontier.dead_letters(limit=asked.limit, host=one)
    ]
    return Letters(dead_letters=found[: asked.limit])


async def requeue(context: ApiContext, call: Call[RequeueAsked, None]) -> Requeued:
    return await steering.requeue(context.steered, call.body)


async def refresh(context: ApiContext, call: Call[RefreshAsked, None]) -> Refreshed:
    return await steering.refresh(context.steered, call.body)


ROUTES = (
    Route(
        method="GET",
        path="/v1/dead-letters",
        role=Role.READ,
        group=_GROUP,
        summary="URLs that were given up",
        call=dead_letters,
        query=LettersAsked,
        answer=Letters,
        problems=(Trouble.UNKNOWN_HOST,),
    ),
    Route(
        method="POST",
        path="/v1/dead-letters/requeue",
        role=Role.OPERATOR,
        group=_GROUP,
        summary="Try dead letters again, with their failures forgotten",
        detail="Their hosts' failures are forgotten too. Repeating it is harmless.",
        call=requeue,
        body=RequeueAsked,
        answer=Requeued,
        problems=(Trouble.UNKNOWN_HOST,),
    ),
    Route(
        method="POST",
        path="/v1/refresh",
        role=Role.OPERATOR,
        group="urls",
        summary="Look again at what was fetched",
        detail=(
            "What has its final answer is queued once more, and asked for with the validators it came with: 304 "
            "costs no body. If one of `urls` is not known, nothing is queued. Repeating it is harmless."
        ),
        call=refresh,
        body=RefreshAsked,
        answer=Refreshed,
        problems=(Trouble.UNKNOWN_HOST, Trouble.BAD_CONDITION),
    ),
)
