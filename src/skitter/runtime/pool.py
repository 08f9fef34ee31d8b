"""A pool of workers: what `skitter crawl` runs until the crawl has ended.

Below the command, above the workers. Three kinds, chosen here by `crawl.workers`: one worker in the crawl's own
process, worker processes, or the first until a core is full and then the second. All look the same from outside.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from skitter.fetch_stack import open_fetch_stack
from skitter.folder import CrawlFolder
from skitter.runtime.auto_scaling_pool import AutoScalingPool
from skitter.runtime.in_process_pool import InProcessPool
from skitter.runtime.process_pool import open_process_pool
from skitter.runtime.worker_processes import start_processes
from skitter.service.steering.settings import Take
from skitter.settings import Settings
from skitter.telemetry import Ended, Telemetry
from skitter.wiring import CrawlServices, open_crawl, open_services


class WorkerPool(Protocol):
    """
    running    workers lease hosts and settle what came of them
    draining   no new requests; `run` returns when those in flight have ended
    """

    @property
    def waiting_until(self) -> float | None:
        """When the next host or retry is ready, while nothing can be asked."""
        ...

    @property
    def draining(self) -> bool: ...

    @property
    def in_flight(self) -> int: ...

    async def run(self) -> Ended:
        """Runs until the crawl has ended or was drained, and says which. Cancelling it stops at once."""
        ...

    def drain(self) -> None: ...

    def measure(self, telemetry: Telemetry) -> None:
        """Writes the pool's gauges."""
        ...

    def takers(self) -> Mapping[str, Take]:
        """Settings of the workers that can change now, and who takes them over."""
        ...


@contextlib.asynccontextmanager
async def open_pool(
    folder: CrawlFolder, settings: Settings, telemetry: Telemetry
) -> AsyncIterator[tuple[CrawlServices, WorkerPool]]:
    """Opens the crawl's services and the pool that its settings ask for."""
    workers, cores = settings.crawl.workers, _cores()
    if workers == 1 or (workers == 0 and cores == 1):
        async with open_crawl(folder, settings, telemetry) as crawl:
            yield crawl, InProcessPool(crawl)
    elif workers == 0:
        async with open_crawl(folder, settings, telemetry) as crawl:
            yield crawl, AutoScalingPool(crawl, folder, settings, cores)
    else:
        # The processes first: they start while the store is opened.
        async with (
            start_processes(folder, workers, log_json=settings.log.json) as processes,
            open_services(folder, settings, telemetry) as services,
            open_process_pool(services, settings, processes) as pool,
            open_fetch_stack(pool.settings, services.clock) as stack,
        ):
            pool.add_own_worker(stack)
            yield services, pool


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
