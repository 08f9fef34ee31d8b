"""Frontier and archive are closed at the same time: each to its end, whatever becomes of the other."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from skitter.errors import DiskFull, StoreFailed
from skitter.folder import CrawlFolder
from skitter.frontier.engine.frontier import EngineFrontier
from skitter.frontier.stores.rocks import RocksChanges, RocksStore
from skitter.frontier.tables.memory_plan import MemoryPlan
from skitter.settings import FrontierSettings, Settings
from skitter.wiring import CrawlServices, open_services
from tests.frontier_kit import seed

URL = "http://a.test/"


async def _opened_and_closed(folder: Path, fail: str = "") -> None:
    async with open_services(CrawlFolder(folder), Settings()) as services:
        await services.frontier.admit([seed(URL)])
        _spoil(services, fail)


def _spoil(services: CrawlServices, what: str) -> None:
    if what == "archive":
        whole = services.archive.close

        def close(*, durable: bool) -> None:
            whole(durable=durable)
            raise DiskFull("no room")

        services.archive.close = close  # type: ignore[method-assign,assignment]
    elif what == "frontier":
        frontier = services.frontier
        assert isinstance(frontier, EngineFrontier)
        store = frontier._cache.store
        whole_store = store.close

        def close_store() -> None:
            whole_store()
            raise StoreFailed("torn")

        store.close = close_store  # type: ignore[method-assign]
    elif what == "sync":

        async def sync() -> None:
            raise StoreFailed("not synced")

        services.frontier.sync = sync  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("fail", "fault"), [("archive", DiskFull), ("frontier", StoreFailed), ("sync", StoreFailed)]
)
def test_what_fails_while_one_is_closed_is_told_and_the_other_is_closed(
    tmp_path: Path, fail: str, fault: type[Exception]
) -> None:
    with pytest.raises(fault):
        asyncio.run(_opened_and_closed(tmp_path, fail))
    # both locks are free, and nothing is lost
    asyncio.run(_known_again(tmp_path))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("closing")]


def test_a_frontier_that_is_closed_twice_is_closed_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_services(CrawlFolder(tmp_path), Settings()) as services:
            await services.frontier.admit([seed(URL)])
            await services.frontier.sync()
            await services.frontier.close()
            await services.frontier.close()
            _spoil_sync(services)

    asyncio.run(main())
    asyncio.run(_known_again(tmp_path))


def _spoil_sync(services: CrawlServices) -> None:
    """A store that is closed cannot be synced: it was, before."""

    async def sync() -> None:
        pass

    services.frontier.sync = sync  # type: ignore[method-assign]


async def _known_again(folder: Path) -> None:
    async with open_services(CrawlFolder(folder), Settings()) as services:
        stats = await services.frontier.stats()
        assert stats.urls["queued"] == 1


def test_nothing_is_left_in_memory_for_the_close_that_lets_no_other_thread_run(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "frontier", MemoryPlan.of(FrontierSettings()))
    batch = RocksChanges(store)
    for number in range(5_000):
        batch.put("urls", number.to_bytes(16, "big"), bytes(100))
    store.commit(batch)
    tables, left = dict(store._tables), []

    class Looking:
        """Looks at the tables when they are closed."""

        def close(self) -> None:
            for kind in ("num-entries-active-mem-table", "num-immutable-mem-table"):
                left.append(tables["urls"].property_int_value(f"rocksdb.{kind}"))
            tables.clear()
            whole.close()

    assert tables["urls"].property_int_value("rocksdb.num-entries-active-mem-table") == 5_000
    whole, store._db = store._db, Looking()  # type: ignore[assignment]
    store.close()
    assert left == [0, 0]
