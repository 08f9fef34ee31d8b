"""Opens the frontier of a crawl: the engine's rules over tables in RocksDB, with or without a log elsewhere.

The only place that joins the engine and a store. Another store is another function here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skitter.clock import Clock
from skitter.extras import need
from skitter.frontier.blocklists import Blocklists
from skitter.frontier.engine.frontier import EngineFrontier as EngineFrontier
from skitter.frontier.engine.frontier import Tell as Tell
from skitter.frontier.stores.base import Store
from skitter.frontier.stores.rocks import RocksStore, SharedMemory
from skitter.frontier.tables.memory_plan import MemoryPlan
from skitter.frontier.tables.row_cache import RowCache
from skitter.schedule.priority import Prioritizer
from skitter.settings import FrontierSettings, Settings
from skitter.urls.keys import Keys
from skitter.urls.partitions import Partition

if TYPE_CHECKING:
    from skitter.frontier.log.base import Log, Owner
    from skitter.frontier.log.owning import Beat, Fetch
    from skitter.frontier.log.standby import Standby
    from skitter.frontier.stores.logged import LoggedStore


@dataclass(frozen=True, kw_only=True)
class PartOpening:
    """How one partition of a cluster is opened: by whom, with which log, in which memory."""

    partition: Partition
    log: Log
    owner: Owner
    beat: Beat
    shared: SharedMemory


def open_rocks_frontier(
    folder: Path,
    settings: Settings,
    clock: Clock,
    *,
    read_only: bool = False,
    prioritizer: Prioritizer | None = None,
    keys: Keys | None = None,
    blocklists: Blocklists | None = None,
    tell: Tell | None = None,
) -> EngineFrontier:
    """`read_only` follows a crawl that another process may be writing, as of now."""
    store = RocksStore(folder, MemoryPlan.of(settings.frontier), read_only=read_only)
    return open_on(
        store, folder, settings, clock, prioritizer=prioritizer, keys=keys, blocklists=blocklists, tell=tell
    )


def open_logged_frontier(
    folder: Path,
    settings: Settings,
    clock: Clock,
    *,
    fetch: Fetch | None = None,
    keys: Keys | None = None,
    blocklists: Blocklists | None = None,
    tell: Tell | None = None,
    tell_of_log: Callable[[str], None] | None = None,
) -> tuple[EngineFrontier, LoggedStore]:
    """Tables in RocksDB, and every commit in the log of `frontier.log` first. `fetch` brings files of
    checkpoints; `tell_of_log` is told when the log is away."""
    from skitter.frontier.log.owning import own  # other crawls need not load it

    log = log_of(settings.frontier, tell_of_log)
    memory = MemoryPlan.of(settings.frontier)
    folder.parent.mkdir(parents=True, exist_ok=True)
    store = own(folder, lambda: RocksStore(folder, memory), log, settings.frontier.log_lapse, fetch)
    try:
        frontier = open_on(store, folder, settings, clock, keys=keys, blocklists=blocklists, tell=tell)
    except BaseException:
        store.close()
        raise
    return frontier, store


def open_part(
    folder: Path,
    settings: Settings,
    clock: Clock,
    opening: PartOpening,
    *,
    fetch: Fetch,
    keys: Keys | None = None,
    blocklists: Blocklists | None = None,
    tell: Tell | None = None,
) -> tuple[EngineFrontier, LoggedStore]:
    """One partition of a cluster, as its owner from now on."""
    from skitter.frontier.log.owning import own

    memory = MemoryPlan.of(settings.frontier)
    folder.parent.mkdir(parents=True, exist_ok=True)
    store = own(
        folder,
        lambda: RocksStore(folder, memory, shared=opening.shared),
        opening.log,
        settings.frontier.log_lapse,
        fetch,
        owner=opening.owner,
        beat=opening.beat,
    )
    try:
        frontier = open_on(
            store,
            folder,
            settings,
            clock,
            keys=keys,
            blocklists=blocklists,
            tell=tell,
            partition=opening.partition,
        )
    except BaseException:
        store.close()
        raise
    return frontier, store


def shared_memory(settings: FrontierSettings) -> SharedMemory:
    """For all partitions of a node."""
    return SharedMemory(MemoryPlan.of(settings))


def log_of(settings: FrontierSettings, tell: Callable[[str], None] | None = None) -> Log:
    need("psycopg")
    from skitter.frontier.log.postgres import PostgresLog  # an extra that other crawls do not need

    return PostgresLog(
        settings.log, lapse=settings.log_lapse, is_unreplicated=settings.log_unreplicated, tell=tell
    )


def standby_in(folder: Path, settings: FrontierSettings, log: Log, fetch: Fetch) -> Standby:
    """What follows this log in a folder of its own, and opens no frontier."""
    from skitter.frontier.log.standby import Standby

    memory = MemoryPlan.of(settings)
    return Standby(folder, lambda: RocksStore(folder, memory), log, fetch)


def open_on(
    store: Store,
    folder: Path,
    settings: Settings,
    clock: Clock,
    *,
    prioritizer: Prioritizer | None = None,
    keys: Keys | None = None,
    blocklists: Blocklists | None = None,
    tell: Tell | None = None,
    partition: Partition | None = None,
) -> EngineFrontier:
    """The frontier on any store. `folder` is for the filters that a clean close keeps. It owns the store from
    now on: closing the frontier closes it. As a `partition` it keeps its own hosts, and posts what belongs to
    others."""
    memory = MemoryPlan.of(settings.frontier)
    cache = RowCache(store, folder, settings, memory, clock.now(), keys, blocklists, partition)
    return EngineFrontier(cache, settings, clock, prioritizer, tell)
