"""`skitter crawl`: opens the folder, admits the seeds, runs the loop under the display, says how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import shlex
import signal
from collections.abc import Sequence

import msgspec

from skitter import __version__
from skitter.archive.segments import finished_in
from skitter.clock import Clock, SystemClock
from skitter.console.display import Display
from skitter.console.labour import Labour, opened
from skitter.console.pause import wait_for_room
from skitter.console.spares import Spare
from skitter.console.summary import Summary
from skitter.console.uploading import uploading
from skitter.console.wording import counted
from skitter.errors import DiskFull, SkitterError, UsageError
from skitter.fetch.resolver import Resolver
from skitter.folder import CrawlFolder
from skitter.frontier.base import Stats
from skitter.frontier.blocklists import Blocklists
from skitter.hands import GC_THRESHOLDS, raise_descriptor_limit
from skitter.model import Discovered, VerdictKind
from skitter.seeds import hosts_named, require_contact
from skitter.settings import Settings
from skitter.settings.load import Loaded, dump_toml
from skitter.telemetry import Ended, Event, FrontierFigures, Metric, Phase, Snapshot, Telemetry
from skitter.wiring import Office, probe_objects

EXIT_CODES = {
    Ended.COMPLETE: 0,
    Ended.LIMIT: 0,
    Ended.WAITING: 3,
    Ended.INTERRUPTED: 130,
    Ended.STOPPED: 130,
}
_REFRESH = 0.25
_SEED_BATCH = 5_000


async def run_crawl(
    folder: CrawlFolder,
    loaded: Loaded,
    seeds: Sequence[Discovered],
    display: Display,
    spares: list[Spare] | None = None,
) -> Ended:
    """`spares` are worker processes that were made ready; without them they are started anew."""
    settings = with_whole_paths(loaded.settings)
    check(settings)
    require_contact(settings, seeds)
    if folder.is_new and not seeds:
        raise UsageError(f"{folder.path} holds no crawl yet: give at least one seed URL")
    await probe_objects(settings)
    folder.lock()
    try:
        resumed = not folder.is_new
        folder.write_settings(dump_toml(settings))
        settings = _within_descriptors(settings, display)
        gc.set_threshold(*GC_THRESHOLDS)
        run = _Run(folder, settings, SystemClock(), display, list(seeds), resumed, spares or [])
        ended, last = await _crawl(run)
        display.close(_summary(folder, ended, last, settings.archive.url))
        return ended
    finally:
        display.close(None)
        folder.unlock()


def _within_descriptors(settings: Settings, display: Display) -> Settings:
    able = raise_descriptor_limit(settings)
    if able is not settings:
        display.note(
            f"only {able.fetch.connections:,} connections instead of {settings.fetch.connections:,}: the limit of"
            " open files is too low; raise it (ulimit -Hn, LimitNOFILE) or set fetch.connections"
        )
    return able


def with_whole_paths(settings: Settings) -> Settings:
    """A later run may start in another directory, and means the same files."""
    lists = tuple(os.path.abspath(path) for path in settings.crawl.blocklists)
    return msgspec.structs.replace(settings, crawl=msgspec.structs.replace(settings.crawl, blocklists=lists))


def check(settings: Settings) -> None:
    """What the settings' own checks cannot know, before it is written where every later run reads it."""
    Resolver(settings.fetch, SystemClock())
    Blocklists(settings.crawl.blocklists).load()
    for name in settings.hosts:
        hosts_named(name)


async def _crawl(run: _Run) -> tuple[Ended, Snapshot]:
    """From open to close, again and again as long as the disk fills up."""
    while True:
        try:
            return await run.to_its_end()
        except Exception as error:
            fault = _first_fault(error)
            if not isinstance(fault, DiskFull):
                raise fault from error
            why = str(fault)
            # Its traceback holds all that was opened, also what could not be closed properly.
            del fault
        if not await run.pause(why):
            return Ended.INTERRUPTED, run.shown(Phase.DONE)


