"""Hosts: how they stand, what their robots.txt says, and what the operator decided for them.

A host is named by its origin, percent-encoded (`https:%2F%2Fexample.org`), or by its bare name: then the
https one is meant if the crawl knows it, else the http one; a policy is set for both.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from skitter.errors import UsageError
from skitter.frontier.base import HostStanding, HostView
from skitter.model import Host, HostPolicy
from skitter.seeds import hosts_named
from skitter.service.access import Role
from skitter.service.brain import Brain
from skitter.service.problem import Problem, Trouble
from skitter.service.routes import TEXT, Call, Route

_GROUP = "hosts"
_LONGEST_NAME = 300


class HostsAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100
    standing: HostStanding | None = None
    search: Annotated[str, Meta(max_length=_LONGEST_NAME)] = ""


class Hosts(msgspec.Struct, frozen=True, kw_only=True):
    """The busiest first; `now` is the server's clock."""

    now: float
    hosts: list[HostView]


class PolicyAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is left out (or null) is left to the crawl's settings. `rps`, requests per second, is another way to
    give `delay`; of both, the slower holds."""

    rps: Annotated[float, Meta(ge=0.000_02, le=10_000)] | None = None
    delay: Annotated[float, Meta(ge=0, le=86_400)] | None = None
    parallel: Annotated[int, Meta(ge=1, le=1_000)] | None = None
    budget: Annotated[int, Meta(ge=0, le=10**12)] | None = None
    blocked: bool = False
    verify_tls: bool | None = None


class PolicyInForce(msgspec.Struct, frozen=True, kw_only=True):
    """`delay` is what holds now, all considered, and `delay_why` says what made it so."""

    host: str
    policy: HostPolicy
    delay: float
    delay_why: str
    standing: str


class Policies(msgspec.Struct, frozen=True, kw_only=True):
    hosts: list[PolicyInForce]


async def hosts(brain: Brain, call: Call[None, HostsAsked]) -> Hosts:
    asked = call.query
    found = await brain.frontier.hosts(
        limit=asked.limit, standing=asked.standing, matching=asked.search.lower()
    )
    return Hosts(now=brain.clock.now(), hosts=found)


async def host(brain: Brain, call: Call[None, None]) -> HostView:
    return (await _known(brain, call.path["host"]))[0]


async def robots(brain: Brain, call: Call[None, None]) -> Response:
    (view, *_) = await _known(brain, call.path["host"])
    (origin,) = hosts_named(view.host)
    return Response(await brain.frontier.robots_of(origin) or b"", media_type=TEXT)


async def policy(brain: Brain, call: Call[None, None]) -> Policies:
    return Policies(hosts=[_in_force(view) for view in await _known(brain, call.path["host"])])


async def set_policy(brain: Brain, call: Call[PolicyAsked, None]) -> Policies:
    asked = call.body
    delays = [asked.delay, None if asked.rps is None else 1 / asked.rps]
    decided = HostPolicy(
        delay=max((delay for delay in delays if delay is not None), default=None),
        parallel=asked.parallel,
        budget=asked.budget,
        blocked=asked.blocked,
        verify_tls=asked.verify_tls,
    )
    for origin in named(call.path["host"]):
        await brain.frontier.set_policy(origin, decided)
    return Policies(hosts=[_in_force(view) for view in await _known(brain, call.path["host"])])


async def _known(brain: Brain, name: str) -> list[HostView]:
    """The hosts that the crawl knows by this name, https first."""
    views = [await brain.frontier.host(origin) for origin in reversed(named(name))]
    known = [view for view in views if view is not None]
    if not known:
        raise _unknown()
    return known


def named(text: str) -> list[Host]:
    """The origins that a name means; one that cannot be a host's is not known."""
    if len(text) > _LONGEST_NAME:
        raise _unknown()
    try:
        return hosts_named(text)
    except UsageError:
        raise _unknown() from None


def _unknown() -> Problem:
    return Problem(
        Trouble.UNKNOWN_HOST, "write it as https:%2F%2Fexample.org or example.org; /v1/hosts lists them"
    )


def _in_force(view: HostView) -> PolicyInForce:
    return PolicyInForce(
        host=view.host,
        policy=view.policy or HostPolicy(),
        delay=view.delay,
        delay_why=view.delay_why,
        standing=view.standing,
    )


ROUTES = (
    Route(
        method="GET",
        path="/v1/hosts",
        role=Role.READ,
        group=_GROUP,
        summary="Hosts, the busiest first",
        call=hosts,
        query=HostsAsked,
        answer=Hosts,
    ),
    Route(
        method="GET",
        path="/v1/hosts/{host}",
        role=Role.READ,
        group=_GROUP,
        summary="How one host stands",
        call=host,
        answer=HostView,
        problems=(Trouble.UNKNOWN_HOST,),
    ),
    Route(
        method="GET",
        path="/v1/hosts/{host}/robots",
        role=Role.READ,
        group=_GROUP,
        summary="The robots.txt that is obeyed there; empty when there are no rules",
        call=robots,
        answer_media=TEXT,
        problems=(Trouble.UNKNOWN_HOST,),
    ),
    Route(
        method="GET",
        path="/v1/hosts/{host}/policy",
        role=Role.READ,
        group=_GROUP,
        summary="What the operator decided for a host",
        call=policy,
        answer=Policies,
        problems=(Trouble.UNKNOWN_HOST,),
    ),
    Route(
        method="PUT",
        path="/v1/hosts/{host}/policy",
        role=Role.OPERATOR,
        group=_GROUP,
        summary="Decide for a host, in place of what was decided before",
        detail="Holds from the next lease of the host on. An empty object clears the policy.",
        call=set_policy,
        body=PolicyAsked,
        answer=Policies,
        problems=(Trouble.UNKNOWN_HOST,),
    ),
)
