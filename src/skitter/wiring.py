"""From settings to objects: with `hands.py` the only module that picks implementations.

An `Office` keeps a crawl, `Hands` fetch; a `Crawl` is both in one process. Parts are opened in the order in which
they depend on each other (lock, frontier, archive recovered to the frontier's marks, fetcher) and closed in
reverse, the archive and the frontier at the same time.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from skitter import __version__
from skitter.archive.store import Archive
from skitter.clock import Clock, SystemClock
from skitter.desk.brain import COMMITTED_AT_ONCE
from skitter.desk.crew import Crew
from skitter.desk.desk import Desk
from skitter.desk.foreman import Foreman
from skitter.desk.frames import listening
from skitter.desk.reception import Reception
from skitter.desk.report import Report
from skitter.desk.upload import Uploader, give_back_lost
from skitter.fetch.curl import user_agent
from skitter.folder import CrawlFolder
from skitter.frontier.base import Frontier
from skitter.frontier.blocklists import Blocklists
from skitter.frontier.rocks.frontier import RocksFrontier
from skitter.hands import Hands, open_hands
from skitter.log import Log
from skitter.model import HostPolicy
from skitter.seeds import hosts_named
from skitter.service.access import Access
from skitter.service.brain import Brain
from skitter.service.tickets import seal_of
from skitter.settings import Settings
from skitter.telemetry import Event, Metric, Telemetry
from skitter.urls.keys import Keys
from skitter.worker.loop import Loop

if TYPE_CHECKING:
    from skitter.archive.objects import Objects


class Office(msgspec.Struct, frozen=True, kw_only=True):
    """All that one process needs to keep a crawl: the desk and what it stands on."""

    clock: Clock
    frontier: Frontier
    archive: Archive
    desk: Desk
    telemetry: Telemetry
    log: Log
    uploader: Uploader | None = None
    given_back: tuple[int, int] = (0, 0)
    """Segments that were gone before they were stored, and how many fetches went back with them."""


class Crawl(Office, frozen=True, kw_only=True):
    """An office with a worker in it."""

    hands: Hands
    loop: Loop


@asynccontextmanager
async def open_frontier(
    folder: CrawlFolder, settings: Settings, *, read_only: bool
) -> AsyncIterator[RocksFrontier]:
    """Read-only looks on while another process may crawl; otherwise the folder must be ours."""
    if not read_only:
        folder.lock()
    try:
        frontier = RocksFrontier(folder.frontier, settings, SystemClock(), read_only=read_only)
        try:
            yield frontier
        finally:
            await frontier.close()
    finally:
        folder.unlock()


@asynccontextmanager
async def open_office(
    folder: CrawlFolder, settings: Settings, telemetry: Telemetry | None = None, *, apart: bool = False
) -> AsyncIterator[Office]:
    """The folder's lock must be held. What an interrupted run left over is cut off the archive here. `apart` is
    for an office that serves workers elsewhere: its tables are written by a child process."""
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as closing:
        log = Log(folder.log, clock, echo=settings.log.json)
        closing.callback(log.close)
        keys = Keys(settings.keys)
        tell = partial(_tell_of_list, log)
        blocklists = Blocklists(settings.crawl.blocklists, tell)
        frontier = RocksFrontier(folder.frontier, settings, clock, keys=keys, blocklists=blocklists)
        closing.push_async_callback(frontier.close)
        for name, policy in settings.hosts.items():
            await _set_policies(frontier, name, policy)
        objects = _objects(settings.archive.url) if settings.archive.url else None
        given_back = await give_back_lost(folder.archive, objects, frontier) if objects else (0, 0)
        archive = Archive.open(
            folder.archive, settings.archive, clock, await frontier.marks(), _about(settings), apart=apart
        )
        closing.push_async_callback(close_both, archive, frontier)
        uploader = Uploader(objects, archive, frontier, settings.archive) if objects else None
        telemetry = telemetry or Telemetry(clock.now(), settings.crawl.max_pages)
        desk = Desk(frontier, archive, clock, settings, Report(telemetry, log), uploader)
        closing.push_async_callback(desk.rest)
        yield Office(
            clock=clock,
            frontier=frontier,
            archive=archive,
            desk=desk,
            telemetry=telemetry,
            log=log,
            uploader=uploader,
            given_back=given_back,
        )


@asynccontextmanager
async def open_crawl(
    folder: CrawlFolder, settings: Settings, telemetry: Telemetry | None = None
) -> AsyncIterator[Crawl]:
    """An office and one worker in this process."""
    async with (
        open_office(folder, settings, telemetry) as office,
        open_hands(settings, office.clock) as hands,
    ):
        yield Crawl(
            **msgspec.structs.asdict(office),
            hands=hands,
            loop=Loop(office.desk, hands.step, office.clock, settings, horizon=office.desk.horizon),
        )


@asynccontextmanager
async def serving_office(
    office: Office,
    folder: CrawlFolder,
    settings: Settings,
    listen: str,
    tokens: Access,
) -> AsyncIterator[tuple[str, Crew]]:
    """The office behind HTTP, for workers in other processes and for operators; yields where, and who works."""
    # here: it brings the web's frameworks along, 0.2 s, and a crawl in one process serves nobody
    from skitter.service.serve import serving

    crew = Crew(office.desk, office.clock)
    brain = Brain(
        frontier=office.frontier,
        settings=settings,
        folder=folder,
        telemetry=office.telemetry,
        clock=office.clock,
        seal=seal_of(folder.path),
        desk=office.desk,
        crew=crew,
        measure=lambda: office.telemetry.gauge(Metric.IN_FLIGHT, crew.in_flight),
    )
    async with serving(brain, listen, tokens) as where:
        yield where, crew


@asynccontextmanager
async def leading_office(
    office: Office, settings: Settings, place: Path
) -> AsyncIterator[tuple[Crew, Reception]]:
    """The office behind a unix socket, for workers that this process starts, and that end when it does."""
    crew = Crew(office.desk, office.clock, leashed=True)
    # its few workers hold hosts enough to wait for so many pages, in half as many commits
    reception = Reception(crew, settings, office.clock, at_once=COMMITTED_AT_ONCE)
    async with listening(reception, place):
        yield crew, reception


def loop_among_others(office: Office, reception: Reception, hands: Hands, settings: Settings) -> Loop:
    """A worker in the office's own process, beside those that it leads: over when it is drained."""
    brain = Foreman(office.desk, reception, office.clock)
    loop = Loop(brain, hands.step, office.clock, settings)
    brain.in_flight, brain.held = lambda: hands.fetcher.in_flight, lambda: loop.held
    return loop


