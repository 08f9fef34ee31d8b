"""Hosts: how they stand, what their robots.txt says, and what the operator decided for them.

A host is named by its origin, percent-encoded (`https:%2F%2Fexample.org`), or by its bare name: then the
https one is meant if the crawl knows it, else the http one; a policy is set for both.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from skitter.frontier.base import HostStanding, HostView
from skitter.seeds import hosts_named
from skitter.service.api_context import ApiContext
from skitter.service.http.access import Role
from skitter.service.http.problem import Trouble
from skitter.service.http.routes import TEXT, Call, Route
from skitter.service.steering import hosts as steering
from skitter.service.steering.hosts import LONGEST_NAME, HostsRetried, Policies, PolicyAsked, known
from skitter.service.steering.signals import SignalsAsked, SignalsHeard, hear_signals

_GROUP = "hosts"


class HostsAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100
    standing: HostStanding | None = None
    search: Annotated[str, Meta(max_length=LONGEST_NAME)] = ""


class Hosts(msgspec.Struct, frozen=True, kw_only=True):
    """The busiest first; `now` is the server's clock."""

    now: float
    hosts: list[HostView]


async def hosts(context: ApiContext, call: Call[None, HostsAsked]) -> Hosts:
    asked = call.query
    found = await context.frontier.hosts(
        limit=asked.limit, standing=asked.standing, matching=asked.search.lower()
    )
    return Hosts(now=context.clock.now(), hosts=found)


async def host(context: ApiContext, call: Call[None, None]) -> HostView:
    return (await known(context.steered, call.path["host"]))[0]


async def robots(context: ApiContext, call: Call[None, None]) -> Response:
    (view, *_) = await known(context.steered, call.path["host"])
    (origin,) = hosts_named(view.host)
    return Response(await context.frontier.robots_of(origin) or b"", media_type=TEXT)


async def policy(context: ApiContext, call: Call[None, None]) -> Policies:
    return await steering.policies(context.steered, call.path["host"])


async def set_policy(context: ApiContext, call: Call[PolicyAsked, None]) -> Policies:
    return await steering.set_policy(context.steered, call.path["host"], call.body)


async def retry_host(context: ApiContext, call: Call[None, None]) -> HostsRetried:
    return await steering.retry(context.steered, call.path["host"], context.clock.now())


async def signals(context: ApiContext, call: Call[SignalsAsked, None]) -> SignalsHeard:
    return await hear_signals(context.steered, call.body)


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
        problems=(Trouble.UNKNOWN_HOST, Trouble.BAD_SETTING),
    ),
    Route(
        method="POST",
        path="/v1/signals",
        role=Role.OPERATOR,
        group=_GROUP,
        summary="Say that hosts, or parts of them, were useful or not",
        detail=(
            "Each signal moves what is thought of the host by a third of the way. Its new URLs become more or "
            "less urgent by up to 20 points, and its budget up to four times as large or a quarter. All signals "
            "count, or none where a host is not known."
        ),
        call=signals,
        body=SignalsAsked,
        answer=SignalsHeard,
        problems=(Trouble.UNKNOWN_HOST,),
    ),
    Route(
        method="POST",
        path="/v1/hosts/{host}/retry",
        role=Role.OPERATOR,
        group=_GROUP,
        summary="Ask a host again now",
        detail=(
            "Ends its backoff, quarantine or wait for a robots.txt, and the waits of its URLs for their retries. "
            "Its failures are forgotten, its delay is kept to."
        ),
        call=retry_host,
        answer=HostsRetried,
        problems=(Trouble.UNKNOWN_HOST,),
    ),
)
