"""`skitter serve --cluster`: a node of a cluster, until it is stopped or drained.

Its folder is its own: what lies there can be lost with the machine. What all nodes share is in the database:
settings, keys, who has which partition. A stop signal lets go of all partitions in order.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from skitter.clock import SystemClock
from skitter.committer.delivery_check import DeliveryCheck
from skitter.committer.lease_seals import LeaseSeals
from skitter.committer.worker_registry import WorkerRegistry
from skitter.errors import SkitterError, UsageError
from skitter.extras import need
from skitter.fetch_stack import GC_THRESHOLDS
from skitter.folder import CrawlFolder
from skitter.frontier.log.members import ClusterCrawl, Members
from skitter.frontier.log.owning import owner_of
from skitter.frontier.log.postgres import Link
from skitter.frontier_log import checkpoints_url
from skitter.log import Log
from skitter.model import Discovered, Verdict, VerdictKind
from skitter.runtime.cluster.node import Node, node_token
from skitter.runtime.lifecycle import check_settings, within_installed
from skitter.runtime.stop_signals import stop_event
from skitter.service.http.access import Access, Role, check_listen
from skitter.settings import Settings
from skitter.settings.load import dump_toml, load
from skitter.telemetry import Telemetry
from skitter.wiring import api_context_of_node, probe_objects, serve_http

_SEED_BATCH = 1_000
_EVERYWHERE = ("0.0.0.0", "::", "")


def join_or_make(database: str, given: Settings, parts: int) -> ClusterCrawl:
    """What all nodes share. The first node makes the cluster, with its own settings; the others take what is
    there."""
    link = Link(database, None)
    try:
        members = Members(link)
        if (crawl := members.crawl()) is not None:
            return crawl
        checkpoints_url(given)
        try:
            return members.begin(parts, dump_toml(given), is_unreplicated=given.frontier.log_unreplicated)
        except UsageError:
            # another node was quicker
            if (crawl := members.crawl()) is not None:
                return crawl
            raise
    finally:
        link.close()


async def run_node(
    folder: CrawlFolder,
    database: str,
    listen: str,
    advertise: str,
    tokens: Access,
    seeds: Sequence[Discovered],
    say: Callable[[str], None],
    note: Callable[[str], None],
    *,
    given: Settings,
    parts: int,
) -> int:
    """`given` are the settings of this command: those of the cluster, if it is made by it."""
    need("numpy")
    need("psycopg")
    check_listen(listen, tokens)
    if not advertise and listen.rpartition(":")[0].strip("[]") in _EVERYWHERE:
        raise UsageError(
            f"other nodes cannot reach {listen}: say where they can with --advertise http://HOST:PORT"
        )
    given = await check_settings(given, seeds)
    if given.crawl.render != "never":
        raise UsageError("a cluster renders no pages: leave crawl.render at never, or crawl with one server")
    crawl = await asyncio.to_thread(join_or_make, database, given, parts)
    folder.lock()
    try:
        folder.write_settings(crawl.settings)
        settings = load(crawl_file=folder.settings_file, environ={}).settings
        told = settings.frontier.log_unreplicated or given.frontier.log_unreplicated
        settings = replace(settings, frontier=replace(settings.frontier, log_unreplicated=told))
        await probe_objects(settings)
        settings = within_installed(settings, note)
        gc.set_threshold(*GC_THRESHOLDS)
        return await _run(folder, settings, crawl, database, listen, advertise, tokens, seeds, say, note)
    finally:
        folder.unlock()


async def _run(
    folder: CrawlFolder,
    settings: Settings,
    crawl: ClusterCrawl,
    database: str,
    listen: str,
    advertise: str,
    tokens: Access,
    seeds: Sequence[Discovered],
    say: Callable[[str], None],
    note: Callable[[str], None],
) -> int:
    clock, stopped = SystemClock(), stop_event()
    node = Node(folder, settings, crawl, database, owner_of(folder.path / "node"), "", note)
    await asyncio.to_thread(node.members.check, crawl, is_unreplicated=settings.frontier.log_unreplicated)
    node.telemetry = Telemetry(clock.now(), settings.crawl.max_pages)
    registry = WorkerRegistry(
        node.door, clock, DeliveryCheck(settings), seals=LeaseSeals(crawl.key), places=node.url_by_part
    )
    log = Log(folder.log, clock, echo=settings.log.json)
    context = api_context_of_node(
        node,
        node.router,
        node.door,
        folder,
        settings,
        node.telemetry,
        clock,
        registry,
        crawl.key,
        node.broadcast,
    )
    node.attend(context.watch)
    among = tokens if tokens.is_open else tokens.with_token(Role.OPERATOR, node_token(crawl.key), "node")
    try:
        async with serve_http(context, listen, among) as where:
            node.url = advertise or where
            running = asyncio.create_task(node.run(stopped))
            say(where)
            seeding = asyncio.create_task(_admit(node, seeds, note))
            try:
                await running
            finally:
                seeding.cancel()
                await asyncio.gather(seeding, return_exceptions=True)
    finally:
        log.close()
    return 0


async def _admit(node: Node, seeds: Sequence[Discovered], note: Callable[[str], None]) -> None:
    """Seeds go to the partitions that have them, wherever these are."""
    for start in range(0, len(seeds), _SEED_BATCH):
        batch = seeds[start : start + _SEED_BATCH]
        verdicts = await _admitted(node, batch, note)
        for seed, verdict in zip(batch, verdicts, strict=True):
            if verdict.kind is VerdictKind.REFUSED:
                note(f"seed refused: {seed.url} ({verdict.reason}: {verdict.rule})")
    if seeds:
        note(f"{len(seeds):,} seeds are in")


async def _admitted(node: Node, batch: Sequence[Discovered], note: Callable[[str], None]) -> list[Verdict]:
    """Until all their partitions have an owner."""
    while True:
        try:
            return await node.router.admit(batch)
        except SkitterError as error:
            note(f"seeds wait: {error}")
            await asyncio.sleep(1.0)
