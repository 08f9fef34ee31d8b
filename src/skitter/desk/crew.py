"""The workers in other processes, as the desk sees them: what each was told last, and what it said of itself.

Between `reception.py` and the desk. An ask that was answered already is answered again with the same words, so
a worker whose answer got lost may ask as often as it likes. Bounded, and lost with the process: a worker that
speaks to a new one is told by `server`, and what it settles a second time changes nothing.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from math import ceil
from typing import Any, TypeVar

import msgspec

from skitter.clock import Clock
from skitter.desk.desk import Desk
from skitter.desk.wire import Ask, LeaseAsk, SettleAsk
from skitter.frontier.base import REMOTE
from skitter.model import Host, HostLease, Token

T = TypeVar("T")
_MOST = 10_000
_MOST_LEASES = 8_192
_SILENT_AFTER = 15.0
# Who goes short asks again within a pulse.
_SHORT_FOR = 1.0
# Seconds: what was given by the last weights must have been seen to work.
_WEIGHED_EVERY = 0.5
_HEAVIEST = 8.0
# Halves of sixteen are eight, also by weights that are not exact.
_ROUNDING = 1e-9


class Member(msgspec.Struct):
    """A worker by its last word. `replies` has the last reply by kind: it asks one thing after the other. `hosts`
    is the most that it held lately, at `hosts_at`: what it has just answered for is free, and no less its own.
    `weight` says how large its part of all hosts is, beside those of the others."""

    incarnation: str
    heard_at: float
    in_flight: int = 0
    hosts: int = 0
    hosts_at: float = 0.0
    is_short: bool = False
    busy: float = 0.0
    weight: float = 1.0
    weighed_at: float = 0.0
    saved: int = 0
    leases: deque[tuple[Host, Token]] = msgspec.field(default_factory=lambda: deque(maxlen=_MOST_LEASES))
    replies: dict[str, tuple[int, asyncio.Future[Any]]] = {}


class Crew:
    def __init__(self, desk: Desk, clock: Clock, *, leashed: bool = False) -> None:
        self.desk = desk
        self._prefix = "" if leashed else REMOTE
        self.server = secrets.token_hex(8)
        self._clock = clock
        self._members: OrderedDict[str, Member] = OrderedDict()

    async def once(self, kind: str, ask: Ask, act: Callable[[], Awaitable[T]]) -> T:
        """The first to ask may have hung up while it was still being done: whoever asks again waits for that. It
        is done by the first in person: a task of its own would be two more rounds of the event loop, and under
        full load each of them is somebody else's pages."""
        replies = self._member(ask).replies
        told = replies.get(kind)
        if told is not None and told[0] == ask.sequence:
            reply: T = await asyncio.shield(told[1])
            return reply
        told = replies[kind] = (ask.sequence, asyncio.get_running_loop().create_future())
        try:
            reply = await act()
        except BaseException as error:
            if replies.get(kind) is told:
                del replies[kind]
            _fail(told[1], error)
            raise
        told[1].set_result(reply)
        return reply

    def heard(self, ask: LeaseAsk | SettleAsk, *, saved: int = 0) -> None:
        member = self._member(ask)
        member.heard_at = self._clock.now()
        member.saved = max(member.saved, saved)
        member.in_flight = ask.in_flight
        member.busy = ask.busy
        self._weigh(member)

    def share(self, ask: LeaseAsk | SettleAsk) -> int:
        """How many hosts this one may be given now. As long as somebody else goes short, no more than its part
        of those that all hold: the first to ask took all of sixteen, answered for all at once, and was given all
        again, so that one of two workers idled for the first eight seconds of a crawl."""
        me = self._member(ask)
        others = self._others(me)
        if not any(other.is_short for other in others):
            return ask.capacity
        hosts = me.hosts + sum(other.hosts for other in others)
        part = me.weight / (me.weight + sum(other.weight for other in others))
        return min(ask.capacity, max(0, ceil(hosts * part - _ROUNDING) - ask.held))

    def _weigh(self, me: Member) -> None:
        """Hosts go from who is busy to who is not, a little at a time: a worker on a slower machine has less of
        them, and so has the one that shares its core with the desk."""
        now, others = me.heard_at, self._others(me)
        if not others or now - me.weighed_at < _WEIGHED_EVERY:
            return
        mean = (me.busy + sum(other.busy for other in others)) / (len(others) + 1)
        me.weight = min(_HEAVIEST, max(1 / _HEAVIEST, me.weight * (1 + mean - me.busy)))
        me.weighed_at = now

    def _others(self, me: Member) -> list[Member]:
        """Who was heard of so lately that they count."""
        since = self._clock.now() - _SHORT_FOR
        return [other for other in self._members.values() if other is not me and other.heard_at > since]

    def name_of(self, ask: Ask) -> str:
        """What the frontier calls the worker."""
        return self._prefix + ask.worker

    def gave(
        self, ask: LeaseAsk | SettleAsk, share: int, leases: Sequence[HostLease], before: int = 0
    ) -> None:
        """Of as many as were its `share`; so many were given `before` in the same answer."""
        member, now = self._member(ask), self._clock.now()
        member.leases.extend((lease.host, lease.token) for lease in leases)
        given = before + len(leases)
        member.is_short = given < share
        hosts = ask.held + given
        if hosts >= member.hosts or now - member.hosts_at > _SHORT_FOR:
            member.hosts, member.hosts_at = hosts, now

    async def died(self, worker: str) -> None:
        """Known to be dead, not only silent: its hosts need not wait for a deadline. Those that it had done with
        already are in nobody's way: a lease that has ended is not released again."""
        member = self._members.pop(worker, None)
        if member is not None:
            await self.desk.release(list(member.leases))

    @property
    def in_flight(self) -> int:
        """Requests, over all workers that were heard of lately."""
        return sum(member.in_flight for member in self._present())

    @property
    def workers(self) -> int:
        return len(self._present())

    @property
    def saved(self) -> int:
        """Links that did not have to cross the wire."""
        return sum(member.saved for member in self._members.values())

    def _present(self) -> list[Member]:
        since = self._clock.now() - _SILENT_AFTER
        return [member for member in self._members.values() if member.heard_at > since]

    def _member(self, ask: Ask) -> Member:
        member = self._members.get(ask.worker)
        if member is None or member.incarnation != ask.incarnation:
            member = self._members[ask.worker] = Member(ask.incarnation, self._clock.now())
        self._members.move_to_end(ask.worker)
        if len(self._members) > _MOST:
            self._members.popitem(last=False)
        return member


def _fail(reply: asyncio.Future[Any], error: BaseException) -> None:
    if isinstance(error, asyncio.CancelledError):
        reply.cancel()
    else:
        reply.set_exception(error)
        reply.exception()  # seen: mostly nobody else waits for it
