"""The calls of workers in other processes: join, lease, settle, renew, release.

Between the wire and the committer. Both sides are skitter of one version, so none of it is part of the documented
API. Never settles a batch twice: a repeated request gets the first response.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec

from skitter import __version__
from skitter.clock import Clock
from skitter.committer.door import NotHere
from skitter.committer.lease_seals import NOT_YOURS
from skitter.committer.work_source import LINKS_AT_ONCE, commits_of
from skitter.committer.worker_messages import (
    JOIN,
    LEASE,
    PARTS,
    RELEASE,
    RENDER_ANSWERS,
    RENDER_LEASE,
    RENDER_RECORD,
    RENDER_RELEASE,
    RENEW,
    SETTLE,
    AnswersRequest,
    AnswersResponse,
    JoinRequest,
    JoinResponse,
    LeaseRequest,
    LeaseResponse,
    LeasesRequest,
    PartsRequest,
    PartsResponse,
    RecordRequest,
    RecordResponse,
    ReleaseResponse,
    RenderLeaseRequest,
    RenderLeaseResponse,
    RenderReleaseRequest,
    RenewResponse,
    SettleRequest,
    SettleResponse,
    WorkerRequest,
    WorkerResponse,
)
from skitter.committer.worker_registry import WorkerRegistry
from skitter.frontier.base import Settled
from skitter.model import Host, HostLease, RenderTask, Token
from skitter.settings import Settings
from skitter.urls.canonical import host_of

# Pages that are committed together, in some 7 ms; then others have their turn, leases first. With 16 what a
# commit takes by itself began to show: the look for near pages alone was 5 % of all, with 64 it is 1.
_AT_ONCE = 32


class Unacceptable(Exception):
    """An ask that no server of this version can take, however often it is sent."""


Act = Callable[[Any], Awaitable[WorkerResponse]]


class _Taken(NamedTuple):
    """What became of deliveries: each one's verdict, the hosts given with them, why some were refused, and which
    are of partitions that are not here."""

    settled: list[Settled]
    leases: list[HostLease]
    refused: dict[int, str]
    elsewhere: list[int]


class Call(NamedTuple):
    """One kind of request: its path, how its body is decoded, and the act that makes the response."""

    path: str
    decode: Callable[[bytes | memoryview], Any]
    act: Act


_DECODERS = {
    JOIN: msgspec.msgpack.Decoder(JoinRequest).decode,
    LEASE: msgspec.msgpack.Decoder(LeaseRequest).decode,
    SETTLE: msgspec.msgpack.Decoder(SettleRequest).decode,
    RENEW: msgspec.msgpack.Decoder(LeasesRequest).decode,
    RELEASE: msgspec.msgpack.Decoder(LeasesRequest).decode,
    RENDER_LEASE: msgspec.msgpack.Decoder(RenderLeaseRequest).decode,
    RENDER_RELEASE: msgspec.msgpack.Decoder(RenderReleaseRequest).decode,
    RENDER_ANSWERS: msgspec.msgpack.Decoder(AnswersRequest).decode,
    RENDER_RECORD: msgspec.msgpack.Decoder(RecordRequest).decode,
    PARTS: msgspec.msgpack.Decoder(PartsRequest).decode,
}


class WorkerRpc:
    def __init__(
        self,
        registry: WorkerRegistry,
        settings: Settings,
        clock: Clock,
        at_once: int = _AT_ONCE,
    ) -> None:
        """So many pages are committed `at_once`; where nobody else asks for leases it may be more."""
        self._registry = registry
        self._limits = at_once, LINKS_AT_ONCE
        self._settings = settings
        self._clock = clock

    def change_settings(self, settings: Settings) -> None:
        """Workers take over `fetch.concurrency` with their next response, and nothing else."""
        self._settings = settings

    def calls(self) -> dict[str, Call]:
        """All of them, by their paths."""
        acts: dict[str, Act] = {
            JOIN: self.join,
            LEASE: self.lease,
            SETTLE: self.settle,
            RENEW: self.renew,
            RELEASE: self.release,
            RENDER_LEASE: self.lease_renders,
            RENDER_RELEASE: self.release_renders,
            RENDER_ANSWERS: self.answers,
            RENDER_RECORD: self.record,
            PARTS: self.partitions,
        }
        return {path: Call(path, _DECODERS[path], act) for path, act in acts.items()}

    async def join(self, request: JoinRequest) -> JoinResponse:
        if request.version != __version__:
            raise Unacceptable(
                f"the worker is skitter {request.version}, the server {__version__}: install the same version"
            )
        return JoinResponse(**self._signed(), settings=self._settings, parts=len(self._registry.places()))

    async def lease(self, request: LeaseRequest) -> LeaseResponse:
        self._registry.note_request(request)
        leases = await self._registry.once(LEASE, request, partial(self._leased, request))
        return LeaseResponse(**self._signed(), leases=leases, seals=self._seals_of(request, leases))

    async def lease_directly(self, request: LeaseRequest) -> list[HostLease]:
        """For a worker in this very process, whose asks cannot get lost."""
        self._registry.note_request(request)
        return await self._leased(request)

    async def settle(self, request: SettleRequest) -> SettleResponse:
        self._registry.note_request(request, saved=request.saved)
        if request.server and request.server != self._registry.server:
            return SettleResponse(**self._signed(), settled=[])
        taken = await self._registry.once(SETTLE, request, partial(self._settled, request))
        return SettleResponse(
            **self._signed(),
            settled=taken.settled,
            leases=taken.leases,
            seals=self._seals_of(request, taken.leases),
            refused=taken.refused,
            elsewhere=taken.elsewhere,
        )

    async def renew(self, request: LeasesRequest) -> RenewResponse:
        own, committer = self._own(request), self._registry.committer
        here = self._here(own)
        renewed = await committer.renew(here, self._settings.frontier.lease_duration)
        deadlines = dict(zip(here, renewed, strict=True))
        away = {*own} - {*here}
        return RenewResponse(
            **self._signed(),
            deadlines=[deadlines.get(lease) for lease in request.leases],
            elsewhere=[number for number, lease in enumerate(request.leases) if lease in away],
        )

    def _here(self, leases: list[tuple[Host, Token]]) -> list[tuple[Host, Token]]:
        divided = self._registry.committer.divide([host for host, _ in leases])
        return [leases[place] for places in divided for place in places]

    async def release(self, request: LeasesRequest) -> ReleaseResponse:
        await self._registry.committer.release(self._here(self._own(request)))
        return ReleaseResponse(**self._signed())

    # -- renderings

    async def lease_renders(self, request: RenderLeaseRequest) -> RenderLeaseResponse:
        tasks = await self._registry.once(RENDER_LEASE, request, partial(self._leased_renders, request))
        seals = self._registry.seals
        names = [(host_of(task.url), task.token) for task in tasks]
        sealed = [] if seals is None else seals.of_names(request.worker, names, self._clock.now())
        return RenderLeaseResponse(**self._signed(), tasks=tasks, seals=sealed)

    async def _leased_renders(self, request: RenderLeaseRequest) -> list[RenderTask]:
        registry = self._registry
        tasks = await registry.committer.renders.lease(registry.name_of(request), request.capacity)
        registry.note_renders(request, tasks)
        return tasks

    async def release_renders(self, request: RenderReleaseRequest) -> ReleaseResponse:
        await self._registry.committer.renders.release(request.leases)
        return ReleaseResponse(**self._signed())

    async def answers(self, request: AnswersRequest) -> AnswersResponse:
        found = await self._registry.committer.renders.answers(request.urls)
        return AnswersResponse(**self._signed(), answers=found)

    async def record(self, request: RecordRequest) -> RecordResponse:
        renders = self._registry.committer.renders
        record = await renders.record(request.at) if request.at is not None else None
        place = await renders.place_of_copy(request.digest) if request.digest else None
        return RecordResponse(**self._signed(), record=record, place=place)

    async def partitions(self, request: PartsRequest) -> PartsResponse:
        return PartsResponse(**self._signed(), places=self._registry.places())

    async def _settled(self, request: SettleRequest) -> _Taken:
        """Hosts are leased again with the commit that frees them: the next turn may be another worker's, who
        knows neither their connections nor their links. What is impossible is refused, and the rest is taken."""
        refused, deliveries = self._refusals(request), request.deliveries
        possible = [number for number in range(len(deliveries)) if number not in refused]
        committer = self._registry.committer
        verdicts = [Settled.STALE] * len(deliveries)
        found: list[HostLease] = []
        taken: set[int] = {*refused}
        for places in committer.divide([deliveries[number].outcome.host for number in possible]):
            numbers = iter([possible[place] for place in places])
            try:
                for part in commits_of([deliveries[possible[place]] for place in places], *self._limits):
                    for settlement in await committer.commit_batch(part):
                        number = next(numbers)
                        verdicts[number] = settlement.settled
                        taken.add(number)
                    found += await self._leased(request, len(found))
            except NotHere:
                continue
        return _Taken(verdicts, found, refused, [n for n in range(len(deliveries)) if n not in taken])

    def _refusals(self, request: SettleRequest) -> dict[int, str]:
        """By the place of the delivery, in rising order."""
        check, now = self._registry.check, self._clock.now()
        outcomes = [each.outcome for each in request.deliveries]
        strange = self._not_own(request, [(each.host, each.token) for each in outcomes])
        faults = [
            (
                number,
                NOT_YOURS if number in strange else check.fault(each, now, self._given_at(request, number)),
            )
            for number, each in enumerate(request.deliveries)
        ]
        refused = {number: fault for number, fault in faults if fault}
        for number, fault in refused.items():
            outcome = request.deliveries[number].outcome
            self._registry.committer.refuse(self._registry.name_of(request), outcome, fault)
        return refused

    def _own(self, request: LeasesRequest) -> list[tuple[Host, Token]]:
        strange = self._not_own(request, request.leases)
        return [lease for number, lease in enumerate(request.leases) if number not in strange]

    def _not_own(self, request: SettleRequest | LeasesRequest, leases: list[tuple[Host, Token]]) -> set[int]:
        """Places of the leases that this worker was never given. Counted and told."""
        seals, registry = self._registry.seals, self._registry
        if seals is None:
            return set()
        given = [*request.seals, *[b""] * (len(leases) - len(request.seals))]
        strange = {
            number
            for number, (host, token) in enumerate(leases)
            if not seals.fits(given[number], request.worker, host, token)
        }
        for number in sorted(strange):
            registry.committer.refuse_lease(registry.name_of(request), leases[number][0])
        return strange

    def _given_at(self, request: SettleRequest, number: int) -> float:
        """When the lease of this delivery was given, if its seal says so."""
        seals = self._registry.seals
        return 0.0 if seals is None else seals.given_at(request.seals[number])

    def _seals_of(self, request: WorkerRequest, leases: list[HostLease]) -> list[bytes]:
        seals = self._registry.seals
        return [] if seals is None else seals.of_leases(request.worker, leases, self._clock.now())

    async def _leased(self, request: LeaseRequest | SettleRequest, before: int = 0) -> list[HostLease]:
        """So many were given `before` in the same answer."""
        registry, duration = self._registry, self._settings.frontier.lease_duration
        if not request.capacity:
            return []
        share = registry.share(request)
        room = max(0, share - before)
        # Eight hosts that end together would leave a worker without any while all their pages are committed.
        found = (
            await registry.committer.lease(registry.name_of(request), room, duration, staggered=True)
            if room
            else []
        )
        registry.note_leases(request, share, found, before)
        return found

    def _signed(self) -> dict[str, Any]:
        registry = self._registry
        return {
            "server": registry.server,
            "now": self._clock.now(),
            "standing": registry.committer.standing,
            "concurrency": self._settings.fetch.concurrency,
            "renders": registry.committer.renders.waiting,
        }
