"""Dead letters: URLs without hope, which wait for the operator."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from skitter.frontier.base import DeadLetter
from skitter.service.access import Role
from skitter.service.api.hosts import named
from skitter.service.brain import Brain
from skitter.service.problem import Trouble
from skitter.service.routes import Call, Route

_GROUP = "dead letters"

HostName = Annotated[str, Meta(min_length=1, max_length=300)]
Url = Annotated[str, Meta(min_length=1, max_length=8192)]


class LettersAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 100
    host: HostName | None = None


class Letters(msgspec.Struct, frozen=True, kw_only=True):
    dead_letters: list[DeadLetter]


class RequeueAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One URL, a host's, or (`all`) every dead letter. The narrowest given counts; of nothing, nothing."""

    url: Url | None = None
    host: HostName | None = None
    all: bool = False


class Requeued(msgspec.Struct, frozen=True, kw_only=True):
    requeued: int


async def dead_letters(brain: Brain, call: Call[None, LettersAsked]) -> Letters:
    asked = call.query
    hosts = [None] if asked.host is None else named(asked.host)
    found = [
        letter for one in hosts for letter in await brain.frontier.dead_letters(limit=asked.limit, host=one)
    ]
    return Letters(dead_letters=found[: asked.limit])


async def requeue(brain: Brain, call: Call[RequeueAsked, None]) -> Requeued:
    asked = call.body
    if asked.url is not None:
        return Requeued(requeued=await brain.frontier.requeue(url=asked.url))
    if asked.host is not None:
        moved = [await brain.frontier.requeue(host=one) for one in named(asked.host)]
        return Requeued(requeued=sum(moved))
    return Requeued(requeued=await brain.frontier.requeue() if asked.all else 0)


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
)
