"""What an operator's page asks besides: what the token allows, who holds leases, all that is known of a host."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from skitter.frontier.base import HostExplanation, LeaseView
from skitter.model import Host
from skitter.service.api_context import ApiContext
from skitter.service.http.access import Role
from skitter.service.http.problem import Problem, Trouble
from skitter.service.http.routes import Call, Route

_GROUP = "operators"


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """`role` is read, worker, trusted-worker or operator; `name` is the token's, empty where there are none."""

    role: str
    name: str = ""


class LeasesAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class Leases(msgspec.Struct, frozen=True, kw_only=True):
    leases: list[LeaseView]


class HostAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`fetches` is how many of its latest requests are told."""

    fetches: Annotated[int, Meta(ge=0, le=1000)] = 50


async def whoami(context: ApiContext, call: Call[None, None]) -> Caller:
    return Caller(role=call.caller.role.word, name=call.caller.name)


async def leases(context: ApiContext, call: Call[None, LeasesAsked]) -> Leases:
    return Leases(leases=await context.frontier.leases(limit=call.query.limit))


async def explain_host(context: ApiContext, call: Call[None, HostAsked]) -> HostExplanation:
    found = await context.frontier.explain_host(Host(call.path["host"]), fetches=call.query.fetches)
    if found is None:
        raise Problem(Trouble.UNKNOWN_HOST, "write it as https:%2F%2Fexample.org; /v1/hosts lists them")
    return found


ROUTES = (
    Route(
        method="GET",
        path="/v1/whoami",
        role=Role.READ,
        group=_GROUP,
        summary="What the token allows",
        call=whoami,
        answer=Caller,
    ),
    Route(
        method="GET",
        path="/v1/leases",
        role=Role.READ,
        group=_GROUP,
        summary="Leases that are out now, those that end first, first",
        call=leases,
        query=LeasesAsked,
        answer=Leases,
    ),
    Route(
        method="GET",
        path="/v1/hosts/{host}/explain",
        role=Role.READ,
        group=_GROUP,
        summary="All that is known of a host",
        detail="With its robots.txt (the first 65,536 bytes) and its latest requests, of its first 20,000.",
        call=explain_host,
        query=HostAsked,
        answer=HostExplanation,
        problems=(Trouble.UNKNOWN_HOST,),
    ),
)
