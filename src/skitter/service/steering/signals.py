"""What those downstream say of hosts: this one was useful, that one was not. It moves priorities and budgets."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from skitter.service.http.problem import Problem, Trouble
from skitter.service.steering.hosts import HostName, known, named
from skitter.service.steering.order import Steered

MOST_SIGNALS = 1_000


class Signal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`useful` from -1 (of no use) to 1. With `path` it is of those URLs of the host whose path begins so."""

    host: HostName
    useful: Annotated[float, Meta(ge=-1, le=1)]
    path: Annotated[str, Meta(max_length=200, pattern="^(/.*)?$")] = ""


class SignalsAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    signals: Annotated[list[Signal], Meta(min_length=1, max_length=MOST_SIGNALS)]


class SignalHeard(msgspec.Struct, frozen=True, kw_only=True):
    """What is thought of the host, or of that part of it, now."""

    host: str
    path: str
    worth: float


class SignalsHeard(msgspec.Struct, frozen=True, kw_only=True):
    heard: list[SignalHeard]


async def hear_signals(crawl: Steered, asked: SignalsAsked) -> SignalsHeard:
    """All of them, or none where one names a host that the crawl does not know."""
    for signal in asked.signals:
        await known(crawl, signal.host)
    heard = []
    for signal in asked.signals:
        for origin in named(signal.host):
            worth = await crawl.frontier.signal(origin, signal.useful, signal.path)
            if worth is not None:
                heard.append(SignalHeard(host=origin, path=signal.path, worth=worth))
    if not heard:
        raise Problem(Trouble.UNKNOWN_HOST, "none of these hosts is known to the crawl any more")
    return SignalsHeard(heard=heard)
