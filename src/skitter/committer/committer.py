"""The committer: the one door through which pages are judged, archived and settled, whoever fetched them.

Above the frontier and the archive, below the workers. The frontier judges a delivery. The archive takes it only
if it counts. It is settled together with the archive's marks before anything else may be committed. So an outcome
that came too late leaves no record, however many workers there are. Never fetches or reads a page.

    open      leases are given, deliveries are taken
    paused    too much waits for upload, or the operator said so: no leases, deliveries are taken
    closing   the disk is nearly full, or the operator has had enough: no leases, deliveries are taken
    broken    a fault of ours: every call raises it, and what was not committed is gone
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from skitter.archive.store import Archive
from skitter.clock import Clock
from skitter.committer.links_ahead import LinksAhead
from skitter.committer.record_filing import RecordFiling
from skitter.committer.render_source import CommitterRenders
from skitter.committer.report import Report
from skitter.committer.work_source import Delivery, Standing, commits_of, nobody
from skitter.errors import DiskFull
from skitter.faultpoints import Point, reach
from skitter.frontier.base import Frontier, Horizon, Settled, Settlement
from skitter.model import Host, HostLease, Outcome, Token
from skitter.settings import Settings
from skitter.telemetry import Ended

_HOUSEKEEPING = 1.0
# Seconds between two beats after which we were stopped, or busy with something else; and how long those are heard
# then who asked for more time meanwhile.
_STALL, _HEARING = 0.5, 2.0


class Spool(Protocol):
    """What waits to be stored elsewhere."""

    def is_full(self) -> bool: ...


class Committer:
    def __init__(
        self,
        frontier: Frontier,
        archive: Archive,
        clock: Clock,
        settings: Settings,
        report: Report,
        spool: Spool | None = None,
    ) -> None:
        self._frontier = frontier
        self._archive = archive
        self._clock = clock
        self._settings = settings
        self._report = report
        self._spool = spool
        self._filing = RecordFiling(archive)
        self.renders = CommitterRenders(frontier, archive, lambda: self.standing)
        self._fault: BaseException | None = None
        self._uncommitted = 0
        self._next_chores = 0.0
        self._beaten_at = clock.now()
        self._heard_until: float | None = None
        self._syncing: asyncio.Task[None] | None = None
        self._synced_at = clock.now()
        self.is_short_of_room = False
        self.is_paused = False
        self._is_paused_by_operator = False
        self._is_ending = False

    # -- for workers

    @property
    def uncommitted(self) -> int:
        """Of the worker in this process."""
        return self._uncommitted

    @property
    def standing(self) -> Standing:
        if self.is_short_of_room or self._is_ending:
            return Standing.CLOSING
        is_paused = self.is_paused or self._is_paused_by_operator
        return Standing.PAUSED if is_paused else Standing.OPEN

    @property
    def is_paused_by_operator(self) -> bool:
        return self._is_paused_by_operator

    def divide(self, hosts: Sequence[Host]) -> list[list[int]]:
        """All are here, and are committed together."""
        return [list(range(len(hosts)))] if hosts else []

    @property
    def is_closing(self) -> bool:
        return self.standing is Standing.CLOSING

    @property
    def why_paused(self) -> str:
        """In words; empty when it is not."""
        if self._is_paused_by_operator:
            return "by the operator"
        return "too much waits for upload (archive.spool)" if self.is_paused else ""

    async def lease(
        self,
        worker: str,
        capacity: int,
        duration: float,
        *,
        most_tasks: int | None = None,
        staggered: bool = False,
    ) -> list[HostLease]:
        """For every worker, also those of the API: none is given a host unless the committer is open."""
        self._check()
        if self.standing is not Standing.OPEN:
            return []
        return await self._frontier.lease(
            worker, capacity, duration, most_tasks=most_tasks, staggered=staggered
        )

    async def settle(self, deliveries: Sequence[Delivery], committed: Callable[[], None] = nobody) -> None:
        self._check()
        self._uncommitted += len(deliveries)
        for part in commits_of(deliveries):
            await self.commit_batch(part)
            self._uncommitted -= len(part)
            committed()

    async def commit_batch(self, deliveries: Sequence[Delivery]) -> list[Settlement]:
        self._check()
        ahead = LinksAhead(self._frontier)
        try:
            deliveries = await ahead.send(deliveries)
            async with self._frontier.settling([delivery.outcome for delivery in deliveries]) as settling:
                outcomes = await self._filed(deliveries, settling.verdicts)
                marks = self._archive.marks()
                reach(Point.BEFORE_SETTLE)
                settlements = await settling.commit(outcomes, marks)
                reach(Point.AFTER_SETTLE)
                self._archive.committed()
                reach(Point.AFTER_ACKNOWLEDGE)
                self._filing.committed()
        except BaseException as error:
            # Records may be written that nothing commits: the next opening cuts them off.
            self._fault = self._fault or error
            raise
        settlements = ahead.with_counts(settlements)
        self._report.settled(deliveries, outcomes, settlements)
        return settlements

    def refuse(self, worker: str, outcome: Outcome, why: str) -> None:
        """A delivery that is impossible: counted and told, and nothing else is done with it."""
        self._report.refused(worker, outcome, why)

    def refuse_lease(self, worker: str, host: Host) -> None:
        """A worker asked something of a lease that was never its own: counted and told, and nothing is done."""
        self._report.lease_refused(worker, host)

    async def _filed(self, deliveries: Sequence[Delivery], verdicts: Sequence[Settled]) -> list[Outcome]:
        """Only what counts gets a record."""
        digests = [delivery.parcel.digest if delivery.parcel else b"" for delivery in deliveries]
        copies = iter(await self._frontier.first_copies([digest for digest in digests if digest]))
        known = [next(copies) if digest else None for digest in digests]
        return [
            delivery.outcome if settled is Settled.STALE else self._filing.file(delivery, copy)
            for delivery, settled, copy in zip(deliveries, verdicts, known, strict=True)
        ]

    async def renew(self, leases: Sequence[tuple[Host, Token]], duration: float) -> list[float | None]:
        self._check()
        return await self._frontier.renew(leases, duration)

    async def release(self, leases: Sequence[tuple[Host, Token]]) -> None:
        self._check()
        await self._frontier.release(leases)

    async def horizon(self) -> Horizon:
        return await self._frontier.horizon()

    # -- its own duties

    async def beat(self, as_of: float | None = None) -> None:
        self._check()
        now = self._clock.now()
        if now - self._beaten_at > _STALL and self._heard_until is None:
            self._heard_until = now + _HEARING
        self._beaten_at = now
        if now >= self._next_chores:
            # what was moved in a bounded step may be one of many
            moved = await self._chores(now, now if as_of is None else as_of)
            self._next_chores = now if moved else now + _HOUSEKEEPING
        self._sync_in_background(now)

    async def _chores(self, now: float, as_of: float) -> int:
        moved = await self._frontier.promote(now)
        if self._heard_until is None or now >= self._heard_until:
            self._heard_until = None
            if expired := await self._frontier.reap(as_of):
                self._report.expired(expired)
        self._look_for_room()
        # Unlike a full disk it needs no closing: what is uploaded meanwhile makes room.
        self.is_paused = self._spool is not None and self._spool.is_full()
        return moved

    def _look_for_room(self) -> None:
        """Stop while there is still room for what is in flight: a store that met a full disk has to be closed."""
        if not self._is_ending and self._archive.free < self._settings.archive.min_free:
            self.is_short_of_room = True

    def complain_of_room(self) -> None:
        if self.is_short_of_room:
            raise DiskFull(
                f"only {self._archive.free:,} bytes are free on the disk of {self._archive.folder}, and "
                f"archive.min_free is {self._settings.archive.min_free:,}: make room"
            )

    def pause(self) -> None:
        """By the operator. It lasts as long as the process: whoever starts a crawl means it to run."""
        self._is_paused_by_operator = True

    def resume(self) -> None:
        self._is_paused_by_operator = False

    def change_settings(self, settings: Settings) -> None:
        """Takes over `archive.min_free` and `frontier.sync_interval`."""
        self._settings = settings

    def drain(self) -> None:
        """The operator has had enough: no more leases, whatever room there is."""
        self._is_ending = True
        self.is_short_of_room = False

    def _sync_in_background(self, now: float) -> None:
        """fsync takes tens of milliseconds; it must not hold up the hosts."""
        if now - self._synced_at < self._settings.frontier.sync_interval:
            return
        if self._syncing is None or self._syncing.done():
            self._synced_at = now
            self._syncing = asyncio.get_running_loop().create_task(self._sync())
            self._syncing.add_done_callback(self.note_fault)

    async def _sync(self) -> None:
        # The archive first: a mark must not outlive the bytes it promises.
        await asyncio.to_thread(self._archive.sync_later())
        await self._frontier.sync()
        self._archive.synced()

    def note_fault(self, task: asyncio.Task[None]) -> None:
        """Our own fault (disk full, a disk that cannot be synced, a bug): every later call raises it."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fault = self._fault or error

    def _check(self) -> None:
        if self._fault is not None:
            raise self._fault

    async def rest(self) -> None:
        """Until nothing is under way in the background."""
        if self._syncing is not None:
            await asyncio.gather(self._syncing, return_exceptions=True)


def ended_by(horizon: Horizon, now: float, linger: float) -> Ended | None:
    """How a crawl of which nothing is leased has come to its end; None while something is worth waiting for."""
    if horizon.never_ends:
        return None
    if horizon.limit_reached:
        return Ended.LIMIT
    if horizon.next_at is None:
        return Ended.COMPLETE
    return Ended.WAITING if horizon.next_at - now > linger else None
