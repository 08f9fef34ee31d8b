"""Traps: what the crawl stopped because its pages brought nothing new, and the operator's word against it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from skitter.frontier.base import TrapView
from skitter.service.api_context import ApiContext
from skitter.service.http.access import Role
from skitter.service.http.problem import Problem, Trouble
from skitter.service.http.routes import Call, Route
from skitter.service.steering import traps as steering
from skitter.service.steering.traps import Undone

_GROUP = "traps"
_LONGEST_NUMBER = 18


class TrapsAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 100


class Traps(msgspec.Struct, frozen=True, kw_only=True):
    """The latest verdict first."""

    traps: list[TrapView]


async def traps(context: ApiContext, call: Call[None, TrapsAsked]) -> Traps:
    return Traps(traps=await context.frontier.traps(limit=call.query.limit))


async def undo_trap(context: ApiContext, call: Call[None, None]) -> Undone:
    number = call.path["id"]
    if not (number.isascii() and number.isdecimal() and len(number) <= _LONGEST_NUMBER):
        raise Problem(Trouble.UNKNOWN_TRAP, "a verdict's id is a number; /v1/traps lists them")
    return await steering.undo_trap(context.steered, int(number))


ROUTES = (
    Route(
        method="GET",
        path="/v1/traps",
        role=Role.READ,
        group=_GROUP,
        summary="Verdicts on kinds of pages that bring nothing new",
        call=traps,
        query=TrapsAsked,
        answer=Traps,
    ),
    Route(
        method="POST",
        path="/v1/traps/{id}/undo",
        role=Role.OPERATOR,
        group=_GROUP,
        summary="Revoke a verdict",
        detail="What it refused goes back to its queue, once, and what it was about is not judged any more.",
        call=undo_trap,
        answer=Undone,
        problems=(Trouble.UNKNOWN_TRAP,),
    ),
)
