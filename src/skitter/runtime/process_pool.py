"""A pool of worker processes, and of one worker in the crawl's own process while there are few.

The processes join over a unix socket in the crawl's folder that only its owner may open. One that dies is
replaced, and the hosts it held are free at once. When they keep dying the crawl stops and says so.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping

from msgspec.structs import replace

from skitter.committer.committer import ended_by
from skitter.committer.work_source import Standing
from skitter.committer.worker_registry import WorkerRegistry
from skitter.committer.worker_rpc import WorkerRpc
from skitter.errors import SkitterError
from skitter.fetch_stack import FetchStack
from skitter.runtime.worker_processes import WorkerProcesses
from skitter.runtime.worker_settings import has_own_worker, processes_for, settings_of_worker
from skitter.service.steering.settings import Take
from skitter.settings import Settings
from skitter.telemetry import Ended, Event, Metric, Telemetry
from skitter.wiring import CrawlServices, loop_beside_others, serve_workers
from skitter.worker.loop import Loop

_BEAT = 0.05
# Once the crawl has ended and the last workers leave: nothing else needs the core.
_LAST_BEATS = 0.005
_DEATHS_PER_WORKER = 5


@contextlib.asynccontextmanager
async def open_process_pool(
    services: CrawlServices, settings: Settings, processes: WorkerProcesses
) -> AsyncIterator[ProcessPool]:
    """`settings` are the crawl's."""
    own = settings_of_worker(settings)
    async with serve_workers(services, own, processes.socket) as (registry, rpc):
        yield ProcessPool(services, registry, rpc, own, processes)


class ProcessPool:
    """A `WorkerPool`. A worker that ends while `draining` is not replaced. `settings` are those of one worker."""

    def __init__(
        self,
        services: CrawlServices,
        registry: WorkerRegistry,
        rpc: WorkerRpc,
        settings: Settings,
        processes: WorkerProcesses,
    ) -> None:
        self._services = services
        self._registry = registry
        self._rpc = rpc
        self._processes = processes
        self._own: Loop | None = None
        self._own_running: asyncio.Task[Ended] | None = None
        self._deaths = 0
        self._leased = 0
        self.settings = settings
        self.draining = False
        self.waiting_until: float | None = None

    @property
    def has_workers(self) -> bool:
        return self._registry.workers > 0

    @property
    def in_flight(self) -> int:
        return self._registry.in_flight

    @property
    def has_own_worker(self) -> bool:
        return self._own is not None

    def takers(self) -> Mapping[str, Take]:
        """Processes have the settings that they joined with, but for how many requests may be in flight."""
        return {"crawl.linger": self._change_settings, "fetch.concurrency": self._change_settings}

    def _change_settings(self, settings: Settings) -> None:
        self.settings = settings_of_worker(
            replace(settings, crawl=replace(settings.crawl, workers=self.settings.crawl.workers))
        )
        self._rpc.change_settings(self.settings)
        if self._own is not None:
            self._own.change_settings(self.settings)
        self._services.telemetry.concurrency = settings.fetch.concurrency

    def measure(self, telemetry: Telemetry) -> None:
        telemetry.gauge(Metric.IN_FLIGHT, self._registry.in_flight)
        telemetry.gauge(Metric.LEASES, self._leased)

    def add_own_worker(self, stack: FetchStack) -> None:
        """Lets the crawl's own process be one of the workers, unless the committer alone keeps it busy."""
        if has_own_worker(self.settings.crawl.workers) and not self.draining:
            self._own = loop_beside_others(self._services, self._rpc, stack, self.settings)

    def drain(self) -> None:
        self.draining = True
        self._processes.drain()
        if self._own is not None:
            self._own.drain()

    async def run(self) -> Ended:
        places = range(processes_for(self.settings.crawl.workers))
        keeping = [asyncio.create_task(self._replace_when_dead(place)) for place in places]
        watching = asyncio.create_task(self._watch())
        try:
            await asyncio.wait((watching, *keeping), return_when=asyncio.FIRST_EXCEPTION)
            for task in (watching, *keeping):
                if task.done():
                    task.result()
            return watching.result()
        finally:
            tasks = [watching, *keeping, *([self._own_running] if self._own_running is not None else [])]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self) -> Ended:
        """Does the committer's chores until the crawl has ended and the last worker is gone."""
        committer, ended = self._services.committer, None
        while ended is None or self._processes.running or self._is_own_running():
            self._start_own_worker()
            self._raise_own_fault()
            await committer.beat()
            if committer.is_short_of_room and not self.draining:
                self.drain()
            if ended is None and self.draining:
                ended = Ended.INTERRUPTED
            elif ended is None and (ended := await self._find_end()) is not None:
                self.drain()
            await asyncio.sleep(_BEAT if ended is None else _LAST_BEATS)
        return ended

    def _start_own_worker(self) -> None:
        if self._own is not None and self._own_running is None:
            self._own_running = asyncio.create_task(self._own.run())

    def _raise_own_fault(self) -> None:
        """A fault of the worker in this process is the crawl's."""
        if self._own_running is not None and self._own_running.done():
            self._own_running.result()

    def _is_own_running(self) -> bool:
        return self._own_running is not None and not self._own_running.done()

    async def _find_end(self) -> Ended | None:
        committer = self._services.committer
        horizon = await committer.horizon()
        self._leased = horizon.leased_hosts
        self.waiting_until = horizon.next_at if not horizon.leased_hosts else None
        if horizon.leased_hosts or committer.standing is Standing.PAUSED:
            return None
        return ended_by(horizon, self._services.clock.now(), self.settings.crawl.linger)

    async def _replace_when_dead(self, place: int) -> None:
        while True:
            name, code = await self._processes.wait(place)
            if self.draining:
                return
            self._services.log.write(Event.WORKER_ENDED, worker=name, code=code)
            await self._registry.release_dead(name)
            self._deaths += 1
            if self._deaths > _DEATHS_PER_WORKER * self.settings.crawl.workers:
                raise SkitterError(
                    f"worker processes keep ending (the last with code {code}): see worker-*.log "
                    "in the crawl's folder, or crawl with --workers 1"
                )
            await self._processes.start(place)
            if self.draining:
                self._processes.drain()
