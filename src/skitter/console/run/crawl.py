"""`skitter crawl`: opens the folder, admits the seeds, runs the loop under the display, says how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from msgspec.structs import replace

from skitter import __version__
from skitter.archive.segments import finished_in
from skitter.clock import Clock, SystemClock
from skitter.committer.report import FetchShown, shown
from skitter.committer.work_source import Standing
from skitter.console.display.display import Display
from skitter.console.display.summary import SeedFate, Summary
from skitter.console.display.wording import counted
from skitter.console.run.pause import first_fault, wait_for_room
from skitter.console.run.rule_changes import tell_rule_changes
from skitter.console.run.seed_fates import seed_fates
from skitter.console.run.uploading import uploading
from skitter.console.run.wait_notes import WaitNotes, who_waits
from skitter.errors import DiskFull, SkitterError, UsageError
from skitter.extras import need
from skitter.fetch_stack import open_identities, raise_descriptor_limit
from skitter.folder import CrawlFolder
from skitter.frontier.base import Frontier, Stats
from skitter.frontier_log import check_log
from skitter.model import Discovered
from skitter.plan.estimate import time_left
from skitter.runtime.lifecycle import (
    admit_seeds,
    bring_back_private,
    check_settings,
    own_folder,
    require_browser,
    within_installed,
)
from skitter.runtime.listening import listen_for_operators
from skitter.runtime.pool import WorkerPool, open_pool
from skitter.runtime.stop_signals import on_stop_signal
from skitter.seeds import hosts_named
from skitter.service.headline_now import headline_now
from skitter.service.http.access import Access, check_listen
from skitter.service.metrics.freshness_readings import EstimateReadings
from skitter.settings import Settings
from skitter.settings.load import Loaded
from skitter.telemetry import Ended, Event, FrontierFigures, Metric, Phase, Snapshot, Telemetry
from skitter.wiring import CrawlServices

EXIT_CODES = {
    Ended.COMPLETE: 0,
    Ended.NO_SEED: 2,
    Ended.LIMIT: 0,
    Ended.WAITING: 3,
    Ended.INTERRUPTED: 130,
    Ended.STOPPED: 130,
}
_REFRESH = 0.25
_SHOWN = 3
_SENTENCES = 1.0
_LAST = 3


async def run_crawl(
    folder: CrawlFolder,
    loaded: Loaded,
    seeds: Sequence[Discovered],
    display: Display,
    dashboard: str = "",
    tokens: Access | None = None,
) -> Ended:
    """Until the crawl has ended; says how. `dashboard` is where the page is served meanwhile, if anywhere."""
    tokens = tokens or Access()
    if dashboard:
        need("numpy")
        check_listen(dashboard, tokens)
    settings = await check_settings(loaded.settings, seeds)
    require_browser(settings)
    if folder.is_new and not seeds:
        raise UsageError(f"{folder.path} holds no crawl yet: give at least one seed URL")
    check_log(folder, settings)
    try:
        resumed = not folder.is_new
        with own_folder(folder, settings):
            settings = within_installed(_within_descriptors(settings, display), display.note)
            _check_identities(settings, display)
            run = _Run(folder, settings, SystemClock(), display, list(seeds), resumed, dashboard, tokens)
            ended, last = await _crawl(run)
            summary = _summary(folder, ended, last, settings.archive.url)
            unseen = max(0, len(seeds) - len(run.seed_fates)) if run.seed_fates else 0
            display.close(replace(summary, seeds=run.seed_fates, more_seeds=unseen, next_up=run.next_up))
            return ended
    finally:
        display.close(None)


def _check_identities(settings: Settings, display: Display) -> None:
    """Whether all secrets are there, said before anything is asked; and what the operator should know of them."""
    if not settings.identities:
        return
    from skitter.identities.identity import warnings

    open_identities(settings)
    for name, told in settings.identities.items():
        for host in hosts_named(name):
            for warning in warnings(host, told):
                display.note(warning)


def _within_descriptors(settings: Settings, display: Display) -> Settings:
    able = raise_descriptor_limit(settings)
    if able is not settings:
        display.note(
            f"only {able.fetch.connections:,} connections instead of {settings.fetch.connections:,}: the limit of"
            " open files is too low; raise it (ulimit -Hn, LimitNOFILE) or set fetch.connections"
        )
    return able


async def _crawl(run: _Run) -> tuple[Ended, Snapshot]:
    """From open to close, again and again as long as the disk fills up."""
    while True:
        try:
            return await run.to_its_end()
        except Exception as error:
            fault = first_fault(error)
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
        dashboard: str,
        tokens: Access,
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._clock = clock
        self._display = display
        self._seeds = seeds
        self._resumed = resumed
        self._dashboard = dashboard
        self._tokens = tokens
        self._telemetry = Telemetry(clock.now(), settings.crawl.max_pages, settings.fetch.concurrency)
        self._figures = FrontierFigures()
        self._given = tuple(seeds)
        self.seed_fates: tuple[SeedFate, ...] = ()
        self.next_up: tuple[str, ...] = ()

    async def to_its_end(self) -> tuple[Ended, Snapshot]:
        async with open_pool(self._folder, self._settings, self._telemetry) as (crawl, pool):
            event = Event.CRAWL_RESUMED if self._resumed else Event.CRAWL_STARTED
            self._resumed = True
            path = str(self._folder.path)
            crawl.log.write(event, folder=path, seeds=len(self._seeds), version=__version__)
            _tell_given_back(crawl, self._display)
            tell_rule_changes(crawl, path, self._display)
            try:
                await bring_back_private(crawl, self._settings, self._display.note)
                await admit_seeds(crawl, self._seeds, self._display.note)
                self._seeds = []
                async with uploading(crawl, self._display) as rest:
                    async with self._listening(crawl, pool):
                        ended = await _run(crawl, pool, self._display)
                    ended = await rest(ended)
            finally:
                with contextlib.suppress(SkitterError):
                    self._figures = figures(await crawl.frontier.stats())
            last = await snapshot(crawl, pool, Phase.DONE)
            ended = await self._look_back(crawl.frontier, ended, last)
            crawl.log.write(Event.CRAWL_ENDED, how=ended, pages=last.pages, requests=last.requests)
            return ended, last

    async def _look_back(self, frontier: Frontier, ended: Ended, last: Snapshot) -> Ended:
        """What the summary says beside the figures: whether any seed was fetched, and who is waited for."""
        if ended not in (Ended.COMPLETE, Ended.WAITING):
            return ended
        self.seed_fates = await seed_fates(frontier, self._given, last.pages_in_all, last.at)
        self.next_up = tuple(who_waits(await frontier.upcoming(limit=_SHOWN)))
        return Ended.NO_SEED if self.seed_fates and ended is Ended.COMPLETE else ended

    def _listening(self, crawl: CrawlServices, pool: WorkerPool) -> AbstractAsyncContextManager[None]:
        return listen_for_operators(
            crawl, pool, self._folder, self._settings, self._dashboard, self._tokens, self._display.note
        )

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


def _tell_given_back(crawl: CrawlServices, display: Display) -> None:
    segments, fetches = crawl.given_back
    if segments:
        display.note(
            f"{counted(segments, 'segment')} of the archive are gone and were not stored yet: what the "
            f"{counted(fetches, 'request')} in them brought is fetched again"
        )
        crawl.log.write(Event.SEGMENTS_LOST, segments=segments, requests=fetches)


async def _run(services: CrawlServices, pool: WorkerPool, display: Display) -> Ended:
    """The work, with the display beside it and Ctrl-C understood: once drains, twice stops."""
    running = asyncio.create_task(pool.run())
    showing = asyncio.create_task(_show(services, pool, display))
    _on_interrupt(services, pool, running, display)
    try:
        ended = await running
        services.committer.complain_of_room()
        return ended
    except asyncio.CancelledError:
        return Ended.STOPPED
    finally:
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)


def _on_interrupt(
    services: CrawlServices, pool: WorkerPool, running: asyncio.Task[Ended], display: Display
) -> None:
    def interrupted(name: str) -> None:
        if pool.draining and not services.committer.is_short_of_room:
            display.note(f"{name} again: stopping at once; what was in flight will be fetched again")
            running.cancel()
            return
        display.note(f"{name}: finishing {pool.in_flight} requests in flight; press again to stop at once")
        services.log.write(Event.CRAWL_DRAINING, why=name)
        services.committer.drain()
        pool.drain()

    on_stop_signal(interrupted)


async def _show(services: CrawlServices, pool: WorkerPool, display: Display) -> None:
    waits = WaitNotes(services.frontier, display, services.log)
    told = Told()
    try:
        await _show_on(services, pool, display, waits, told)
    finally:
        await told.end()


async def _show_on(
    services: CrawlServices, pool: WorkerPool, display: Display, waits: WaitNotes, told: Told
) -> None:
    while True:
        phase = Phase.CRAWLING
        if pool.draining:
            phase = Phase.DRAINING
        elif services.committer.standing is Standing.PAUSED:
            phase = Phase.PAUSED
        elif pool.waiting_until is not None:
            phase = Phase.WAITING
            await waits.look(pool.waiting_until, services.clock.now())
        await told.refresh(services, pool)
        display.update(told.added_to(await snapshot(services, pool, phase)))
        services.log.flush()
        await asyncio.sleep(_REFRESH)


class Told:
    """The sentences of the display: made once a second, while figures change four times."""

    def __init__(self) -> None:
        self._headline = self._last_error = ""
        self._last: list[tuple[str, str]] = []
        self._estimate = EstimateReadings()
        self._made_at = float("-inf")

    async def refresh(self, services: CrawlServices, pool: WorkerPool) -> None:
        now, frontier, last = services.clock.now(), services.frontier, services.telemetry.last
        if 0 <= now - self._made_at < _SENTENCES:
            return
        self._made_at = now
        self._estimate.begin(frontier, now)
        pool.measure(services.telemetry)
        found = await headline_now(
            frontier, services.committer, services.telemetry, now, is_closing=pool.draining
        )
        self._headline = found.sentence
        fetches = [await shown(one, frontier) for one in last.newest(_LAST)]
        self._last = [(_became(one), one.url) for one in fetches]
        if last.failed is not None:
            failed = await shown(last.failed, frontier)
            self._last_error = f"{_became(failed)} {failed.url} {failed.detail}"

    def added_to(self, snapshot: Snapshot) -> Snapshot:
        left = time_left(self._estimate.last, snapshot.at - self._estimate.at)
        return replace(
            snapshot, headline=self._headline, last=self._last, last_error=self._last_error, left=left
        )

    async def end(self) -> None:
        await self._estimate.end()


def _became(fetch: FetchShown) -> str:
    return fetch.failure.replace("_", " ") or str(fetch.status)


async def snapshot(services: CrawlServices, pool: WorkerPool, phase: Phase) -> Snapshot:
    telemetry = services.telemetry
    pool.measure(telemetry)
    telemetry.gauge(Metric.LOG_DROPPED, services.log.dropped)
    telemetry.gauge(Metric.PARTS, services.archive.parts_written)
    if services.uploader is not None:
        telemetry.gauge(Metric.STORED_SEGMENTS, services.uploader.uploaded)
        telemetry.gauge(Metric.SPOOL, services.uploader.spooled())
    return telemetry.snapshot(services.clock.now(), figures(await services.frontier.stats()), phase)


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
        came_back=stats.came_back,
        verdicts=stats.verdicts,
        refusing=stats.refusing,
        unrendered=stats.renderings.failed if stats.renderings is not None else 0,
        over_defaults=stats.over_defaults,
        scored=stats.scored,
        on_topic=stats.on_topic,
        next_at=stats.next_at,
    )


def _resume(folder: CrawlFolder, ended: Ended, last: Snapshot) -> str:
    """The command that goes on. The folder keeps its page limit: without another one it would stop at once."""
    more = f" --max-pages {2 * last.max_pages}" if ended is Ended.LIMIT else ""
    return f"skitter crawl --into {shlex.quote(str(folder.path))}{more}"


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
            resume=_resume(folder, ended, last),
            url=url,
        )
    return Summary(ended=ended, last=last, folder=str(folder.path))
