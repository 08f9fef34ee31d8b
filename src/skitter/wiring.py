"""From settings to objects: the only module that picks implementations.

A `Crawl` is everything one process needs to crawl in a folder, opened in the order in which the parts depend on
each other (lock, frontier, archive recovered to the frontier's marks, fetcher) and closed in reverse.
"""

from __future__ import annotations

import contextlib
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import msgspec

from skitter import __version__
from skitter.archive.objects import Objects
from skitter.archive.store import Archive
from skitter.clock import Clock, SystemClock
from skitter.desk.desk import Desk
from skitter.desk.report import Report
from skitter.desk.upload import Uploader, give_back_lost
from skitter.fetch.curl import Fetcher, user_agent
from skitter.fetch.guard import AddressGuard
from skitter.fetch.resolver import Resolver
from skitter.folder import CrawlFolder
from skitter.frontier.base import Frontier
from skitter.frontier.blocklists import Blocklists
from skitter.frontier.rocks.frontier import RocksFrontier
from skitter.log import Log
from skitter.model import HostPolicy
from skitter.seeds import hosts_named
from skitter.settings import Settings
from skitter.telemetry import Event, Telemetry
from skitter.urls.keys import Keys
from skitter.worker.loop import Loop
from skitter.worker.pdf import PdfReader
from skitter.worker.step import Step

# 512 files of RocksDB at most; segments, the log, DNS, standard streams.
_OTHER_DESCRIPTORS = 640


class Crawl(msgspec.Struct, frozen=True, kw_only=True):
    clock: Clock
    frontier: Frontier
    archive: Archive
    desk: Desk
    fetcher: Fetcher
    resolver: Resolver
    loop: Loop
    telemetry: Telemetry
    log: Log
    uploader: Uploader | None = None
    given_back: tuple[int, int] = (0, 0)
    """Segments that were gone before they were stored, and how many fetches went back with them."""


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
async def open_crawl(
    folder: CrawlFolder, settings: Settings, telemetry: Telemetry | None = None
) -> AsyncIterator[Crawl]:
    """The folder's lock must be held. What an interrupted run left over is cut off the archive here."""
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
        objects = Objects(settings.archive.url) if settings.archive.url else None
        given_back = await give_back_lost(folder.archive, objects, frontier) if objects else (0, 0)
        archive = Archive.open(
            folder.archive, settings.archive, clock, await frontier.marks(), _about(settings)
        )
        closing.push_async_callback(close_archive, archive, frontier)
        uploader = Uploader(objects, archive, frontier, settings.archive) if objects else None
        resolver = Resolver(settings.fetch, clock)
        closing.push_async_callback(resolver.close)
        guard = AddressGuard(
            allow_private=settings.fetch.allow_private, allow_public=bool(settings.identity.contact)
        )
        fetcher = Fetcher(settings.fetch, settings.identity, resolver, guard, clock)
        closing.push_async_callback(fetcher.close)
        telemetry = telemetry or Telemetry(clock.now(), settings.crawl.max_pages)
        desk = Desk(frontier, archive, clock, settings, Report(telemetry, log), uploader)
        closing.push_async_callback(desk.rest)
        pdfs = PdfReader(settings.fetch)
        closing.push_async_callback(pdfs.close)
        step = Step(fetcher, clock, settings, pdfs, keys)
        yield Crawl(
            clock=clock,
            frontier=frontier,
            archive=archive,
            fetcher=fetcher,
            resolver=resolver,
            desk=desk,
            loop=Loop(desk, step, clock, settings),
            telemetry=telemetry,
            log=log,
            uploader=uploader,
            given_back=given_back,
        )


async def probe_objects(settings: Settings) -> None:
    """Whether the archive can go where it is to go; said before anything is asked of the web."""
    if settings.archive.url:
        await Objects(settings.archive.url).probe()


async def close_archive(archive: Archive, frontier: Frontier) -> None:
    """A segment is given its final name only for commits that survive a power loss."""
    durable = False
    try:
        await frontier.sync()
        durable = True
    finally:
        archive.close(durable=durable)


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


def raise_descriptor_limit(settings: Settings) -> Settings:
    """A connection is a descriptor; the usual soft limit of 1,024 would end a broad crawl. Where the hard limit
    is too low as well, the settings come back with fewer connections: hosts must not be blamed for our lack."""
    wanted = settings.fetch.connections + _OTHER_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = hard if hard != resource.RLIM_INFINITY else wanted
    with contextlib.suppress(OSError, ValueError):
        if soft < limit:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            soft = limit
    room = max(16, soft - _OTHER_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or settings.fetch.connections <= room:
        return settings
    fetch = msgspec.structs.replace(settings.fetch, connections=room)
    return msgspec.structs.replace(settings, fetch=fetch)
