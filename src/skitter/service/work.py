"""The routes for our own workers in other processes: join, lease, settle, renew, release.

Thin: an ask is decoded, handed to `desk/reception.py` and answered. The wire is no part of the documented API.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from skitter.desk.reception import Reception, Unacceptable
from skitter.desk.wire import (
    JOIN,
    LARGEST_BATCH,
    LEASE,
    RELEASE,
    RENEW,
    SETTLE,
    Given,
    JoinAsk,
    Joined,
    LeaseAsk,
    LeasesAsk,
    Released,
    Renewed,
    SettleAsk,
    Taken,
)
from skitter.service.access import Role
from skitter.service.brain import Brain
from skitter.service.problem import Problem, Trouble
from skitter.service.routes import MSGPACK, Act, Call, Route

T = TypeVar("T")


async def join(brain: Brain, call: Call[JoinAsk, None]) -> Joined:
    return await _accepted(_reception(brain).join(call.body))


async def lease(brain: Brain, call: Call[LeaseAsk, None]) -> Given:
    return await _reception(brain).lease(call.body)


async def settle(brain: Brain, call: Call[SettleAsk, None]) -> Taken:
    return await _accepted(_reception(brain).settle(call.body))


async def renew(brain: Brain, call: Call[LeasesAsk, None]) -> Renewed:
    return await _reception(brain).renew(call.body)


async def release(brain: Brain, call: Call[LeasesAsk, None]) -> Released:
    return await _reception(brain).release(call.body)


async def _accepted(answer: Awaitable[T]) -> T:
    try:
        return await answer
    except Unacceptable as error:
        raise Problem(Trouble.INVALID, str(error)) from error


def _reception(brain: Brain) -> Reception:
    if brain.crew is None:
        raise Problem(Trouble.UNAVAILABLE, "this server takes no workers: start it with skitter serve")
    return Reception(brain.crew, brain.settings, brain.clock, lambda: brain.control.is_paused)


def _route(path: str, summary: str, call: Act, body: type, answer: type) -> Route:
    return Route(
        method="POST",
        path=path,
        role=Role.WORKER,
        group="work",
        summary=summary,
        call=call,
        body=body,
        answer=answer,
        body_media=MSGPACK,
        answer_media=MSGPACK,
        largest_body=LARGEST_BATCH,
        documented=False,
    )


ROUTES = (
    _route(JOIN, "The settings a worker works by", join, JoinAsk, Joined),
    _route(LEASE, "Hosts to ask", lease, LeaseAsk, Given),
    _route(SETTLE, "What came of it", settle, SettleAsk, Taken),
    _route(RENEW, "More time for hosts", renew, LeasesAsk, Renewed),
    _route(RELEASE, "Hosts back", release, LeasesAsk, Released),
)
