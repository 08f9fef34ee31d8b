"""The worker's loop: lease hosts, keep to their pace, bound what is in flight, settle in batches, drain.

A lease is served by one coroutine (or as many as the operator allows in parallel for that host), which starts a
request only when the host's delay has passed since the last one was sent and the last one has ended. Outcomes are
settled together with the archive's marks on every pulse; a crash between pulses loses nothing but the effort.

    running   leases are asked for, served and settled
    draining  no new leases, no new requests; what is in flight ends, the rest is released
    stopped   nothing in flight; outcomes settled, leases released
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from functools import partial

from skitter.archive.store import Archive
from skitter.clock import Clock
from skitter.errors import DiskFull
from skitter.faultpoints import Point, reach
from skitter.frontier.base import Frontier
from skitter.model import Failed, Host, HostLease, Outcome, Task, Token
from skitter.schedule.retry import RULES
from skitter.settings import Settings
from skitter.telemetry import Ended
from skitter.worker.report import Report
from skitter.worker.slots import Slots
from skitter.worker.step import Step

# Outcomes wait about this long for company; the price of a kill is a refetch of what waited.
_PULSE = 0.05
_SHORTEST_PULSE = 0.005
_HOUSEKEEPING = 1.0
# Hosts held at once: at one page per host and second this is also the most pages per second.
_MOST_LEASES = 4096
_RENEW_AT = 0.5


class Pace:
    """When the next request to a host may start: `delay` after the last one was sent."""

    def __init__(self, lease: HostLease, clock: Clock) -> None:
        self._clock = clock
        self._delay = lease.delay
        self._next = lease.not_before

    def wait(self) -> float:
        return self._next - self._clock.now()

    def begin(self) -> None:
        """A request starts now; when it was sent is known only when it has ended."""
        self._next = self._clock.now() + self._delay

    def sent(self, at: float) -> None:
        self._next = max(self._next, at + self._delay)


class Loop:
    def __init__(
        self,
        frontier: Frontier,
        archive: Archive,
        step: Step,
        clock: Clock,
        settings: Settings,
        report: Report,
    ) -> None:
        self._frontier = frontier
        self._archive = archive
        self._step = step
        self._clock = clock
        self._settings = settings
        self._report = report
        self._name = f"{socket.gethostname()}-{os.getpid()}"
        self._slots = Slots(settings.fetch.concurrency, settings.fetch.connections, step.quiet)
        self._leases: dict[Token, tuple[HostLease, float]] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self._by_host: dict[Host, asyncio.Task[None]] = {}
        self._sleepers: set[asyncio.Future[None]] = set()
        self._outcomes: list[Outcome] = []
        self._given_up: list[tuple[Host, Token]] = []
        self._wake = asyncio.Event()
        self._fault: BaseException | None = None
        self._syncing: asyncio.Task[None] | None = None
        self._synced_at = clock.now()
        self.draining = False
        self.is_short_of_room = False

    async def run(self) -> Ended:
        """Until nothing is left to do, the limit is reached, or `drain` was called."""
        next_chores = 0.0
        last = self._clock.now()
        try:
            while True:
                # Settle first: an outcome must find its lease alive, however long this process was paused.
                await self._settle()
                now = self._clock.now()
                self._report.pulse(now - last)
                last = now
                if now >= next_chores:
                    # what was moved in a bounded step may be one of many
                    next_chores = now if await self._chores(now) else now + _HOUSEKEEPING
                self._sync_in_background(now)
                self._slots.look()
                ended = await self._lease_more()
                if ended is not None:
                    self._complain_of_room()
                    return ended
                await self._pause()
        finally:
            await self._stop()

    def drain(self) -> None:
        self.is_short_of_room = False
        self._wind_down()

    def _wind_down(self) -> None:
        self.draining = True
        for woken in tuple(self._sleepers):
            _set(woken)
        self._wake.set()

    # -- the pulse

    async def _pause(self) -> None:
        """Until a lease ends or a pulse has passed; while others are served, leases that end wait for company."""
        try:
            # not wait_for: on 3.11 it can swallow a cancellation that comes with the wake-up
            async with asyncio.timeout(_PULSE):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()
        if self._serving:
            await asyncio.sleep(_SHORTEST_PULSE)

    async def _chores(self, now: float) -> int:
        # Renew before reaping: a lease that ran out while we were paused is still ours if nobody took it, and
        # its request may still be in flight.
        await self._renew(now)
        moved = await self._frontier.promote(now)
        if expired := await self._frontier.reap(now):
            self._report.expired(expired)
        self._report.holding(len(self._leases))
        self._look_for_room()
        return moved

    def _look_for_room(self) -> None:
        """Stop while there is still room for what is in flight: a store that met a full disk has to be closed."""
        if not self.draining and self._archive.free < self._settings.archive.min_free:
            self.is_short_of_room = True
            self._wind_down()

    def _complain_of_room(self) -> None:
        if self.is_short_of_room:
            raise DiskFull(
                f"only {self._archive.free:,} bytes are free on the disk of {self._archive.folder}, and "
                f"archive.min_free is {self._settings.archive.min_free:,}: make room"
            )

    def _sync_in_background(self, now: float) -> None:
        """fsync takes tens of milliseconds; it must not hold up the hosts."""
        if now - self._synced_at < self._settings.frontier.sync_interval:
            return
        if self._syncing is None or self._syncing.done():
            self._synced_at = now
            self._syncing = asyncio.get_running_loop().create_task(self._sync())
            self._syncing.add_done_callback(self._note_fault)

    async def _sync(self) -> None:
        # The archive first: a mark must not outlive the bytes it promises.
        await asyncio.to_thread(self._archive.sync_later())
        await self._frontier.sync()
        self._archive.synced()

    async def _settle(self) -> None:
        if self._fault is not None:
            raise self._fault
        if self._outcomes:
            outcomes, self._outcomes = self._outcomes, []
            marks = self._archive.marks()
            reach(Point.BEFORE_SETTLE)
            settlements = await self._frontier.settle(outcomes, marks)
            reach(Point.AFTER_SETTLE)
            self._archive.committed()
            reach(Point.AFTER_ACKNOWLEDGE)
            self._step.committed()
            self._report.settled(outcomes, settlements)
        if self._given_up:
            given_up, self._given_up = self._given_up, []
            await self._frontier.release(given_up)

    async def _lease_more(self) -> Ended | None:
        if self.draining:
            return None if self._serving else Ended.INTERRUPTED
        capacity = _MOST_LEASES - len(self._leases)
        if capacity > 0:
            duration = self._settings.frontier.lease_duration
            for lease in await self._frontier.lease(self._name, capacity, duration):
                self._leases[lease.token] = (lease, lease.deadline)
                self._spawn(lease)
        busy = self._serving or self._outcomes or self._given_up
        return None if busy else await self._end()

    async def _end(self) -> Ended | None:
        """Nothing is held: is anything still to come that is worth waiting for?"""
        horizon = await self._frontier.horizon()
        if horizon.limit_reached:
            return Ended.LIMIT
        if horizon.next_at is None:
            return Ended.COMPLETE
        wait = horizon.next_at - self._clock.now()
        if wait > self._settings.crawl.linger:
            return Ended.WAITING
        self._report.waiting(horizon.next_at)
        return None

    async def _renew(self, now: float) -> None:
        duration = self._settings.frontier.lease_duration
        soon = [lease for lease, deadline in self._leases.values() if deadline - now < duration * _RENEW_AT]
        if not soon:
            return
        deadlines = await self._frontier.renew([(lease.host, lease.token) for lease in soon], duration)
        for lease, deadline in zip(soon, deadlines, strict=True):
            if deadline is None:
                self._lose(lease)
            elif lease.token in self._leases:
                self._leases[lease.token] = (lease, deadline)

    def _lose(self, lease: HostLease) -> None:
        """The host is not ours any more: what is in flight to it is aborted, and nothing of it is archived."""
        self._leases.pop(lease.token, None)
        task = self._by_host.get(lease.host)
        if task is not None and task.get_name() == str(lease.token):
            task.cancel()

    # -- one lease

    def _spawn(self, lease: HostLease) -> None:
        self._step.prepare(lease)
        before = self._by_host.get(lease.host)
        serving = self._serve(lease, before if before is not None and not before.done() else None)
        task = asyncio.get_running_loop().create_task(serving, name=str(lease.token))
        self._serving.add(task)
        self._by_host[lease.host] = task
        task.add_done_callback(partial(self._served, lease.host))

    def _served(self, host: Host, task: asyncio.Task[None]) -> None:
        self._serving.discard(task)
        if self._by_host.get(host) is task:
            del self._by_host[host]
        self._wake.set()
        self._note_fault(task)

    def _note_fault(self, task: asyncio.Task[None]) -> None:
        """Our own fault (disk full, a disk that cannot be synced, a bug): the loop stops at the next pulse."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fault = self._fault or error

    async def _serve(self, lease: HostLease, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            # a lost lease of this host whose requests are being aborted: never two in flight
            await asyncio.wait((before,))
        pace = Pace(lease, self._clock)
        todo = iter(lease.tasks)
        try:
            if lease.parallel == 1:
                unfinished = await self._work(lease, pace, todo)
            else:
                unfinished = await self._work_in_parallel(lease, pace, todo)
        except BaseException:
            self._give_up(lease)
            raise
        if unfinished:
            self._give_up(lease)
        else:
            self._leases.pop(lease.token, None)

    def _give_up(self, lease: HostLease) -> None:
        self._leases.pop(lease.token, None)
        self._given_up.append((lease.host, lease.token))

    async def _work_in_parallel(self, lease: HostLease, pace: Pace, todo: Iterator[Task]) -> bool:
        count = min(lease.parallel, len(lease.tasks))
        runners = [asyncio.create_task(self._work(lease, pace, todo)) for _ in range(count)]
        try:
            return any(await asyncio.gather(*runners))
        except BaseException:
            # the others must not go on behind the back of a lease that has ended
            for runner in runners:
                runner.cancel()
            await asyncio.gather(*runners, return_exceptions=True)
            raise

    async def _work(self, lease: HostLease, pace: Pace, todo: Iterator[Task]) -> bool:
        """Serve tasks one after the other; True when some were left undone."""
        for task in todo:
            await self._claim_slot(pace)
            try:
                if not self._may_start(lease) or await self._one(lease, pace, task):
                    return True
            finally:
                self._slots.release()
        return False

    async def _claim_slot(self, pace: Pace) -> None:
        """Wait for the host's pace outside the slot, so that its delay never keeps others from being asked."""
        while True:
            while (wait := pace.wait()) > 0 and not self.draining:
                await self._sleep(wait)
            await self._slots.acquire()
            if pace.wait() <= 0 or self.draining:
                pace.begin()
                return
            self._slots.release()

    async def _sleep(self, seconds: float) -> None:
        """Like asyncio.sleep, but `drain` ends it."""
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        timer = loop.call_later(seconds, _set, woken)
        self._sleepers.add(woken)
        try:
            await woken
        finally:
            timer.cancel()
            self._sleepers.discard(woken)

    def _may_start(self, lease: HostLease) -> bool:
        held = self._leases.get(lease.token)
        return not self.draining and held is not None and self._clock.now() < held[1]

    async def _one(self, lease: HostLease, pace: Pace, task: Task) -> bool:
        """One request; True when the host should be left alone after it."""
        outcome, exchange = await self._step.run(lease, task)
        pace.sent(outcome.sent_at)
        self._outcomes.append(outcome)
        self._report.fetched(lease, outcome, exchange)
        result = outcome.result
        return isinstance(result, Failed) and RULES[result.kind].blames_host

    # -- the end

    async def _stop(self) -> None:
        self.draining = True
        for task in self._serving:
            task.cancel()
        if self._serving:
            await asyncio.gather(*self._serving, return_exceptions=True)
        if self._syncing is not None:
            await asyncio.gather(self._syncing, return_exceptions=True)
        if self._fault is None:
            await self._settle()


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