class _Run:
    """What outlives a pause: the figures so far, and the seeds that were not admitted yet."""

    def __init__(
        self,
        folder: CrawlFolder,
        settings: Settings,
        clock: Clock,
        display: Display,
        seeds: list[Discovered],
        resumed: bool,
        spares: list[Spare],
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._clock = clock
        self._display = display
        self._seeds = seeds
        self._resumed = resumed
        self._spares = spares
        self._telemetry = Telemetry(clock.now(), settings.crawl.max_pages)
        self._figures = FrontierFigures()

    async def to_its_end(self) -> tuple[Ended, Snapshot]:
        async with opened(self._folder, self._settings, self._telemetry, self._spares) as (crawl, labour):
            event = Event.CRAWL_RESUMED if self._resumed else Event.CRAWL_STARTED
            self._resumed = True
            path = str(self._folder.path)
            crawl.log.write(event, folder=path, seeds=len(self._seeds), version=__version__)
            _tell_given_back(crawl, self._display)
            try:
                await admit_seeds(crawl, self._seeds, self._display)
                self._seeds = []
                async with uploading(crawl, self._display) as rest:
                    ended = await _run(crawl, labour, self._display)
                    ended = await rest(ended)
            finally:
                with contextlib.suppress(SkitterError):
                    self._figures = figures(await crawl.frontier.stats())
            last = await snapshot(crawl, labour, Phase.DONE)
            crawl.log.write(Event.CRAWL_ENDED, how=ended, pages=last.pages, requests=last.requests)
            return ended, last

    async def pause(self, why: str) -> bool:
        return await wait_for_room(
            (self._folder.path, self._folder.frontier, self._folder.archive),
            self._settings.archive.min_free,
            why,
            self._display,
            lambda: self.shown(Phase.PAUSED),
            self._clock,
            self._folder.log,
        )

    def shown(self, phase: Phase) -> Snapshot:
        self._telemetry.gauge(Metric.IN_FLIGHT, 0)
        return self._telemetry.snapshot(self._clock.now(), self._figures, phase)


def _first_fault(error: BaseException) -> BaseException:
    """A full disk also fails the closing of what it filled: what came first is what has to be put right."""
    first, at = error, error.__context__
    while at is not None:
        if isinstance(at, SkitterError):
            first = at
        at = at.__context__
    return first


async def admit_seeds(office: Office, seeds: Sequence[Discovered], display: Display) -> None:
    known = 0
    for start in range(0, len(seeds), _SEED_BATCH):
        verdicts = await office.frontier.admit(seeds[start : start + _SEED_BATCH])
        known += sum(verdict.kind is VerdictKind.KNOWN for verdict in verdicts)
        for seed, verdict in zip(seeds[start : start + _SEED_BATCH], verdicts, strict=True):
            if verdict.kind is VerdictKind.REFUSED:
                display.note(f"seed refused: {seed.url} ({verdict.reason}: {verdict.rule})")
        if len(seeds) > _SEED_BATCH:
            display.note(f"{min(start + _SEED_BATCH, len(seeds)):,} of {len(seeds):,} seeds read")
    if known:
        display.note(f"{known:,} of {len(seeds):,} seeds were known already")


def _tell_given_back(crawl: Office, display: Display) -> None:
    segments, fetches = crawl.given_back
    if segments:
        display.note(
            f"{counted(segments, 'segment')} of the archive are gone and were not stored yet: what the "
            f"{counted(fetches, 'request')} in them brought is fetched again"
        )
        crawl.log.write(Event.SEGMENTS_LOST, segments=segments, requests=fetches)


async def _run(office: Office, labour: Labour, display: Display) -> Ended:
    """The work, with the display beside it and Ctrl-C understood: once drains, twice stops."""
    running = asyncio.create_task(labour.run())
    showing = asyncio.create_task(_show(office, labour, display))
    _on_interrupt(office, labour, running, display)
    try:
        ended = await running
        office.desk.complain_of_room()
        return ended
    except asyncio.CancelledError:
        return Ended.STOPPED
    finally:
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)


def _on_interrupt(office: Office, labour: Labour, running: asyncio.Task[Ended], display: Display) -> None:
    def interrupted(name: str) -> None:
        if labour.draining and not office.desk.is_short_of_room:
            display.note(f"{name} again: stopping at once; what was in flight will be fetched again")
            running.cancel()
            return
        display.note(f"{name}: finishing {labour.in_flight} requests in flight; press again to stop at once")
        office.log.write(Event.CRAWL_DRAINING, why=name)
        office.desk.drain()
        labour.drain()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, interrupted, "Ctrl-C")
    loop.add_signal_handler(signal.SIGTERM, interrupted, "SIGTERM")


async def _show(office: Office, labour: Labour, display: Display) -> None:
    while True:
        phase = Phase.CRAWLING
        if labour.draining:
            phase = Phase.DRAINING
        elif office.desk.is_paused:
            phase = Phase.PAUSED
        elif labour.waiting_until is not None:
            phase = Phase.WAITING
        display.update(await snapshot(office, labour, phase))
        office.log.flush()
        await asyncio.sleep(_REFRESH)


async def snapshot(office: Office, labour: Labour, phase: Phase) -> Snapshot:
    telemetry = office.telemetry
    labour.measure(telemetry)
    telemetry.gauge(Metric.LOG_DROPPED, office.log.dropped)
    telemetry.gauge(Metric.PARTS, office.archive.parts_written)
    if office.uploader is not None:
        telemetry.gauge(Metric.STORED_SEGMENTS, office.uploader.uploaded)
        telemetry.gauge(Metric.SPOOL, office.uploader.spooled())
    return telemetry.snapshot(office.clock.now(), figures(await office.frontier.stats()), phase)


def figures(stats: Stats) -> FrontierFigures:
    return FrontierFigures(
        hosts_active=stats.hosts["active"],
        hosts_waiting=stats.hosts["waiting"],
        hosts_backing_off=stats.hosts["backing_off"],
        hosts_total=sum(stats.hosts.values()),
        queued=stats.urls["queued"],
        in_progress=stats.urls["in_progress"],
        waiting_retry=stats.urls["failed"],
        pages_in_all=stats.pages,
        unstored=stats.unstored,
        denied=stats.urls["denied"],
        gone=stats.urls["gone"],
        dead=stats.urls["dead_letter"],
        refusals=stats.refusals,
        next_at=stats.next_at,
    )


def _summary(folder: CrawlFolder, ended: Ended, last: Snapshot, url: str) -> Summary:
    with contextlib.suppress(OSError):
        archives = sorted(str(folder.archive / name) for name in finished_in(folder.archive))
        index = folder.archive / "index.cdxj"
        return Summary(
            ended=ended,
            last=last,
            folder=str(folder.path),
            archives=tuple(archives),
            index=str(index) if index.exists() else "",
            log=str(folder.log),
            resume=f"skitter crawl --into {shlex.quote(str(folder.path))}",
            url=url,
        )
    return Summary(ended=ended, last=last, folder=str(folder.path))
