"""The registry of the workers in other processes: the last response to each, and its last figures.

Between `worker_rpc.py` and the committer. A request that was answered already gets the same response, so a worker
whose response got lost may repeat it. Bounded, and lost with the process: a worker notices a new process by
`server`, and what it settles a second time changes nothing.
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
from skitter.committer.delivery_check import DeliveryCheck
from skitter.committer.door import CommitterDoor
from skitter.committer.lease_seals import LeaseSeals
from skitter.committer.worker_messages import LeaseRequest, SettleRequest, WorkerRequest
from skitter.frontier.base import REMOTE
from skitter.model import Host, HostLease, RenderTask, Token, UrlKey

T = TypeVar("T")
_MOST = 10_000
_MOST_LEASES = 8_192
_MOST_RENDERS = 256
_SILENT_AFTER = 15.0
# Who goes short asks again within a pulse.
_SHORT_FOR = 1.0
# Seconds: what was given by the last weights must have been seen to work.
_WEIGHED_EVERY = 0.5
_HEAVIEST = 8.0
_BUSIEST = 1024.0
# Halves of sixteen are eight, also by weights that are not exact.
_ROUNDING = 1e-9


class RegisteredWorker(msgspec.Struct):
    """A worker by its last request. `replies` has the last reply by path: a worker sends one request after the
    other. `hosts` is the most that it held lately, at `hosts_at`: those that it has just answered for count too.
    `weight` says how large its part of all hosts is, beside the others' weights."""

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
    renders: deque[tuple[UrlKey, Token]] = msgspec.field(default_factory=lambda: deque(maxlen=_MOST_RENDERS))


