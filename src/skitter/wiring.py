"""From settings to objects: with `fetch_stack.py` the only module that picks implementations.

`CrawlServices` keep a crawl, a `FetchStack` fetches; a `Crawl` is both in one process. Parts are opened in the
order in which they depend on each other (lock, frontier, archive recovered to the frontier's marks, fetcher) and
closed in reverse, the archive and the frontier at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from skitter import __version__
from skitter.archive.schema import ITEMS, Table
from skitter.archive.store import Archive
from skitter.clock import Clock, SystemClock
from skitter.committer.committer import Committer
from skitter.committer.delivery_check import DeliveryCheck
from skitter.committer.door import CommitterDoor
from skitter.committer.local_work_source import LocalWorkSource
from skitter.committer.report import Report
from skitter.committer.upload import Uploader, discard_unknown, give_back_lost, sweep_lost
from skitter.committer.work_source import COMMITTED_AT_ONCE
from skitter.committer.worker_registry import WorkerRegistry
from skitter.committer.worker_rpc import WorkerRpc
from skitter.committer.worker_server import serve_on_unix_socket
from skitter.fetch.curl import user_agent
from skitter.fetch_stack import FetchStack, open_fetch_stack
from skitter.folder import CrawlFolder
from skitter.frontier.base import Frontier, RuleChanges
from skitter.frontier.blocklists import Blocklists
from skitter.frontier.cluster.base import ClusterHere
from skitter.frontier.engine.frontier import EngineFrontier
from skitter.frontier.opening import PartOpening, open_logged_frontier, open_rocks_frontier
from skitter.frontier_log import checkpoints_url, end_task, objects_at, open_logged
from skitter.log import Log
from skitter.model import HostPolicy
from skitter.seeds import hosts_named
from skitter.service.api_context import ApiContext
from skitter.service.http.access import Access
from skitter.service.steering.settings import Take
from skitter.service.tickets import Seal, service_key
from skitter.settings import Settings
from skitter.telemetry import Event, Metric, Telemetry
from skitter.urls.keys import Keys
from skitter.worker.loop import Loop

if TYPE_CHECKING:
    from skitter.frontier.log.checkpoints import Checkpoints


_COPIES_AT_ONCE = 1_000


class CrawlServices(msgspec.Struct, frozen=True, kw_only=True):
    """All that one process needs to keep a crawl: the committer and what it stands on."""

    clock: Clock
    frontier: Frontier
    archive: Archive
    committer: Committer
    telemetry: Telemetry
    log: Log
    uploader: Uploader | None = None
    checkpoints: Checkpoints | None = None
    """Where the frontier has a log elsewhere."""
    given_back: tuple[int, int] = (0, 0)
    """Segments that were gone before they were stored, and how many fetches went back with them."""
    rule_changes: RuleChanges = RuleChanges()

    def change_settings(self, settings: Settings) -> None:
        """Those that the frontier, the committer and the figures can take over while they run."""
        self.frontier.change_settings(settings)
        self.committer.change_settings(settings)
        self.telemetry.max_pages = settings.crawl.max_pages


class Crawl(CrawlServices, frozen=True, kw_only=True):
    """Services with a worker in them."""

    stack: FetchStack
    loop: Loop


@asynccontextmanager
async def open_frontier(
    folder: CrawlFolder, settings: Settings, *, read_only: bool
) -> AsyncIterator[EngineFrontier]:
    """Read-only looks on while another process may crawl; otherwise the folder must be ours."""
    if not read_only:
        folder.lock()
    try:
        clock = SystemClock()
        if settings.frontier.log and not read_only:
            fetch = objects_at(checkpoints_url(settings)).fetch
            frontier, _ = open_logged_frontier(folder.frontier, settings, clock, fetch=fetch)
        else:
            frontier = open_rocks_frontier(folder.frontier, settings, clock, read_only=read_only)
        try:
            yield frontier
        finally:
            await frontier.close()
    finally:
        folder.unlock()


@asynccontextmanager
async def open_services(
    folder: CrawlFolder,
    settings: Settings,
    telemetry: Telemetry | None = None,
    part: PartOpening | None = None,
) -> AsyncIterator[CrawlServices]:
    """The folder's lock must be held. What an interrupted run left over is cut off the archive here. With `part`
    they are those of one partition of a cluster."""
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as closing:
        log = Log(folder.log, clock, echo=settings.log.json)
        closing.callback(log.close)
        keys = Keys(settings.keys)
        tell = partial(_tell_of_list, log)
        blocklists = Blocklists(settings.crawl.blocklists, tell)
        checkpoints: Checkpoints | None = None
        tell_of_return = partial(_tell_of_return, log)
        if settings.frontier.log or part is not None:
            frontier, checkpoints = await open_logged(
                folder, settings, clock, log, keys=keys, blocklists=blocklists, tell=tell_of_return, part=part
            )
        else:
            frontier = open_rocks_frontier(
                folder.frontier, settings, clock, keys=keys, blocklists=blocklists, tell=tell_of_return
            )
        closing.push_async_callback(frontier.close)
        folder.note_format()
        for name, policy in settings.hosts.items():
            await _set_policies(frontier, name, policy, part)
        objects = objects_at(settings.archive.url) if settings.archive.url else None
        given_back = await give_back_lost(folder.archive, objects, frontier) if objects else (0, 0)
        if checkpoints is not None:
            discard_unknown(folder.archive, await frontier.marks())
        archive = Archive.open(
            folder.archive,
            settings.archive,
            clock,
            await frontier.marks(),
            _about(settings),
            added=(ITEMS,) if settings.plugins.with_ or settings.extract else (),
        )
        closing.push_async_callback(close_both, archive, frontier)
        await _remember_other_archives(folder, settings, frontier)
        uploader = Uploader(objects, archive, frontier, settings.archive) if objects else None
        telemetry = telemetry or Telemetry(clock.now(), settings.crawl.max_pages)
        committer = Committer(frontier, archive, clock, settings, Report(telemetry, log), uploader)
        closing.push_async_callback(committer.rest)
        if checkpoints is not None and objects is not None:
            taking = asyncio.create_task(checkpoints.run(partial(sweep_lost, objects, frontier)))
            taking.add_done_callback(committer.note_fault)
            closing.push_async_callback(end_task, taking)
        yield CrawlServices(
            clock=clock,
            frontier=frontier,
            archive=archive,
            committer=committer,
            telemetry=telemetry,
            log=log,
            uploader=uploader,
            checkpoints=checkpoints,
            given_back=given_back,
            rule_changes=frontier.rule_changes,
        )


@asynccontextmanager
async def open_crawl(
    folder: CrawlFolder, settings: Settings, telemetry: Telemetry | None = None
) -> AsyncIterator[Crawl]:
    """The services and one worker, all in this process."""
    async with (
        open_services(folder, settings, telemetry) as services,
        open_fetch_stack(settings, services.clock) as stack,
    ):
        yield Crawl(
            **msgspec.structs.asdict(services),
            stack=stack,
            loop=Loop(
                services.committer, stack.step, services.clock, settings, horizon=services.committer.horizon
            ),
        )


def api_context(
    services: CrawlServices,
    folder: CrawlFolder,
    settings: Settings,
    *,
    registry: WorkerRegistry | None = None,
    takers: Callable[[], Mapping[str, Take]] = dict,
    measure: Callable[[], None] | None = None,
) -> ApiContext:
    """The services as the API sees them. `takers` are of the workers in this process; `registry` has those that
    join from elsewhere."""
    own: dict[str, Take] = {
        "crawl.max_pages": services.change_settings,
        "politeness.delay": services.change_settings,
        "archive.min_free": services.change_settings,
    }

    if registry is not None:
        own["fetch.concurrency"] = _told_with_every_response

    def measure_joined() -> None:
        services.telemetry.gauge(Metric.IN_FLIGHT, registry.in_flight if registry is not None else 0)

    return ApiContext(
        frontier=services.frontier,
        settings=settings,
        folder=folder,
        telemetry=services.telemetry,
        clock=services.clock,
        seal=Seal(service_key(folder.path)),
        committer=services.committer,
        registry=registry,
        takers=lambda: {**own, **takers()},
        measure=measure or measure_joined,
    )


def api_context_of_node(
    node: ClusterHere,
    frontier: Frontier,
    committer: CommitterDoor,
    folder: CrawlFolder,
    settings: Settings,
    telemetry: Telemetry,
    clock: Clock,
    registry: WorkerRegistry,
    key: bytes,
    take: Take,
) -> ApiContext:
    """A node as the API sees it: all partitions are one frontier. `take` is told of settings that change, here or
    at another node."""
    changing = ("crawl.max_pages", "politeness.delay", "archive.min_free", "fetch.concurrency")

    def measure() -> None:
        telemetry.gauge(Metric.IN_FLIGHT, registry.in_flight)

    return ApiContext(
        frontier=frontier,
        settings=settings,
        folder=folder,
        telemetry=telemetry,
        clock=clock,
        seal=Seal(key),
        committer=committer,
        registry=registry,
        takers=lambda: dict.fromkeys(changing, take),
        measure=measure,
        cluster=node,
    )


@asynccontextmanager
async def serve_http(
    context: ApiContext, listen: str, tokens: Access, *, with_workers: bool = True
) -> AsyncIterator[str]:
    """The API and the dashboard behind HTTP, for operators and, `with_workers`, for workers in other processes;
    yields where."""
    # here: it brings the web's frameworks along, 0.2 s, and a crawl in one process serves nobody
    from skitter.service.http.route_table import OPERATORS_ROUTES, ROUTES
    from skitter.service.http.server import serving

    async with serving(context, listen, tokens, ROUTES if with_workers else OPERATORS_ROUTES) as where:
        yield where


@asynccontextmanager
async def serve_workers(
    services: CrawlServices, settings: Settings, place: Path
) -> AsyncIterator[tuple[WorkerRegistry, WorkerRpc]]:
    """The services behind a unix socket, for workers that this process starts, and that end when it does."""
    check = DeliveryCheck(settings, are_children=True)
    registry = WorkerRegistry(services.committer, services.clock, check, are_children=True)
    # its few workers hold hosts enough to wait for so many pages, in half as many commits
    rpc = WorkerRpc(registry, settings, services.clock, at_once=COMMITTED_AT_ONCE)
    async with serve_on_unix_socket(rpc, place):
        yield registry, rpc


def _told_with_every_response(settings: Settings) -> None:
    """Workers that joined hear of it when they next ask: their responses are made by the settings in force."""


def loop_beside_others(
    services: CrawlServices, rpc: WorkerRpc, stack: FetchStack, settings: Settings
) -> Loop:
    """A worker in the services's own process, beside those that it leads: over when it is drained."""
    context = LocalWorkSource(services.committer, rpc, services.clock)
    loop = Loop(context, stack.step, services.clock, settings)
    context.in_flight, context.held = lambda: stack.fetcher.in_flight, lambda: loop.held
    return loop


