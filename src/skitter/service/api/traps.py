"""Traps: what the crawl stopped because its pages brought nothing new, and the operator's word against it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from skitter.frontier.base import TrapView
from skitter.service.access import Role
from skitter.service.brain import Brain
from skitter.service.problem import Problem, Trouble
from skitter.service.routes import Call, Route

_GROUP = "traps"
_LONGEST_NUMBER = 18


class TrapsAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 100


class Traps(msgspec.Struct, frozen=True, kw_only=True):
    """The latest verdict first."""

    traps: list[TrapView]


class Undone(msgspec.Struct, frozen=True, kw_only=True):
    """`released` is how many URLs went back to their queues; 0 when the verdict was not in force."""

    released: int


async def traps(brain: Brain, call: Call[None, TrapsAsked]) -> Traps:
    return Traps(traps=await brain.frontier.traps(limit=call.query.limit))


async def undo_trap(brain: Brain, call: Call[None, None]) -> Undone:
    number = call.path["id"]
    if not (number.isascii() and number.isdecimal() and len(number) <= _LONGEST_NUMBER):
        raise Problem(Trouble.UNKNOWN_TRAP, "a verdict's id is a number; /v1/traps lists them")
    return Undone(released=await brain.frontier.undo_trap(int(number)))


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