class WorkerRegistry:
    """Without `seals` workers are believed what they say of leases: those that the crawl started itself."""

    def __init__(
        self,
        committer: CommitterDoor,
        clock: Clock,
        check: DeliveryCheck,
        *,
        are_children: bool = False,
        seals: LeaseSeals | None = None,
        places: Callable[[], list[str]] = list,
    ) -> None:
        """`places` says where the partitions of a cluster are, and is empty of any other crawl."""
        self.places = places
        self.committer = committer
        self.check = check
        self.seals = seals
        self._prefix = "" if are_children else REMOTE
        self.server = secrets.token_hex(8)
        self._clock = clock
        self._workers: OrderedDict[str, RegisteredWorker] = OrderedDict()

    async def once(self, kind: str, request: WorkerRequest, act: Callable[[], Awaitable[T]]) -> T:
        """The first to ask may have hung up while it was still being done: whoever asks again waits for that. It
        is done by the first in person: a task of its own would be two more rounds of the event loop, and under
        full load each of them is somebody else's pages."""
        replies = self._worker_of(request).replies
        told = replies.get(kind)
        if told is not None and told[0] == request.sequence:
            reply: T = await asyncio.shield(told[1])
            return reply
        told = replies[kind] = (request.sequence, asyncio.get_running_loop().create_future())
        try:
            reply = await act()
        except BaseException as error:
            if replies.get(kind) is told:
                del replies[kind]
            _fail(told[1], error)
            raise
        told[1].set_result(reply)
        return reply

    def note_request(self, request: LeaseRequest | SettleRequest, *, saved: int = 0) -> None:
        worker = self._worker_of(request)
        worker.heard_at = self._clock.now()
        worker.saved = max(worker.saved, saved)
        worker.in_flight = request.in_flight
        # nan would be everybody's share
        worker.busy = request.busy if 0.0 <= request.busy <= _BUSIEST else 0.0
        self._weigh(worker)

    def share(self, request: LeaseRequest | SettleRequest) -> int:
        """How many hosts this one may be given now. As long as somebody else goes short, no more than its part
        of those that all hold: the first to ask took all of sixteen, answered for all at once, and was given all
        again, so that one of two workers idled for the first eight seconds of a crawl."""
        me = self._worker_of(request)
        others = self._others(me)
        if not any(other.is_short for other in others):
            return request.capacity
        hosts = me.hosts + sum(other.hosts for other in others)
        part = me.weight / (me.weight + sum(other.weight for other in others))
        return min(request.capacity, max(0, ceil(hosts * part - _ROUNDING) - request.held))

    def _weigh(self, me: RegisteredWorker) -> None:
        """Hosts go from who is busy to who is not, a little at a time: a worker on a slower machine has less of
        them, and so has the one that shares its core with the committer."""
        now, others = me.heard_at, self._others(me)
        if not others or now - me.weighed_at < _WEIGHED_EVERY:
            return
        mean = (me.busy + sum(other.busy for other in others)) / (len(others) + 1)
        me.weight = min(_HEAVIEST, max(1 / _HEAVIEST, me.weight * (1 + mean - me.busy)))
        me.weighed_at = now

    def _others(self, me: RegisteredWorker) -> list[RegisteredWorker]:
        """Who was heard of so lately that they count."""
        since = self._clock.now() - _SHORT_FOR
        return [other for other in self._workers.values() if other is not me and other.heard_at > since]

    def name_of(self, request: WorkerRequest) -> str:
        """What the frontier calls the worker."""
        return self._prefix + request.worker

    def note_leases(
        self, request: LeaseRequest | SettleRequest, share: int, leases: Sequence[HostLease], before: int = 0
    ) -> None:
        """Of as many as were its `share`; so many were given `before` in the same answer."""
        worker, now = self._worker_of(request), self._clock.now()
        worker.leases.extend((lease.host, lease.token) for lease in leases)
        given = before + len(leases)
        worker.is_short = given < share
        hosts = request.held + given
        if hosts >= worker.hosts or now - worker.hosts_at > _SHORT_FOR:
            worker.hosts, worker.hosts_at = hosts, now

    def note_renders(self, request: WorkerRequest, tasks: Sequence[RenderTask]) -> None:
        self._worker_of(request).renders.extend((task.key, task.token) for task in tasks)

    async def release_dead(self, name: str) -> None:
        """Frees the hosts of a worker that is known to be dead, before their leases run out. Releasing a lease
        that has ended already changes nothing."""
        worker = self._workers.pop(name, None)
        if worker is not None:
            await self.committer.release(list(worker.leases))
            if worker.renders:
                await self.committer.renders.release(list(worker.renders))

    @property
    def in_flight(self) -> int:
        """Requests, over all workers that were heard of lately."""
        return sum(worker.in_flight for worker in self._present())

    def in_flight_by_name(self) -> dict[str, int]:
        """By what the frontier calls each worker."""
        since = self._clock.now() - _SILENT_AFTER
        found = self._workers.items()
        return {self._prefix + name: one.in_flight for name, one in found if one.heard_at > since}

    @property
    def workers(self) -> int:
        return len(self._present())

    @property
    def saved(self) -> int:
        """Links that did not have to cross the wire."""
        return sum(worker.saved for worker in self._workers.values())

    def _present(self) -> list[RegisteredWorker]:
        since = self._clock.now() - _SILENT_AFTER
        return [worker for worker in self._workers.values() if worker.heard_at > since]

    def _worker_of(self, request: WorkerRequest) -> RegisteredWorker:
        worker = self._workers.get(request.worker)
        if worker is None or worker.incarnation != request.incarnation:
            worker = self._workers[request.worker] = RegisteredWorker(request.incarnation, self._clock.now())
        self._workers.move_to_end(request.worker)
        if len(self._workers) > _MOST:
            self._workers.popitem(last=False)
        return worker


def _fail(reply: asyncio.Future[Any], error: BaseException) -> None:
    if isinstance(error, asyncio.CancelledError):
        reply.cancel()
    else:
        reply.set_exception(error)
        reply.exception()  # seen: mostly nobody else waits for it
