"""The worker's loop: lease hosts, keep to their pace, bound what is in flight, settle in batches, drain.

A lease is served by one coroutine (or as many as the operator allows in parallel for that host), which starts a
request only when the host's delay has passed since the last one was sent and the last one has ended. What came of
it is handed to the work source on every pulse; a crash between pulses loses nothing but the effort. Never decides
what is asked next, nor what is kept.

    running   leases are asked for, served and settled
    draining  no new leases, no new requests; what is in flight ends, the rest is released
    stopped   nothing in flight; deliveries settled, leases released
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from skitter.clock import Clock
from skitter.committer.committer import ended_by
from skitter.committer.work_source import COMMITTED_AT_ONCE, Delivery, Standing, WorkSource
from skitter.fetch.base import TooLate
from skitter.fetch.timer_wheel import TimerWheel
from skitter.frontier.base import Horizon
from skitter.model import Failed, Host, HostLease, Task, Token
from skitter.schedule.retry import RULES
from skitter.settings import Settings
from skitter.telemetry import Ended
from skitter.worker.request_permits import RequestPermits
from skitter.worker.step import Step

if TYPE_CHECKING:
    from skitter.worker.renders.rendering import Rendering

# Outcomes wait about this long for company; the price of a kill is a refetch of what waited.
_PULSE = 0.05
# While others are served, leases that end wait so long for company; the more are held, the longer: each call of
# the source has its price, and the hosts rest meanwhile anyway.
_SHORTEST_WAIT, _LONGEST_WAIT, _WAIT_PER_LEASE = 0.005, 0.025, 2e-5
# Seconds between two looks for leases that need more time, and at most so much of a lease: one of 2 s that is
# looked at once a second may be let go before its second look.
_RENEWAL, _LOOK_AT = 1.0, 0.1
# Hosts whose turn comes in the same tick are woken together, at its end: never early, and of a delay of 1 s
# half a hundredth is lost.
_TICK = 0.005
# Hosts held at once: at one page per host and second this is also the most pages per second.
_MOST_LEASES = 4096
# Asked for at once: 0.1 s of the source's time, 0.5 on an overloaded machine. There 1,900 hosts in one go took
# longer than their leases of 2 s, so all were given back unserved, and leased again.
_MOST_AT_ONCE = 256
_RENEW_AT = 0.5
# Of a lease's duration, but no more than so many seconds: what is left of it when nobody gave more time, and the
# looks at it.
_LET_GO_AT, _LET_GO_BEFORE = 0.1, 1.0
_WATCH = 0.1
# bound once: looked up for every page
_OPEN, _PAUSED, _CLOSING = Standing.OPEN, Standing.PAUSED, Standing.CLOSING


class Pace:
    """When the next request to a host may start: `delay` after the last one was sent."""

    def __init__(self, lease: HostLease, clock: Clock) -> None:
        self._clock = clock
        self._delay = lease.delay
        self._next = lease.not_before

    def wait(self) -> float:
        return self._next - self._clock.now()

    def is_due(self, now: float) -> bool:
        return self._next <= now

    def begin(self, now: float) -> None:
        """A request starts; when it was sent is known only when it has ended."""
        self._next = now + self._delay

    def sent(self, at: float) -> None:
        self._next = max(self._next, at + self._delay)


class Loop:
    """`waiting_until` is set while nothing can be asked, to when the next host or retry is ready."""

    def __init__(
        self,
        source: WorkSource,
        step: Step,
        clock: Clock,
        settings: Settings,
        *,
        name: str = "",
        horizon: Callable[[], Awaitable[Horizon]] | None = None,
    ) -> None:
        """The loop is over when `horizon` says that nothing is left to do. A worker among others has none, and
        is over when it is drained: the server knows when a crawl is, not its workers."""
        self._source = source
        self._step = step
        self._clock = clock
        self._settings = settings
        self._name = name or f"{socket.gethostname()}-{os.getpid()}"
        self._horizon = horizon
        self._permits = RequestPermits(
            settings.fetch.concurrency, settings.fetch.connections, step.quiet, self._owed
        )
        self._leases: dict[Token, tuple[HostLease, float]] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self._by_host: dict[Host, asyncio.Task[None]] = {}
        self._sleepers: set[asyncio.Future[None]] = set()
        self._ticks = TimerWheel(_TICK)
        self._deliveries: list[Delivery] = []
        self._given_up: list[tuple[Host, Token]] = []
        self._wake = asyncio.Event()
        self._fault: BaseException | None = None
        self._rendering: Rendering | None = None
        self.draining = False
        self.waiting_until: float | None = None
        self.longest_pulse = 0.0

    async def run(self) -> Ended:
        """Until nothing is left to do, the limit is reached, or `drain` was called."""
        next_renewal = 0.0
        last = self._clock.now()
        among_others = self._horizon is None
        beside = self._beside() if among_others else ()
        try:
            while True:
                # Settle first: an outcome must find its lease alive, however long this process was paused.
                await self._settle()
                now = self._clock.now()
                self.longest_pulse = max(self.longest_pulse, now - last)
                last = now
                if now >= next_renewal and not among_others:
                    next_renewal = now + self._between_renewals
                    await self._renew(now)
                # After the renewal: a lease that ran out while we were paused is still ours if nobody took it,
                # and its request may still be in flight.
                await self._source.beat(now)
                self._permits.admit_waiting()
                if self._rendering is not None or self._source.renders.waiting:
                    await self._render_more()
                ended = await self._lease_more()
                if ended is not None:
                    return ended
                await self._pause()
        except Exception as error:
            self._fault = self._fault or error
            raise
        finally:
            for task in beside:
                task.cancel()
            await self._stop()

    @property
    def held(self) -> int:
        """Leases."""
        return len(self._leases)

    def drain(self) -> None:
        self.draining = True
        for woken in tuple(self._sleepers):
            _set(woken)
        self._wake.set()

    def change_settings(self, settings: Settings) -> None:
        """Takes over `fetch.concurrency` and `crawl.linger`; requests in flight end as usual."""
        self._settings = settings
        self.change_concurrency(settings.fetch.concurrency)

    def change_concurrency(self, requests: int) -> None:
        self._permits.change(requests)

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
        if self._serving and len(self._deliveries) < COMMITTED_AT_ONCE:
            await asyncio.sleep(min(_LONGEST_WAIT, _SHORTEST_WAIT + _WAIT_PER_LEASE * len(self._serving)))

    async def _settle(self) -> None:
        if self._fault is not None:
            raise self._fault
        # Both at once: a lease that is given up while the settling is awaited has a delivery that is not in it,
        # and would be stale.
        deliveries, self._deliveries = self._deliveries, []
        given_up, self._given_up = self._given_up, []
        if deliveries:
            await self._source.settle(deliveries, self._permits.admit_waiting)
        if given_up:
            await self._source.release(given_up)

    def _owed(self) -> int:
        """What was read and is not committed is repeated after a kill, like what is in flight; so beyond what one
        commit takes it keeps its places. All are read at once after a pause, and one kill repeated 499."""
        return max(0, len(self._deliveries) + self._source.uncommitted - COMMITTED_AT_ONCE)

    async def _render_more(self) -> None:
        if self.draining or self._source.standing is not _OPEN:
            return
        if self._rendering is None:
            self._rendering = self._step.open_rendering(self._source.renders, self._name, self._take)
        await self._rendering.look()

    def _take(self, delivery: Delivery) -> None:
        """What came of a rendering."""
        self._deliveries.append(delivery)
        self.waiting_until = None
        self._wake.set()

    async def _lease_more(self) -> Ended | None:
        standing = self._source.standing
        if standing is _CLOSING and not self.draining:
            self.drain()
        if self.draining:
            return None if self._serving else Ended.INTERRUPTED
        if standing is _PAUSED:
            return None
        # With others about, no host is taken that would have to wait here for a place. Alone, as many wait as
        # there are places: more would only have to be renewed.
        crowded = self._permits.waiting > (0 if self._horizon is None else self._settings.fetch.concurrency)
        capacity = 0 if crowded else min(_MOST_AT_ONCE, _MOST_LEASES - len(self._leases))
        if capacity > 0:
            leases = await self._source.lease(self._name, capacity, self._settings.frontier.lease_duration)
            for lease in leases:
                self._leases[lease.token] = (lease, lease.deadline)
                self._spawn(lease)
            if len(leases) == capacity:
                self._wake.set()  # there may be more
        is_rendering = self._rendering is not None and self._rendering.is_busy
        busy = self._serving or self._deliveries or self._given_up or is_rendering
        return None if busy or self._horizon is None else self._end(await self._horizon())

    def _end(self, horizon: Horizon) -> Ended | None:
        """Nothing is held: is anything still to come that is worth waiting for?"""
        ended = ended_by(horizon, self._clock.now(), self._settings.crawl.linger)
        self.waiting_until = horizon.next_at
        return ended

    async def _renew(self, now: float) -> None:
        duration = self._settings.frontier.lease_duration
        soon = [lease for lease, deadline in self._leases.values() if deadline - now < duration * _RENEW_AT]
        held = [(lease.host, lease.token) for lease in soon]
        deadlines = await self._source.renew([*held, *self._unsettled()], duration)
        if deadlines is None:
            return
        for lease, deadline in zip(soon, deadlines, strict=False):
            if deadline is None:
                self._lose(lease)
            elif lease.token in self._leases:
                self._leases[lease.token] = (lease, deadline)

    def _unsettled(self) -> set[tuple[Host, Token]]:
        """Leases that are done with, but for what came of them: it waits for a settle that is under way."""
        outcomes = (delivery.outcome for delivery in self._deliveries)
        return {(outcome.host, outcome.token) for outcome in outcomes if outcome.token not in self._leases}

    @property
    def _between_renewals(self) -> float:
        return min(_RENEWAL, self._settings.frontier.lease_duration * _LOOK_AT)

    def _beside(self) -> tuple[asyncio.Task[None], ...]:
        """Duties of a worker elsewhere: the loop itself may wait long for a response."""
        tasks = tuple(asyncio.create_task(duty()) for duty in (self._keep_renewing, self._watch_deadlines))
        for task in tasks:
            task.add_done_callback(self._note_fault)
        return tasks

    async def _keep_renewing(self) -> None:
        """Not on the pulse, which begins with a settle: on a machine that was busy with other things as well one
        took 0.3 to 1 s, and leases of 2 s ran out behind it: of 6,373 requests 194 were made again."""
        while True:
            await asyncio.sleep(self._between_renewals)
            await self._renew(self._clock.now())

    async def _watch_deadlines(self) -> None:
        """Of a lease that runs out somebody else is next, whether or not we could ask for more time."""
        duration = self._settings.frontier.lease_duration
        before = min(duration * _LET_GO_AT, _LET_GO_BEFORE)
        while True:
            await asyncio.sleep(_WATCH)
            last = self._clock.now() + before
            for lease, deadline in tuple(self._leases.values()):  # 4,096 of them: 0.2 ms
                if deadline <= last:
                    self._lose(lease)

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
        """A bug: the loop stops at the next pulse."""
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
        may_start = partial(self._may_start, lease)
        for task in todo:
            if not self._try_claim_permit(pace):
                await self._claim_permit(pace)
            try:
                if self._delivered(await self._step.run(lease, task, may_start), pace):
                    return True
            except TooLate:
                return True
            finally:
                self._permits.release()
        return False

    def _try_claim_permit(self, pace: Pace) -> bool:
        """Whether there was nothing to wait for."""
        now = self._clock.now()
        if not pace.is_due(now) or not self._permits.try_acquire():
            return False
        pace.begin(now)
        return True

    async def _claim_permit(self, pace: Pace) -> None:
        """Wait for the host's pace outside the slot, so that its delay never keeps others from being asked."""
        while True:
            while (wait := pace.wait()) > 0 and not self.draining:
                await self._sleep(wait)
            await self._permits.acquire()
            now = self._clock.now()
            if pace.is_due(now) or self.draining:
                pace.begin(now)
                return
            self._permits.release()

    async def _sleep(self, seconds: float) -> None:
        """Like asyncio.sleep, but `drain` ends it."""
        woken = asyncio.get_running_loop().create_future()
        tick = self._ticks.call_later(seconds, partial(_set, woken))
        self._sleepers.add(woken)
        try:
            await woken
        finally:
            tick.cancel()
            self._sleepers.discard(woken)

    def _may_start(self, lease: HostLease) -> bool:
        """With the source in this process a lease that we hold is ours however late it is: `run` renews it before
        the source looks. On an overloaded machine all would be given back otherwise, and leased again. Where the
        frontier's log is elsewhere, another machine may have gone on with it while we were stopped."""
        held = self._leases.get(lease.token)
        if held is None or self.draining or self._source.standing is not _OPEN:
            return False
        if lease.closes_at is not None and self._clock.now() >= lease.closes_at:
            return False
        is_sole = self._horizon is not None and not self._settings.frontier.log
        return is_sole or self._clock.now() < held[1]

    def _delivered(self, delivery: Delivery, pace: Pace) -> bool:
        """What came of one request; True when the host should be left alone after it."""
        pace.sent(delivery.outcome.sent_at)
        self._deliveries.append(delivery)
        if len(self._deliveries) == COMMITTED_AT_ONCE:
            self._wake.set()
        self.waiting_until = None
        result = delivery.outcome.result
        if delivery.outcome.cpu:
            return True  # it cost too much: the frontier says when it is asked again
        return isinstance(result, Failed) and RULES[result.kind].blames_host

    # -- the end

    async def _stop(self) -> None:
        self.draining = True
        for task in self._serving:
            task.cancel()
        if self._serving:
            await asyncio.gather(*self._serving, return_exceptions=True)
        self._ticks.close()
        if self._rendering is not None:
            await self._rendering.close()
        if self._fault is None:
            await self._settle()


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
