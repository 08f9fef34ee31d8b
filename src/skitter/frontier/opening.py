"""Opens the frontier of a crawl: the engine's rules over tables in RocksDB.

The only place that joins the engine and a store. Another store is another function here.
"""

from __future__ import annotations

from pathlib import Path

from skitter.clock import Clock
from skitter.frontier.blocklists import Blocklists
from skitter.frontier.engine.frontier import EngineFrontier, Tell
from skitter.frontier.stores.base import Store
from skitter.frontier.stores.rocks import RocksStore
from skitter.frontier.tables.memory_plan import MemoryPlan
from skitter.frontier.tables.row_cache import RowCache
from skitter.schedule.priority import Prioritizer
from skitter.settings import Settings
from skitter.urls.keys import Keys


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
) -> EngineFrontier:
    """The frontier on any store. `folder` is for the filters that a clean close keeps. It owns the store from
    now on: closing the frontier closes it."""
    memory = MemoryPlan.of(settings.frontier)
    cache = RowCache(store, folder, settings, memory, clock.now(), keys, blocklists)
    return EngineFrontier(cache, settings, clock, prioritizer, tell)