async def probe_objects(settings: Settings) -> None:
    """Whether the archive can go where it is to go; said before anything is asked of the web."""
    if settings.archive.url:
        await objects_at(settings.archive.url).probe()


async def archive_of(
    folder: CrawlFolder, settings: Settings, frontier: Frontier, clock: Clock, added: Sequence[Table] = ()
) -> Archive:
    """The archive of a crawl that nobody crawls now, recovered to what is committed."""
    return Archive.open(
        folder.archive, settings.archive, clock, await frontier.marks(), _about(settings), added=added
    )


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


async def _remember_other_archives(folder: CrawlFolder, settings: Settings, frontier: EngineFrontier) -> None:
    """What `archive.dedup_against` names, once each. Noted only when it is on the disk: to read one again is
    harmless."""
    note = folder.path / "dedup.txt"
    done = set(note.read_text().splitlines()) if note.is_file() else set()
    for place in settings.archive.dedup_against:
        if place in done:
            continue
        from skitter.collection.known_bodies import known_bodies  # a plain crawl reads no archive

        bodies = known_bodies(place)
        while batch := list(islice(bodies, _COPIES_AT_ONCE)):
            await frontier.remember_copies(batch)
        await frontier.sync()
        with note.open("a") as file:
            file.write(f"{place}\n")


def _tell_of_return(log: Log, came_back: Mapping[str, int]) -> None:
    for reason, urls in came_back.items():
        log.write(Event.URLS_CAME_BACK, reason=reason, urls=urls)


def _tell_of_list(log: Log, why: str) -> None:
    log.write(Event.BLOCKLIST_KEPT, why=why)


async def _set_policies(frontier: Frontier, name: str, policy: HostPolicy, part: PartOpening | None) -> None:
    for host in hosts_named(name):
        if part is None or part.partition.has(host):
            await frontier.set_policy(host, policy)


def _about(settings: Settings) -> dict[str, str]:
    about = {
        "software": f"skitter/{__version__}",
        "http-header-user-agent": user_agent(settings.identity),
    }
    if settings.identity.contact:
        about["operator"] = settings.identity.contact
    told = settings.about
    # By the names of Dublin Core, as WARC 1.1 (6.2) asks for.
    about |= {
        "title": told.title,
        "description": told.description,
        "publisher": told.publisher,
        "isPartOf": told.is_part_of,
    }
    return about
