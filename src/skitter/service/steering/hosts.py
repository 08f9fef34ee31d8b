"""What an operator decides for a host: a policy, or that it is asked again now.

A host is named by its origin or by its bare name, which means both schemes.
"""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import quote

import msgspec
from msgspec import Meta

from skitter.errors import UsageError
from skitter.frontier.base import HostView
from skitter.model import Host, HostPolicy
from skitter.seeds import hosts_named
from skitter.service.http.problem import Problem, Trouble
from skitter.service.steering.order import Order, Steered
from skitter.settings.check import complaint_about_policy

LONGEST_NAME = 300
HostName = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]


class PolicyAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is left out (or null) is left to the crawl's settings. `rps`, requests per second, is another way to
    give `delay`; of both, the slower holds."""

    rps: Annotated[float, Meta(ge=0.000_02, le=10_000)] | None = None
    delay: Annotated[float, Meta(ge=0, le=86_400)] | None = None
    parallel: Annotated[int, Meta(ge=1, le=1_000)] | None = None
    budget: Annotated[int, Meta(ge=0, le=10**12)] | None = None
    blocked: bool = False
    verify_tls: bool | None = None
    max_age: Annotated[float, Meta(ge=0, le=10**10)] | None = None
    daily_requests: Annotated[int, Meta(ge=0, le=10**12)] | None = None
    daily_bytes: Annotated[int, Meta(ge=0, le=10**15)] | None = None
    quiet_hours: Annotated[str, Meta(max_length=200)] | None = None
    time_zone: Annotated[str, Meta(max_length=100)] | None = None
    ignore_walls: bool = False
    render: Literal["never", "auto", "always"] | None = None
    weight: Annotated[float, Meta(ge=-1, le=1)] | None = None
    region: Annotated[str, Meta(max_length=32)] | None = None


class PolicyInForce(msgspec.Struct, frozen=True, kw_only=True):
    """`delay` is what holds now, all considered, and `delay_why` says what made it so."""

    host: str
    policy: HostPolicy
    delay: float
    delay_why: str
    standing: str


class Policies(msgspec.Struct, frozen=True, kw_only=True):
    hosts: list[PolicyInForce]


class HostRetried(msgspec.Struct, frozen=True, kw_only=True):
    """`retries` URLs that waited for their own retry are queued. The host is asked from `next_start` on, unless
    it is blocked."""

    host: str
    standing: str
    queued: int
    retries: int
    next_start: float


class HostsRetried(msgspec.Struct, frozen=True, kw_only=True):
    """`now` is the server's clock."""

    now: float
    hosts: list[HostRetried]


async def set_policy(crawl: Steered, host: str, asked: PolicyAsked) -> Policies:
    delays = [asked.delay, None if asked.rps is None else 1 / asked.rps]
    decided = HostPolicy(
        delay=max((delay for delay in delays if delay is not None), default=None),
        parallel=asked.parallel,
        budget=asked.budget,
        blocked=asked.blocked,
        verify_tls=asked.verify_tls,
        max_age=asked.max_age,
        daily_requests=asked.daily_requests,
        daily_bytes=asked.daily_bytes,
        quiet_hours=asked.quiet_hours or None,
        time_zone=asked.time_zone or None,
        ignore_walls=asked.ignore_walls,
        render=asked.render,
        weight=asked.weight,
        region=asked.region or None,
    )
    if complaint := complaint_about_policy(decided):
        raise Problem(Trouble.BAD_SETTING, complaint)
    for origin in named(host):
        await crawl.frontier.set_policy(origin, decided)
    return await policies(crawl, host)


async def policies(crawl: Steered, host: str) -> Policies:
    return Policies(hosts=[_in_force(view) for view in await known(crawl, host)])


async def retry(crawl: Steered, host: str, now: float) -> HostsRetried:
    counts = {origin: await crawl.frontier.retry(origin) for origin in named(host)}
    found = []
    for view in await known(crawl, host):
        found.append(
            HostRetried(
                host=view.host,
                standing=view.standing,
                queued=view.queued,
                retries=counts[Host(view.host)] or 0,
                next_start=view.next_start,
            )
        )
    return HostsRetried(now=now, hosts=found)


async def known(crawl: Steered, name: str) -> list[HostView]:
    """The hosts that the crawl knows by this name, https first."""
    views = [await crawl.frontier.host(origin) for origin in reversed(named(name))]
    found = [view for view in views if view is not None]
    if not found:
        raise _unknown(name)
    return found


def named(text: str) -> list[Host]:
    """The origins that a name means; one that cannot be a host's is not known."""
    if len(text) > LONGEST_NAME:
        raise _unknown(text)
    try:
        return hosts_named(text)
    except UsageError:
        raise _unknown(text) from None


def _unknown(name: str) -> Problem:
    return Problem(
        Trouble.UNKNOWN_HOST,
        f"{name[:LONGEST_NAME]!r} is not a host of this crawl: write it as https://example.org or example.org "
        "(percent-encoded in a path); /v1/hosts and skitter hosts list them",
    )


def _in_force(view: HostView) -> PolicyInForce:
    return PolicyInForce(
        host=view.host,
        policy=view.policy or HostPolicy(),
        delay=view.delay,
        delay_why=view.delay_why,
        standing=view.standing,
    )


# -- orders


def policy_order(host: str, asked: PolicyAsked) -> Order[Policies]:
    return Order(
        method="PUT",
        path=f"/v1/hosts/{quote(host, safe='')}/policy",
        body=asked,
        answer=Policies,
        act=lambda crawl: set_policy(crawl, host, asked),
    )


def retry_order(host: str, now: float) -> Order[HostsRetried]:
    return Order(
        method="POST",
        path=f"/v1/hosts/{quote(host, safe='')}/retry",
        answer=HostsRetried,
        act=lambda crawl: retry(crawl, host, now),
    )