async def probe_objects(settings: Settings) -> None:
    """Whether the archive can go where it is to go; said before anything is asked of the web."""
    if settings.archive.url:
        await _objects(settings.archive.url).probe()


def _objects(url: str) -> Objects:
    from skitter.archive.objects import Objects  # 20 ms that a crawl without an object store need not pay

    return Objects(url)


async def close_archive(archive: Archive, frontier: Frontier) -> None:
    """A segment is given its final name only for commits that survive a power loss."""
    durable = False
    try:
        await frontier.sync()
        durable = True
    finally:
        archive.close(durable=durable)


async def close_both(archive: Archive, frontier: Frontier) -> None:
    """At the same time, once the last commits are on the disk: to finish a segment and to write what the frontier
    has in memory takes 0.2 s each, and neither needs the other."""
    with ThreadPoolExecutor(1, thread_name_prefix="closing") as beside:
        durable = False
        try:
            await frontier.sync()
            durable = True
        finally:
            finishing = beside.submit(archive.close, durable=durable)
            try:
                await frontier.close()
            finally:
                finishing.result()


def _tell_of_list(log: Log, why: str) -> None:
    log.write(Event.BLOCKLIST_KEPT, why=why)


async def _set_policies(frontier: Frontier, name: str, policy: HostPolicy) -> None:
    for host in hosts_named(name):
        await frontier.set_policy(host, policy)


def _about(settings: Settings) -> dict[str, str]:
    about = {
        "software": f"skitter/{__version__}",
        "http-header-user-agent": user_agent(settings.identity),
    }
    if settings.identity.contact:
        about["operator"] = settings.identity.contact
    return about
