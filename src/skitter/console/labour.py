"""Who fetches for `skitter crawl`: a worker in the crawl's own process, and processes that it starts beside that
one or, where there are many, instead of it.

Between the command and the workers; both kinds look the same to the command. The processes join over a unix
socket in the crawl's folder that only its owner may open. One that dies is replaced, and the hosts it held are
free at once; when they keep dying the crawl stops and says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterator
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from skitter.console.hired import DESK_ONLY_FROM, Hired, processes_for
from skitter.console.spares import Spare
from skitter.desk.crew import Crew
from skitter.desk.desk import ended_by
from skitter.desk.reception import Reception
from skitter.errors import SkitterError
from skitter.folder import CrawlFolder
from skitter.hands import Hands, open_hands
from skitter.settings import Settings
from skitter.telemetry import Ended, Event, Metric, Telemetry
from skitter.wiring import Crawl, Office, leading_office, loop_among_others, open_crawl, open_office
from skitter.worker.loop import Loop

_SOCKET = "workers.sock"
# Linux takes 107 bytes, others 103.
_LONGEST_SOCKET = 100
_BEAT = 0.05
# Once all is done and the last are leaving: nothing else waits for the core.
_LAST_BEATS = 0.005
_GLANCE = 1.0
_ALL_OF_A_CORE = 0.85
# A host is asked by one worker at a time: with fewer of them processes would only wait for each other.
_HOSTS_EACH = 4
_DEATHS_EACH = 5
_LEASE = 60.0


class Labour(Protocol):
    @property
    def waiting_until(self) -> float | None: ...

    @property
    def draining(self) -> bool: ...

    @property
    def in_flight(self) -> int: ...

    async def run(self) -> Ended: ...

    def drain(self) -> None: ...

    def measure(self, telemetry: Telemetry) -> None: ...


@contextlib.asynccontextmanager
async def opened(
    folder: CrawlFolder, settings: Settings, telemetry: Telemetry, spares: list[Spare]
) -> AsyncIterator[tuple[Office, Labour]]:
    """`spares` are used up, as far as processes are needed."""
    workers = settings.crawl.workers
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if workers == 1 or (workers == 0 and cores == 1):
        async with open_crawl(folder, settings, telemetry) as crawl:
            yield crawl, Alone(crawl)
    elif workers == 0:
        async with open_crawl(folder, settings, telemetry) as crawl:
            yield crawl, Relieved(crawl, folder, _with_workers(settings, cores))
    else:
        async with (
            _hired(folder, workers, spares) as hired,
            open_office(folder, settings, telemetry, apart=True) as office,
            _gang(office, settings, hired) as gang,
            open_hands(gang.settings, office.clock) as hands,
        ):
            gang.work_along(hands)
            yield office, gang


def _with_workers(settings: Settings, count: int) -> Settings:
    return replace(settings, crawl=replace(settings.crawl, workers=count))


@contextlib.asynccontextmanager
async def _hired(folder: CrawlFolder, workers: int, spares: list[Spare]) -> AsyncIterator[Hired]:
    """Processes that will join: meanwhile the office may be opened."""
    with _place_for_socket(folder) as place:
        hired = Hired(folder.path, place, spares)
        try:
            await asyncio.gather(*(hired.start(number) for number in range(processes_for(workers))))
            yield hired
        finally:
            await hired.end()


@contextlib.asynccontextmanager
async def _gang(office: Office, settings: Settings, hired: Hired) -> AsyncIterator[Gang]:
    shared = shared_out(settings)
    async with leading_office(office, shared, hired.place) as (crew, reception):
        yield Gang(office, crew, reception, shared, hired)


@contextlib.contextmanager
def _place_for_socket(folder: CrawlFolder) -> Iterator[Path]:
    place = (folder.path / _SOCKET).absolute()
    if len(bytes(place)) <= _LONGEST_SOCKET:
        yield place
        return
    with tempfile.TemporaryDirectory(prefix="skitter-") as short:  # which nobody else may enter
        yield Path(short) / _SOCKET


def shared_out(settings: Settings) -> Settings:
    """What one of several workers may take: the limits are of the crawl. A lease only guards against one that
    hangs: it ends with us, and its death is heard of at once. On a machine that was overloaded fivefold leases of
    2 s kept running out."""
    fetch, among = settings.fetch, settings.crawl.workers
    lease = max(settings.frontier.lease_duration, _LEASE)
    shares = {
        name: max(1, getattr(fetch, name) // among) for name in ("concurrency", "connections", "body_memory")
    }
    return replace(
        settings,
        fetch=replace(fetch, **shares),
        frontier=replace(settings.frontier, lease_duration=lease),
    )


class Alone:
    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl

    @property
    def waiting_until(self) -> float | None:
        return self._crawl.loop.waiting_until

    @property
    def draining(self) -> bool:
        return self._crawl.loop.draining

    @property
    def in_flight(self) -> int:
        return self._crawl.hands.fetcher.in_flight

    async def run(self) -> Ended:
        return await self._crawl.loop.run()

    def drain(self) -> None:
        self._crawl.loop.drain()

    def measure(self, telemetry: Telemetry) -> None:
        crawl = self._crawl
        telemetry.gauge(Metric.IN_FLIGHT, self.in_flight)
        telemetry.gauge(Metric.LEASES, crawl.loop.held)
        pulse = round(crawl.loop.longest_pulse * 1000)
        telemetry.gauge(Metric.LONGEST_PULSE, max(pulse, telemetry.value(Metric.LONGEST_PULSE)))
        resolver = crawl.hands.resolver
        telemetry.gauge(Metric.DNS_HITS, resolver.hits)
        telemetry.gauge(Metric.DNS_LOOKUPS, resolver.misses)
        telemetry.gauge(Metric.DNS_FAILURES, resolver.failures)
        telemetry.gauge(Metric.DNS_MS, round(resolver.seconds * 1000))


class Relieved:
    """Begins alone. When that has been all that a core can do for a while, and there are hosts enough to share,
    processes take over, while what is in flight here ends; then this one goes on as one among them, if they are
    few."""

    def __init__(self, crawl: Crawl, folder: CrawlFolder, settings: Settings) -> None:
        self._crawl = crawl
        self._folder = folder
        self._settings = settings
        self._alone = Alone(crawl)
        self._gang: Gang | None = None
        self._is_ending = False

    @property
    def waiting_until(self) -> float | None:
        return (self._gang or self._alone).waiting_until

    @property
    def draining(self) -> bool:
        return self._is_ending or (self._gang or self._alone).draining

    @property
    def in_flight(self) -> int:
        if self._gang is None:
            return self._alone.in_flight
        # requests of this process are among the gang's once it works along
        return self._gang.in_flight + (0 if self._gang.works_along else self._alone.in_flight)

    def drain(self) -> None:
        self._is_ending = True
        self._alone.drain()
        if self._gang is not None:
            self._gang.drain()

    def measure(self, telemetry: Telemetry) -> None:
        self._alone.measure(telemetry)
        if self._gang is not None:
            self._gang.measure(telemetry)
            telemetry.gauge(Metric.IN_FLIGHT, self.in_flight)

    async def run(self) -> Ended:
        working = asyncio.create_task(self._alone.run())
        overworked = asyncio.create_task(self._until_overworked())
        try:
            await asyncio.wait((working, overworked), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            overworked.result()
            return await self._hand_over(working)
        finally:
            for task in (overworked, working):
                task.cancel()
            await asyncio.gather(overworked, working, return_exceptions=True)

    async def _hand_over(self, working: asyncio.Task[Ended]) -> Ended:
        self._crawl.log.write(Event.WORKERS_STARTED, workers=self._settings.crawl.workers)
        async with (
            _hired(self._folder, self._settings.crawl.workers, []) as hired,
            _gang(self._crawl, self._settings, hired) as gang,
        ):
            self._gang = gang
            if self._is_ending:
                gang.drain()
            taking_over = asyncio.create_task(gang.run())
            try:
                # Until then hosts would wait for nobody.
                while not (gang.is_at_work or taking_over.done() or working.done()):
                    await asyncio.sleep(_BEAT)
                self._alone.drain()
                await working
                gang.work_along(self._crawl.hands)
                return await taking_over
            finally:
                taking_over.cancel()
                await asyncio.gather(taking_over, return_exceptions=True)

    async def _until_overworked(self) -> None:
        """By the mean of the last seconds: one in which a disk was waited for proves nothing."""
        patience = self._settings.crawl.relief
        spans: deque[tuple[float, float]] = deque()
        while not _is_too_much(spans, patience) or not await self._can_be_shared():
            # of this thread: what RocksDB and Arrow do beside it is not relieved by others
            cpu, began = time.thread_time(), self._crawl.clock.now()
            await asyncio.sleep(_GLANCE)
            spans.append((self._crawl.clock.now() - began, time.thread_time() - cpu))
            while len(spans) > 1 and sum(passed for passed, _ in spans) - spans[0][0] >= patience:
                spans.popleft()

    async def _can_be_shared(self) -> bool:
        stats = await self._crawl.frontier.stats()
        ready = stats.hosts["active"] + stats.hosts["waiting"]
        return not self._is_ending and ready >= _HOSTS_EACH * self._settings.crawl.workers


def _is_too_much(spans: Collection[tuple[float, float]], patience: float) -> bool:
    """Seconds that passed, and those of them that a core was busy."""
    passed = sum(passed for passed, _ in spans)
    return not patience or (passed >= patience and sum(busy for _, busy in spans) >= _ALL_OF_A_CORE * passed)


class Gang:
    """Workers in processes of their own, and one in this process while these are few. Once `draining`, one that
    ends is not missed. `settings` are those of one worker."""

    def __init__(
        self, office: Office, crew: Crew, reception: Reception, settings: Settings, hired: Hired
    ) -> None:
        self._office = office
        self._crew = crew
        self._reception = reception
        self._hired = hired
        self._own: Loop | None = None
        self._working: asyncio.Task[Ended] | None = None
        self._deaths = 0
        self._leased = 0
        self.settings = settings
        self.draining = False
        self.waiting_until: float | None = None

    @property
    def is_at_work(self) -> bool:
        return self._crew.workers > 0

    @property
    def in_flight(self) -> int:
        return self._crew.in_flight

    @property
    def works_along(self) -> bool:
        return self._own is not None

    def measure(self, telemetry: Telemetry) -> None:
        telemetry.gauge(Metric.IN_FLIGHT, self._crew.in_flight)
        telemetry.gauge(Metric.LEASES, self._leased)

    def work_along(self, hands: Hands) -> None:
        """With the hands of this process, unless the desk has enough to do with what the others deliver."""
        if self.settings.crawl.workers < DESK_ONLY_FROM and not self.draining:
            self._own = loop_among_others(self._office, self._reception, hands, self.settings)

    def drain(self) -> None:
        self.draining = True
        self._hired.drain()
        if self._own is not None:
            self._own.drain()

    async def run(self) -> Ended:
        places = range(processes_for(self.settings.crawl.workers))
        keeping = [asyncio.create_task(self._keep(place)) for place in places]
        watching = asyncio.create_task(self._watch())
        try:
            await asyncio.wait((watching, *keeping), return_when=asyncio.FIRST_EXCEPTION)
            for task in (watching, *keeping):
                if task.done():
                    task.result()
            return watching.result()
        finally:
            tasks = [watching, *keeping, *([self._working] if self._working is not None else [])]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self) -> Ended:
        """The desk's duties, until the crawl is over and the last worker is gone."""
        desk, ended, is_working = self._office.desk, None, False
        while ended is None or self._hired.processes or is_working:
            is_working = self._is_working()
            await desk.beat()
            if desk.is_short_of_room and not self.draining:
                self.drain()
            if ended is None and self.draining:
                ended = Ended.INTERRUPTED
            elif ended is None and (ended := await self._end()) is not None:
                self.drain()
            await asyncio.sleep(_BEAT if ended is None else _LAST_BEATS)
        return ended

    def _is_working(self) -> bool:
        """The worker in this process, which begins with the first look; its fault is ours."""
        if self._own is not None and self._working is None:
            self._working = asyncio.create_task(self._own.run())
        if self._working is None or not self._working.done():
            return self._working is not None
        self._working.result()
        return False

    async def _end(self) -> Ended | None:
        horizon = await self._office.desk.horizon()
        self._leased = horizon.leased_hosts
        self.waiting_until = horizon.next_at if not horizon.leased_hosts else None
        if horizon.leased_hosts:
            return None
        return ended_by(horizon, self._office.clock.now(), self.settings.crawl.linger)

    async def _keep(self, place: int) -> None:
        while True:
            name, code = await self._hired.ended(place)
            if self.draining:
                return
            self._office.log.write(Event.WORKER_ENDED, worker=name, code=code)
            await self._crew.died(name)
            self._deaths += 1
            if self._deaths > _DEATHS_EACH * self.settings.crawl.workers:
                raise SkitterError(
                    f"worker processes keep ending (the last with code {code}): see worker-*.log "
                    "in the crawl's folder, or crawl with --workers 1"
                )
            await self._hired.start(place)
            if self.draining:
                self._hired.drain()
