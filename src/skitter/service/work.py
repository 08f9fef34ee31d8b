"""The routes for our own workers in other processes: join, lease, settle, renew, release.

Thin: an ask is decoded, handed to the desk and answered. Both sides are skitter of one version, so the wire is no
part of the documented API. Never settles a batch twice: what was answered is answered again with the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from skitter import __version__
from skitter.desk.brain import Delivery, Standing
from skitter.desk.crew import Crew
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
from skitter.frontier import bundles
from skitter.frontier.base import Settled
from skitter.model import Fetched, HostLease
from skitter.service.access import Role
from skitter.service.brain import Brain
from skitter.service.problem import Problem, Trouble
from skitter.service.routes import MSGPACK, Act, Call, Route

# Pages that are committed together, in some 7 ms; then others have their turn, leases first. With 16 what a
# commit takes by itself began to show: the look for near pages alone was 5 % of all, with 64 it is 1.
_AT_ONCE = 32


async def join(brain: Brain, call: Call[JoinAsk, None]) -> Joined:
    if call.body.version != __version__:
        raise Problem(
            Trouble.INVALID,
            f"the worker is skitter {call.body.version}, the server {__version__}: install the same version",
        )
    return Joined(**_signed(brain, _crew(brain)), settings=brain.settings)


async def lease(brain: Brain, call: Call[LeaseAsk, None]) -> Given:
    ask, crew = call.body, _crew(brain)
    crew.heard(ask, in_flight=ask.in_flight)
    leases = await crew.once(LEASE, ask, partial(_leased, brain, crew, ask))
    return Given(**_signed(brain, crew), leases=leases)


async def _leased(brain: Brain, crew: Crew, ask: LeaseAsk | SettleAsk) -> list[HostLease]:
    if brain.control.is_paused or not ask.capacity:
        return []
    duration = brain.settings.frontier.lease_duration
    found = await crew.desk.lease(crew.name_of(ask), ask.capacity, duration)
    crew.gave(ask, found)
    return found


async def settle(brain: Brain, call: Call[SettleAsk, None]) -> Taken:
    ask, crew = call.body, _crew(brain)
    crew.heard(ask, in_flight=ask.in_flight, saved=ask.saved)
    _check(ask.deliveries)
    if ask.server and ask.server != crew.server:
        return Taken(**_signed(brain, crew), settled=[])

    async def settled() -> tuple[list[Settled], list[HostLease]]:
        verdicts: list[Settled] = []
        for start in range(0, len(ask.deliveries), _AT_ONCE):
            settlements = await crew.desk.settled(ask.deliveries[start : start + _AT_ONCE])
            verdicts += [settlement.settled for settlement in settlements]
        return verdicts, await _leased(brain, crew, ask)

    verdicts, leases = await crew.once(SETTLE, ask, settled)
    return Taken(**_signed(brain, crew), settled=verdicts, leases=leases)


async def renew(brain: Brain, call: Call[LeasesAsk, None]) -> Renewed:
    crew = _crew(brain)
    deadlines = await crew.desk.renew(call.body.leases, brain.settings.frontier.lease_duration)
    return Renewed(**_signed(brain, crew), deadlines=deadlines)


async def release(brain: Brain, call: Call[LeasesAsk, None]) -> Released:
    crew = _crew(brain)
    await crew.desk.release(call.body.leases)
    return Released(**_signed(brain, crew))


def _check(deliveries: Sequence[Delivery]) -> None:
    try:
        for delivery in deliveries:
            if isinstance(delivery.outcome.result, Fetched):
                bundles.check(delivery.outcome.result.bundles)
    except ValueError as error:
        raise Problem(Trouble.INVALID, f"links: {error}") from error


def _crew(brain: Brain) -> Crew:
    if brain.crew is None:
        raise Problem(Trouble.UNAVAILABLE, "this server takes no workers: start it with skitter serve")
    return brain.crew


def _signed(brain: Brain, crew: Crew) -> dict[str, Any]:
    standing = Standing.PAUSED if brain.control.is_paused else crew.desk.standing
    return {"server": crew.server, "now": brain.clock.now(), "standing": standing}


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
