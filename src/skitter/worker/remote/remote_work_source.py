"""The work source of a worker in another process: a committer elsewhere, over HTTP.

Below the loop, above `http_link.py`. A request without a response is sent again with the same number, so nothing
is leased or settled twice. While nobody answers no host is asked; what was fetched is kept as long as it can be
of use, and delivered when the server is back. Times are translated so that a doubt never costs a host anything:
leases end sooner here and begin later, and requests count as sent later than they were.

    present   every request is answered
    away      nobody answers: standing is PAUSED, and from time to time it is tried again
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from skitter import __version__
from skitter.clock import Clock
from skitter.committer.cpu_share import CpuShare
from skitter.committer.work_source import (
    COMMITTED_AT_ONCE,
    LINKS_AT_ONCE,
    Delivery,
    Standing,
    links_of,
    nobody,
)
from skitter.committer.worker_messages import (
    JOIN,
    LEASE,
    PARTS,
    RELEASE,
    RENEW,
    SETTLE,
    JoinRequest,
    JoinResponse,
    LeaseRequest,
    LeaseResponse,
    LeasesRequest,
    PartsRequest,
    PartsResponse,
    ReleaseResponse,
    RenewResponse,
    SettleRequest,
    SettleResponse,
    WorkerRequest,
    WorkerResponse,
)
from skitter.errors import UsageError
from skitter.faultpoints import Point, reach
from skitter.frontier.base import Settled
from skitter.model import Host, HostLease, Token
from skitter.settings import Settings
from skitter.worker.remote.http_link import Away, HttpLink, Refused
from skitter.worker.remote.kept_seals import KeptSeals
from skitter.worker.remote.remote_renders import RemoteRenders
from skitter.worker.remote.sent_links import SentLinks
from skitter.worker.remote.server_notes import ServerNotes

A = TypeVar("A", bound=WorkerResponse)
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 5.0
_LOOK = 0.5
# What is delivered so long after the lease has ended is hardly of use: the URL was given to somebody else.
_GRACE = 120.0
# Of the hosts that are ready: the others are for the others.
_MOST_AT_ONCE = 256
# What is answered for gives up its places: with twice as many a worker of 60 hosts had answers in all of its own,
# and waited for the committer for a quarter of the time.
_BATCH = COMMITTED_AT_ONCE
_BATCH_BYTES = 8_000_000
# Seconds. The loop has leases to renew, too; what is left is delivered on its next pulse.
_LONGEST_FLUSH = 0.5
# Seconds by which the bound of the server's clock may be too high: its hosts rest so much longer.
_LOOSE = 1.0
# Of a lease's duration: how often the leases of what waits to be delivered are renewed.
_KEEP_AT = 0.25
# Beyond this nothing more is leased: the server takes less than is fetched. Not sooner, or hosts run out here
# while it catches up, and then it has nothing to take.
_ENOUGH_UNDELIVERED = 256
# Beyond either no request is started, and hosts are given back.
_MOST_UNDELIVERED, _MOST_BYTES = 2048, 64_000_000
_UNACCEPTABLE = (400, 413, 422)
# Bytes of an ask whose memory is kept for the next one.
_LONGEST_KEPT = 4_000_000
_OPEN, _PAUSED = Standing.OPEN, Standing.PAUSED  # an enum's own attribute takes 0.1 us, and each request asks
_encode_into = msgspec.msgpack.Encoder().encode_into


class _Batch(NamedTuple):
    sequence: int
    since: float
    deliveries: list[Delivery]


class RemoteWorkSource:
    """`_waiting` are deliveries with the time they came in and their weight, together `_bytes`; `_batch` is the
    one under way, which keeps its number until it is answered. `_appetite` is for how many hosts the loop asked
    last: with what it settles next so many are asked for again, and wait in `_given` to be fetched."""

    def __init__(self, link: HttpLink, clock: Clock, name: str) -> None:
        self._link = link
        self._clock = clock
        self._name = name
        self._incarnation = secrets.token_hex(8)
        self._cpu_share = CpuShare(clock)
        self._sequence = 0
        self._server = ""
        self._offset = 0.0
        self._former = inf  # that to the last server
        self._is_loose = False
        self._standing = Standing.OPEN
        self._duration = 60.0
        self._is_away = False
        self._wait = _FIRST_WAIT
        self._retry_at = 0.0
        self._look_at = 0.0
        self._waiting: deque[tuple[float, int, Delivery]] = deque()
        self._bytes = 0
        self._keep_at = 0.0
        self._batch: _Batch | None = None
        self._is_delivering = False
        self._lease_sequence: int | None = None
        self._appetite = 0
        self._given: list[HostLease] | None = None
        self._is_given_now = False
        self._released: list[tuple[Host, Token]] = []
        self._written: list[bytearray] = []
        self._seals = KeptSeals()
        self.parts = 0
        """How many partitions the cluster has that the server is a node of; 0 where it is none."""
        self.is_unsure: Callable[[tuple[Host, Token]], float | None] | None = None
        """Asked for the deadline of a lease whose partition is not where it was, until its next owner is
        found."""
        self._strays: list[Delivery] = []
        self.sent_links = SentLinks()
        self.renders = RemoteRenders(self)
        self.notes: ServerNotes | None = None
        self.verifies_tls = False
        """Whether certificates are checked whatever the server says of a host."""
        self.in_flight: Callable[[], int] = lambda: 0
        self.held: Callable[[], int] = lambda: 0
        self._concurrency = 0
        self.take_concurrency: Callable[[int], None] = lambda _: None
        """Is told how many requests may be in flight, whenever that is another number."""

    async def join(self) -> Settings:
        """The settings of the crawl. Raises `Away` when nobody is there."""
        request = JoinRequest(**self.signed(), version=__version__)
        try:
            joined = await self._call(JOIN, request, JoinResponse)
        except Refused as error:
            raise UsageError(f"the server does not take this worker: {error.detail}") from None
        except Away as error:
            if self.notes is not None:
                self.notes.lost(str(error))
            raise
        if self.notes is not None:
            self.notes.joined()
        settings, self.parts = joined.settings, joined.parts
        self._duration = settings.frontier.lease_duration
        depths = [rule.depth for rule in settings.seeds.values() if rule.depth is not None]
        self.sent_links.deepest = min(settings.crawl.max_depth, *depths, settings.crawl.max_depth)
        return settings

    # -- the source

    @property
    def standing(self) -> Standing:
        # A server that closes may come back; only its own worker ends with it.
        is_open = self._standing is _OPEN and not self._is_away
        is_open = is_open and self._bytes <= _MOST_BYTES and self.undelivered <= _MOST_UNDELIVERED
        return _OPEN if is_open else _PAUSED

    async def lease(self, worker: str, capacity: int, duration: float) -> list[HostLease]:
        self._appetite = capacity = min(capacity, _MOST_AT_ONCE)
        if self._given is not None:
            given, self._given = self._given, None
            return given
        # but what the server gave already, and was not heard, is ours
        if self.undelivered > _ENOUGH_UNDELIVERED and self._lease_sequence is None:
            return []
        if self._lease_sequence is None:
            self._lease_sequence = self._next()
        request = LeaseRequest(
            worker=self._name,
            incarnation=self._incarnation,
            sequence=self._lease_sequence,
            capacity=capacity,
            in_flight=self.in_flight(),
            held=self.held(),
            busy=self._cpu_share.measure(),
        )
        asked_at = self._clock.now()
        answer = await self.tried(LEASE, request, LeaseResponse)
        if answer is None:
            return []
        self._lease_sequence = None
        self._seals.keep(answer.leases, answer.seals)
        return [self._translated(lease, answer.now, asked_at) for lease in answer.leases]

    async def settle(self, deliveries: Sequence[Delivery], committed: Callable[[], None] = nobody) -> None:
        now = self._clock.now()
        if not self._waiting:
            self._keep_at = now + self._duration * _KEEP_AT
        for delivery in deliveries:
            weight = _weight(delivery)
            self._waiting.append((now, weight, delivery))
            self._bytes += weight
        await self._flush(committed, hungry=self.standing is Standing.OPEN)

    async def renew(self, leases: Sequence[tuple[Host, Token]], duration: float) -> list[float | None] | None:
        asked_at = self._clock.now()
        held = [*leases, *self._undelivered_leases(asked_at)]
        if not held:
            return []
        request = LeasesRequest(**self.signed(), leases=held, seals=self._seals.of(held))
        renewed = await self.tried(RENEW, request, RenewResponse)
        if renewed is None:
            return None
        here, asked = asked_at - renewed.now, renewed.deadlines[: len(leases)]
        deadlines = [None if deadline is None else here + deadline for deadline in asked]
        if renewed.elsewhere and self.is_unsure is not None:
            for number in renewed.elsewhere:
                if number < len(leases):
                    deadlines[number] = self.is_unsure(leases[number])
        return deadlines

    async def release(self, leases: Sequence[tuple[Host, Token]]) -> None:
        self._released += leases
        await self._flush()

    async def beat(self, as_of: float | None = None) -> None:
        self._drop_what_is_too_old()
        if self._given and not self._is_given_now:
            self._give_back()
        # Only what the loop asks for on every pulse it still wants.
        self._is_given_now, self._appetite = False, 0
        if self._is_idle_no_more():
            return
        if self._waiting or self._batch or self._released:
            await self._flush()
        elif self.standing is not Standing.OPEN and (now := self._clock.now()) >= self._look_at:
            # The loop asks for nothing meanwhile, and would never hear that it may go on.
            self._look_at = now + _LOOK
            await self.tried(RENEW, LeasesRequest(**self.signed(), leases=[]), RenewResponse)

    async def leave(self) -> None:
        """The loop has ended, and fetches no more hosts."""
        self._give_back()
        await self._flush()

    # -- partitions that move

    def use_seals(self, seals: KeptSeals) -> None:
        """A lease of one node is settled at another: they share their proofs."""
        self._seals = seals

    async def ask_places(self) -> list[str] | None:
        """Where the partitions are, by this node; None while it is away."""
        answer = await self.tried(PARTS, PartsRequest(**self.signed()), PartsResponse)
        return None if answer is None else answer.places

    def take_back(self, is_elsewhere: Callable[[Host], bool]) -> list[Delivery]:
        """What this node did not take, and of what it has not answered for that which another one has now.
        Whatever it did with them: telling them twice changes nothing."""
        taken, self._strays = self._strays, []
        kept: deque[tuple[float, int, Delivery]] = deque()
        for since, weight, delivery in self._waiting:
            if is_elsewhere(delivery.outcome.host):
                taken.append(delivery)
                self._bytes -= weight
            else:
                kept.append((since, weight, delivery))
        self._waiting = kept
        if self._is_away and self._batch is not None and not self._is_delivering:
            batch, self._batch = self._batch, None
            taken += [each for each in batch.deliveries if is_elsewhere(each.outcome.host)]
            stay = [each for each in batch.deliveries if not is_elsewhere(each.outcome.host)]
            if stay:
                self._batch = _Batch(batch.sequence, batch.since, stay)
        return taken

    def _give_back(self) -> None:
        """Hosts that came with an answer, and that the loop does not want any more: it drains, or must wait."""
        self._released += [(lease.host, lease.token) for lease in self._given or ()]
        self._given = None

    @property
    def undelivered(self) -> int:
        return len(self._waiting) + len(self._strays) + (len(self._batch.deliveries) if self._batch else 0)

    @property
    def uncommitted(self) -> int:
        return self.undelivered

    @property
    def is_away(self) -> bool:
        return self._is_away

    # -- deliveries

    async def _flush(self, committed: Callable[[], None] = nobody, *, hungry: bool = False) -> None:
        """With the last of what waits hosts are asked for, where somebody is `hungry`: those that it frees are
        given in the same answer, and go on here, where their connections and links are known. A loop that holds
        none is given its first before the rest is delivered."""
        until = self._clock.now() + _LONGEST_FLUSH
        while self._batch or self._waiting:
            now = self._clock.now()
            if self._waiting and now >= self._keep_at:
                await self.renew((), self._duration)
            if self._batch is None:
                self._batch = self._next_batch()
            if not await self._deliver(self._batch, hungry and (not self._waiting or not self.held())):
                return
            self._batch = None
            committed()
            if self._waiting and (self._is_idle_no_more() or self._clock.now() >= until):
                return
        if self._released:
            seals = self._seals.of(self._released)
            request = LeasesRequest(**self.signed(), leases=self._released, seals=seals)
            if await self.tried(RELEASE, request, ReleaseResponse) is not None:
                self._released = []

    def _is_idle_no_more(self) -> bool:
        """Hosts came, and the loop, which holds none, has yet to hear of them."""
        return bool(self._given) and not self.held()

    def _undelivered_leases(self, now: float) -> set[tuple[Host, Token]]:
        """Of what was fetched and is not delivered, now and then. The loop has done with most of them, and
        without a lease what came of a request may be worth nothing: its URL was given to somebody else."""
        if now < self._keep_at:
            return set()
        self._keep_at = now + self._duration * _KEEP_AT
        waiting = [delivery for _, _, delivery in self._waiting]
        under_way = self._batch.deliveries if self._batch is not None else []
        return {(delivery.outcome.host, delivery.outcome.token) for delivery in (*under_way, *waiting)}

    async def _deliver(self, batch: _Batch, hungry: bool) -> bool:
        """True when they need not be told again."""
        if self._is_loose:
            # The first answer of this server took long, and its clock may be as much behind what we take it for:
            # all hosts would rest so much longer, for as long as it is there.
            if await self.tried(RENEW, LeasesRequest(**self.signed(), leases=[]), RenewResponse) is None:
                return False
            self._is_loose = False  # what is dated by one bound must not be followed by what is dated by less
        asked_at = self._clock.now()
        request = SettleRequest(
            worker=self._name,
            incarnation=self._incarnation,
            sequence=batch.sequence,
            deliveries=[self._dated(delivery) for delivery in batch.deliveries],
            seals=self._seals.of((each.outcome.host, each.outcome.token) for each in batch.deliveries),
            server=self._server,
            saved=self.sent_links.saved,
            capacity=self._appetite if hungry else 0,
            in_flight=self.in_flight(),
            held=self.held(),
            busy=self._cpu_share.measure(),
        )
        reach(Point.BEFORE_DELIVERY)
        self._is_delivering = True
        try:
            taken = await self.tried(SETTLE, request, SettleResponse)
        except Refused as error:
            if self.notes is not None:
                self.notes.dropped(len(batch.deliveries), error.detail)
            return True
        finally:
            self._is_delivering = False
        if taken is None:
            return False
        if taken.server != request.server:
            return await self._deliver(batch, hungry)
        reach(Point.AFTER_DELIVERY)
        self._note_given(request, taken, asked_at)
        self._strays += [batch.deliveries[number] for number in taken.elsewhere]
        for why in taken.refused.values():
            if self.notes is not None:
                self.notes.dropped(1, why)
        sent = zip(request.deliveries, taken.settled, strict=True)
        self.sent_links.remember(
            delivery.outcome for delivery, settled in sent if settled is not Settled.STALE
        )
        return True

    def _note_given(self, request: SettleRequest, taken: SettleResponse, asked_at: float) -> None:
        if request.capacity or taken.leases:
            self._seals.keep(taken.leases, taken.seals)
            given = [self._translated(lease, taken.now, asked_at) for lease in taken.leases]
            self._given = [*(self._given or ()), *given]
            self._is_given_now = True

    def _next_batch(self) -> _Batch:
        batch = _Batch(self._next(), self._waiting[0][0], [])
        size = 0
        while self._waiting and len(batch.deliveries) < _BATCH:
            _, weight, delivery = self._waiting[0]
            # who brings so many links is committed alone: what came with it would only wait
            is_long = links_of(delivery) > LINKS_AT_ONCE
            if batch.deliveries and (is_long or size + weight > _BATCH_BYTES):
                break
            self._waiting.popleft()
            batch.deliveries.append(delivery)
            size += weight
            if is_long:
                break
        self._bytes -= size
        return batch

    def _drop_what_is_too_old(self) -> None:
        too_old = self._clock.now() - self._duration - _GRACE
        dropped = 0
        if self._batch is not None and self._batch.since < too_old:
            dropped, self._batch = len(self._batch.deliveries), None
        while self._waiting and self._waiting[0][0] < too_old:
            self._bytes -= self._waiting.popleft()[1]
            dropped += 1
        if dropped and self.notes is not None:
            self.notes.dropped(dropped, "the server was away for too long")

    # -- times

    def _translated(self, lease: HostLease, now: float, asked_at: float) -> HostLease:
        """The server wrote `now` between our asking and our hearing of it: it ends at the soonest that this can
        mean, and begins at the latest."""
        return replace(
            lease,
            deadline=asked_at + (lease.deadline - now),
            verify_tls=lease.verify_tls or (None if self.verifies_tls else lease.verify_tls),
            not_before=self._clock.now() + (lease.not_before - now),
            closes_at=None if lease.closes_at is None else asked_at + (lease.closes_at - now),
        )

    def _dated(self, delivery: Delivery) -> Delivery:
        """By the server's clock, and with as many of its links as it must have."""
        outcome, offset, result = delivery.outcome, self._offset, self.sent_links.leave_out_sent(delivery)
        sent_at, ended_at = outcome.sent_at + offset, outcome.ended_at + offset
        return replace(delivery, outcome=replace(outcome, sent_at=sent_at, ended_at=ended_at, result=result))

    def _heard(self, answer: WorkerResponse, asked_at: float, heard_at: float) -> None:
        """The offset to the server's clock is an upper bound, and is not touched without need: if it went up and
        down with every answer, so would the gaps between requests that the server sees."""
        latest, soonest = answer.now - asked_at, answer.now - heard_at
        is_new = answer.server != self._server
        if is_new:
            if self._server:
                # It may have lost its last second: what it was told then it must be told again.
                self.sent_links.forget()
                self._former = self._offset
            self._server = answer.server
        if is_new or self._is_loose:
            # A new one has a clock of its own, which mostly says the same; a lease may have begun under the last.
            is_bound = latest <= self._former <= latest + _LOOSE
            self._offset = self._former if is_bound else latest
            self._is_loose = latest - soonest > _LOOSE
        elif soonest > self._offset:
            self._offset = latest
        self._standing = answer.standing
        self.renders.waiting = answer.renders
        if answer.concurrency and answer.concurrency != self._concurrency:
            self._concurrency = answer.concurrency
            self.take_concurrency(answer.concurrency)

    # -- asking

    def keep_seals(self, leases: Sequence[tuple[Host, Token]], seals: Sequence[bytes]) -> None:
        self._seals.keep_named(leases, seals)

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence

    def signed(self) -> dict[str, Any]:
        return {"worker": self._name, "incarnation": self._incarnation, "sequence": self._next()}

    async def tried(self, path: str, request: WorkerRequest, answer: type[A]) -> A | None:
        """None while the server is away; it is asked again now and then."""
        if self._is_away and self._clock.now() < self._retry_at:
            return None
        try:
            heard = await self._asked_twice(path, request, answer)
        except Away as error:
            if self.notes is not None:
                self.notes.lost(str(error))
            self._is_away = True
            self._retry_at = self._clock.now() + self._wait
            self._wait = min(2 * self._wait, _LONGEST_WAIT)
            return None
        if self._is_away and self.notes is not None:
            self.notes.found(self.undelivered)
        self._is_away, self._wait = False, _FIRST_WAIT
        return heard

    async def _asked_twice(self, path: str, request: WorkerRequest, answer: type[A]) -> A:
        """A connection that was kept may have been closed meanwhile: that is no absence."""
        try:
            return await self._call(path, request, answer)
        except Away:
            return await self._call(path, request, answer)

    async def _call(self, path: str, request: WorkerRequest, answer: type[A]) -> A:
        asked_at = self._clock.now()
        # one that was answered has left: its memory is the next one's, and fresh memory took 7 us a page
        written = self._written.pop() if self._written else bytearray()
        _encode_into(request, written)
        try:
            raw = await self._link.post(path, written)
            heard = msgspec.msgpack.decode(raw, type=answer)
        except Refused as error:
            if error.status in (401, 403):
                raise UsageError(f"the server refuses the token: {error.detail}") from None
            if error.status in _UNACCEPTABLE:
                raise
            raise Away(str(error)) from None
        except msgspec.MsgspecError as error:
            raise Away(f"not an answer of a skitter server: {error}") from None
        if len(written) <= _LONGEST_KEPT:
            self._written.append(written)
        self._heard(heard, asked_at, self._clock.now())
        return heard


def _weight(delivery: Delivery) -> int:
    parcel = delivery.parcel
    if parcel is None:
        return 500
    return len(parcel.answer) + len(parcel.metadata) + len(parcel.rows) + 2_000
