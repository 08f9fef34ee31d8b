"""A pool that begins with one worker in the crawl's own process, and starts processes when that is not enough.

The default of `skitter crawl`. A small crawl never pays for a process; a large one uses every core.

    alone      one worker, as in `in_process_pool.py`
    handing over   a core was full for a while, and there are hosts enough to share: processes start; once they
               work, the own worker finishes what it has in flight
    shared     as in `process_pool.py`; the own worker goes on as one of them, if they are few
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Collection, Mapping

from msgspec.structs import replace

from skitter.folder import CrawlFolder
from skitter.runtime.in_process_pool import InProcessPool
from skitter.runtime.process_pool import ProcessPool, open_process_pool
from skitter.runtime.worker_processes import start_processes
from skitter.service.steering.settings import Take
from skitter.settings import Settings
from skitter.telemetry import Ended, Event, Metric, Telemetry
from skitter.wiring import Crawl

_BEAT = 0.05
_GLANCE = 1.0
_FULL_CORE = 0.85
# A host is asked by one worker at a time: with fewer of them processes would only wait for each other.
_HOSTS_PER_WORKER = 4


class AutoScalingPool:
    """A `WorkerPool`. `cores` is how many workers it has in the end."""

    def __init__(self, crawl: Crawl, folder: CrawlFolder, settings: Settings, cores: int) -> None:
        self._crawl = crawl
        self._folder = folder
        self._settings = replace(settings, crawl=replace(settings.crawl, workers=cores))
        self._alone = InProcessPool(crawl)
        self._shared: ProcessPool | None = None
        self._is_ending = False

    @property
    def waiting_until(self) -> float | None:
        return (self._shared or self._alone).waiting_until

    @property
    def draining(self) -> bool:
        return self._is_ending or (self._shared or self._alone).draining

    @property
    def in_flight(self) -> int:
        if self._shared is None:
            return self._alone.in_flight
        # Requests of this process are among the shared ones once it is one of the workers.
        return self._shared.in_flight + (0 if self._shared.has_own_worker else self._alone.in_flight)

    def drain(self) -> None:
        self._is_ending = True
        self._alone.drain()
        if self._shared is not None:
            self._shared.drain()

    def takers(self) -> Mapping[str, Take]:
        if self._shared is not None:
            return self._shared.takers()
        return dict.fromkeys(self._alone.takers(), self._change_settings)

    def _change_settings(self, settings: Settings) -> None:
        workers = self._settings.crawl.workers
        self._settings = replace(settings, crawl=replace(settings.crawl, workers=workers))
        self._alone.change_settings(settings)

    def measure(self, telemetry: Telemetry) -> None:
        self._alone.measure(telemetry)
        if self._shared is not None:
            self._shared.measure(telemetry)
            telemetry.gauge(Metric.IN_FLIGHT, self.in_flight)

    async def run(self) -> Ended:
        working = asyncio.create_task(self._alone.run())
        watching = asyncio.create_task(self._wait_until_too_busy())
        try:
            await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            watching.result()
            return await self._hand_over(working)
        finally:
            for task in (watching, working):
                task.cancel()
            await asyncio.gather(watching, working, return_exceptions=True)

    async def _hand_over(self, working: asyncio.Task[Ended]) -> Ended:
        workers = self._settings.crawl.workers
        self._crawl.log.write(Event.WORKERS_STARTED, workers=workers)
        async with (
            start_processes(self._folder, workers, log_json=self._settings.log.json) as processes,
            open_process_pool(self._crawl, self._settings, processes) as pool,
        ):
            self._shared = pool
            if self._is_ending:
                pool.drain()
            taking_over = asyncio.create_task(pool.run())
            try:
                # Before a process works, hosts that the own worker gives back would wait for nobody.
                while not (pool.has_workers or taking_over.done() or working.done()):
                    await asyncio.sleep(_BEAT)
                self._alone.drain()
                await working
                pool.add_own_worker(self._crawl.stack)
                return await taking_over
            finally:
                taking_over.cancel()
                await asyncio.gather(taking_over, return_exceptions=True)

    async def _wait_until_too_busy(self) -> None:
        """By the mean of the last seconds: one second in which a disk was waited for proves nothing."""
        patience = self._settings.crawl.relief
        spans: deque[tuple[float, float]] = deque()
        while not is_too_busy(spans, patience) or not await self._can_be_shared():
            # Of this thread: other processes do not take over what RocksDB and Arrow do in their own threads.
            cpu, began = time.thread_time(), self._crawl.clock.now()
            await asyncio.sleep(_GLANCE)
            spans.append((self._crawl.clock.now() - began, time.thread_time() - cpu))
            while len(spans) > 1 and sum(passed for passed, _ in spans) - spans[0][0] >= patience:
                spans.popleft()

    async def _can_be_shared(self) -> bool:
        stats = await self._crawl.frontier.stats()
        ready = stats.hosts["active"] + stats.hosts["waiting"]
        return not self._is_ending and ready >= _HOSTS_PER_WORKER * self._settings.crawl.workers


def is_too_busy(spans: Collection[tuple[float, float]], patience: float) -> bool:
    """`spans` are seconds that passed, and those of them in which a core was busy."""
    passed = sum(passed for passed, _ in spans)
    return not patience or (passed >= patience and sum(busy for _, busy in spans) >= _FULL_CORE * passed)
