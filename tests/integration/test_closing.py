"""Frontier and archive are closed at the same time: each to its end, whatever becomes of the other."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from skitter.errors import DiskFull, StoreFailed
from skitter.folder import CrawlFolder
from skitter.frontier.rocks.frontier import RocksFrontier
from skitter.frontier.rocks.memory import MemoryPlan
from skitter.frontier.rocks.store import Batch, Store
from skitter.settings import FrontierSettings, Settings
from skitter.wiring import Office, open_office
from tests.frontier_kit import seed

URL = "http://a.test/"


async def _opened_and_closed(folder: Path, fail: str = "") -> None:
    async with open_office(CrawlFolder(folder), Settings()) as office:
        await office.frontier.admit([seed(URL)])
        _spoil(office, fail)


def _spoil(office: Office, what: str) -> None:
    if what == "archive":
        whole = office.archive.close

        def close(*, durable: bool) -> None:
            whole(durable=durable)
            raise DiskFull("no room")

        office.archive.close = close  # type: ignore[method-assign,assignment]
    elif what == "frontier":
        frontier = office.frontier
        assert isinstance(frontier, RocksFrontier)
        store = frontier._store
        whole_store = store.close

        def close_store() -> None:
            whole_store()
            raise StoreFailed("torn")

        store.close = close_store  # type: ignore[method-assign]
    elif what == "sync":

        async def sync() -> None:
            raise StoreFailed("not synced")

        office.frontier.sync = sync  # type: ignore[method-assign]


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
        async with open_office(CrawlFolder(tmp_path), Settings()) as office:
            await office.frontier.admit([seed(URL)])
            await office.frontier.sync()
            await office.frontier.close()
            await office.frontier.close()
            _spoil_sync(office)

    asyncio.run(main())
    asyncio.run(_known_again(tmp_path))


def _spoil_sync(office: Office) -> None:
    """A store that is closed cannot be synced: it was, before."""

    async def sync() -> None:
        pass

    office.frontier.sync = sync  # type: ignore[method-assign]


async def _known_again(folder: Path) -> None:
    async with open_office(CrawlFolder(folder), Settings()) as office:
        stats = await office.frontier.stats()
        assert stats.urls["queued"] == 1


def test_nothing_is_left_in_memory_for_the_close_that_lets_no_other_thread_run(tmp_path: Path) -> None:
    store = Store(tmp_path / "frontier", MemoryPlan.of(FrontierSettings()))
    batch = Batch(store)
    for number in range(5_000):
        batch.put("urls", number.to_bytes(16, "big"), bytes(100))
    store.write(batch)
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
