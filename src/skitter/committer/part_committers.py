"""The committers of all partitions that this node has, as one.

Between the workers' calls and a `Committer` for each partition. What workers deliver is committed by partition;
hosts are leased from one partition after the other. A partition that is lost meanwhile raises `NotHere` for what
was asked of it, and harms no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skitter.committer.committer import Committer
from skitter.committer.door import NotHere
from skitter.committer.render_source import NoRenders, RenderSource
from skitter.committer.work_source import Delivery, Standing
from skitter.errors import SkitterError
from skitter.frontier.base import Settlement
from skitter.model import Host, HostLease, Outcome, Token
from skitter.urls.partitions import part_of


class PartCommitters:
    """`here` are the partitions that are open, by their numbers; it changes while they come and go."""

    def __init__(self, here: Mapping[int, Committer], parts: int) -> None:
        self._here = here
        self._parts = parts
        self._turn = 0
        self._renders = NoRenders()
        self._is_paused = False
        self._is_ending = False

    # -- for workers

    @property
    def standing(self) -> Standing:
        if self._is_ending:
            return Standing.CLOSING
        if self._is_paused:
            return Standing.PAUSED
        is_open = any(one.standing is Standing.OPEN for one in self._here.values())
        return Standing.OPEN if is_open or not self._here else Standing.PAUSED

    @property
    def is_closing(self) -> bool:
        return self._is_ending

    @property
    def is_paused_by_operator(self) -> bool:
        return self._is_paused

    @property
    def why_paused(self) -> str:
        if self._is_paused:
            return "by the operator"
        return next((why for one in self._here.values() if (why := one.why_paused)), "")

    @property
    def renders(self) -> RenderSource:
        return self._renders

    def divide(self, hosts: Sequence[Host]) -> list[list[int]]:
        places: dict[int, list[int]] = {}
        for place, host in enumerate(hosts):
            places.setdefault(part_of(host, self._parts), []).append(place)
        return [places[number] for number in sorted(places) if number in self._here]

    async def lease(
        self,
        worker: str,
        capacity: int,
        duration: float,
        *,
        most_tasks: int | None = None,
        staggered: bool = False,
    ) -> list[HostLease]:
        """Beginning with another partition each time. One that is broken is passed over."""
        leases: list[HostLease] = []
        if self.standing is not Standing.OPEN:
            return leases
        numbers = sorted(self._here)
        self._turn += 1
        for offset in range(len(numbers)):
            number = numbers[(self._turn + offset) % len(numbers)]
            room = capacity - len(leases)
            if room <= 0 or (one := self._here.get(number)) is None:
                continue
            try:
                leases += await one.lease(worker, room, duration, most_tasks=most_tasks, staggered=staggered)
            except SkitterError:
                continue
        return leases

    async def commit_batch(self, deliveries: Sequence[Delivery]) -> list[Settlement]:
        """Of one partition."""
        committer = self._of(deliveries[0].outcome.host)
        try:
            return await committer.commit_batch(deliveries)
        except SkitterError as error:
            raise NotHere(str(error)) from error

    async def renew(self, leases: Sequence[tuple[Host, Token]], duration: float) -> list[float | None]:
        deadlines: dict[int, float | None] = {}
        for places in self.divide([host for host, _ in leases]):
            try:
                told = await self._of(leases[places[0]][0]).renew([leases[n] for n in places], duration)
            except SkitterError:
                continue
            deadlines.update(zip(places, told, strict=True))
        return [deadlines.get(place) for place in range(len(leases))]

    async def release(self, leases: Sequence[tuple[Host, Token]]) -> None:
        for places in self.divide([host for host, _ in leases]):
            try:
                await self._of(leases[places[0]][0]).release([leases[n] for n in places])
            except SkitterError:
                continue  # they run out

    def refuse(self, worker: str, outcome: Outcome, why: str) -> None:
        for committer in [*self._here.values()][:1]:
            committer.refuse(worker, outcome, why)

    def refuse_lease(self, worker: str, host: Host) -> None:
        for committer in [*self._here.values()][:1]:
            committer.refuse_lease(worker, host)

    def _of(self, host: Host) -> Committer:
        number = part_of(host, self._parts)
        committer = self._here.get(number)
        if committer is None:
            raise NotHere(f"partition {number} is not on this node")
        return committer

    # -- for operators

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False

    def drain(self) -> None:
        self._is_ending = True
