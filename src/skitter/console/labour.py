"""Who fetches for `skitter crawl`: a worker in the crawl's own process, or several processes that it starts.

Between the command and the workers; both kinds look the same to the command. The processes join over a unix
socket in the crawl's folder that only its owner may open. One that dies is replaced, and the hosts it held are
free at once; when they keep dying the crawl stops and says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from skitter.desk.crew import Crew
from skitter.desk.desk import ended_by
from skitter.errors import SkitterError
from skitter.folder import CrawlFolder
from skitter.service.access import Access
from skitter.settings import Settings
from skitter.telemetry import Ended, Event, Metric, Telemetry
from skitter.wiring import Crawl, Office, open_crawl, open_office, serving_office

_SOCKET = "workers.sock"
# Linux takes 107 bytes, others 103.
_LONGEST_SOCKET = 100
_BEAT = 0.05
_DEATHS_EACH = 5


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
    folder: CrawlFolder, settings: Settings, telemetry: Telemetry
) -> AsyncIterator[tuple[Office, Labour]]:
    if settings.crawl.workers == 1:
        async with open_crawl(folder, settings, telemetry) as crawl:
            yield crawl, Alone(crawl)
        return
    with _place_for_socket(folder) as place:
        async with (
            open_office(folder, settings, telemetry) as office,
            serving_office(office, folder, shared_out(settings), f"unix:{place}", Access(), leashed=True) as (
                where,
                crew,
            ),
        ):
            gang = Gang(office, crew, settings, where)
            try:
                yield office, gang
            finally:
                await gang.end()


@contextlib.contextmanager
def _place_for_socket(folder: CrawlFolder) -> Iterator[Path]:
    place = (folder.path / _SOCKET).absolute()
    if len(bytes(place)) <= _LONGEST_SOCKET:
        yield place
        return
    with tempfile.TemporaryDirectory(prefix="skitter-") as short:  # which nobody else may enter
        yield Path(short) / _SOCKET


def shared_out(settings: Settings) -> Settings:
    """What one of several workers may take: the limits are of the crawl."""
    fetch, among = settings.fetch, settings.crawl.workers
    shares = {
        name: max(1, getattr(fetch, name) // among) for name in ("concurrency", "connections", "body_memory")
    }
    return replace(settings, fetch=replace(fetch, **shares))


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
        return self._crawl.fetcher.in_flight

    async def run(self) -> Ended:
        return await self._crawl.loop.run()

    def drain(self) -> None:
        self._crawl.loop.drain()

    def measure(self, telemetry: Telemetry) -> None:
        crawl = self._crawl
        telemetry.gauge(Metric.IN_FLIGHT, crawl.fetcher.in_flight)
        telemetry.gauge(Metric.LEASES, crawl.loop.held)
        pulse = round(crawl.loop.longest_pulse * 1000)
        telemetry.gauge(Metric.LONGEST_PULSE, max(pulse, telemetry.value(Metric.LONGEST_PULSE)))
        telemetry.gauge(Metric.DNS_HITS, crawl.resolver.hits)
        telemetry.gauge(Metric.DNS_LOOKUPS, crawl.resolver.misses)
        telemetry.gauge(Metric.DNS_FAILURES, crawl.resolver.failures)
        telemetry.gauge(Metric.DNS_MS, round(crawl.resolver.seconds * 1000))


class Gang:
    """Worker processes. Once `draining`, one that ends is not missed."""

    def __init__(self, office: Office, crew: Crew, settings: Settings, where: str) -> None:
        self._office = office
        self._crew = crew
        self._settings = settings
        self._where = where
        self._processes: dict[int, Process] = {}
        self._started = 0
        self._deaths = 0
        self._leased = 0
        self.draining = False
        self.waiting_until: float | None = None

    @property
    def in_flight(self) -> int:
        return self._crew.in_flight

    def measure(self, telemetry: Telemetry) -> None:
        telemetry.gauge(Metric.IN_FLIGHT, self._crew.in_flight)
        telemetry.gauge(Metric.LEASES, self._leased)

    def drain(self) -> None:
        self.draining = True
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)

    async def run(self) -> Ended:
        keeping = [asyncio.create_task(self._keep(place)) for place in range(self._settings.crawl.workers)]
        watching = asyncio.create_task(self._watch())
        try:
            await asyncio.wait((watching, *keeping), return_when=asyncio.FIRST_EXCEPTION)
            for task in (watching, *keeping):
                if task.done():
                    task.result()
            return watching.result()
        finally:
            for task in (watching, *keeping):
                task.cancel()
            await asyncio.gather(watching, *keeping, return_exceptions=True)

    async def end(self) -> None:
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await asyncio.gather(*(process.wait() for process in self._processes.values()))
        self._processes.clear()

    async def _watch(self) -> Ended:
        """The desk's duties, until the crawl is over and the last worker is gone."""
        desk, ended = self._office.desk, None
        while ended is None or self._processes:
            await desk.beat()
            if desk.is_short_of_room and not self.draining:
                self.drain()
            if ended is None and self.draining:
                ended = Ended.INTERRUPTED
            elif ended is None and (ended := await self._end()) is not None:
                self.drain()
            await asyncio.sleep(_BEAT)
        return ended

    async def _end(self) -> Ended | None:
        horizon = await self._office.desk.horizon()
        self._leased = horizon.leased_hosts
        self.waiting_until = horizon.next_at if not horizon.leased_hosts else None
        if horizon.leased_hosts:
            return None
        return ended_by(horizon, self._office.clock.now(), self._settings.crawl.linger)

    async def _keep(self, place: int) -> None:
        while not self.draining:
            name, process = await self._start(place)
            code = await process.wait()
            self._processes.pop(process.pid, None)
            if self.draining:
                return
            self._office.log.write(Event.WORKER_ENDED, worker=name, code=code)
            await self._crew.died(name)
            self._deaths += 1
            if self._deaths > _DEATHS_EACH * self._settings.crawl.workers:
                raise SkitterError(
                    f"worker processes keep ending (the last with code {code}): see worker-*.log "
                    "in the crawl's folder, or crawl with --workers 1"
                )

    async def _start(self, place: int) -> tuple[str, Process]:
        self._started += 1
        name = f"worker-{place + 1}-{self._started}"
        log = self._office.archive.folder.parent / f"worker-{place + 1}.log"
        command = ("-m", "skitter", "worker", "--join", self._where, "--name", name, "--log", str(log))
        # Its own session: Ctrl-C is for us, who tell it what to do. Its input ends when we do.
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, "--leashed", stdin=PIPE, stdout=DEVNULL, start_new_session=True
        )
        self._processes[process.pid] = process
        if self.draining:
            process.send_signal(signal.SIGTERM)
        return name, process
