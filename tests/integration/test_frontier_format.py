"""A frontier whose rows another version wrote is refused with a word of advice, and left as it is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from skitter.errors import StoreFailed
from skitter.frontier.opening import open_rocks_frontier
from skitter.frontier.rows import Note
from skitter.frontier.stores.rocks import RocksStore
from skitter.frontier.tables.memory_plan import MemoryPlan
from skitter.settings import Settings
from skitter.testing.clock import FakeClock
from tests.frontier_kit import seed

SETTINGS = Settings()


@pytest.mark.parametrize(("format", "said"), [(None, "skitter 0.1"), (b"99", "later version")])
def test_a_frontier_of_another_version_is_refused_and_kept(
    tmp_path: Path, format: bytes | None, said: str
) -> None:
    async def crawl() -> None:
        frontier = open_rocks_frontier(tmp_path, SETTINGS, FakeClock())
        await frontier.admit([seed("http://a.test/")])
        await frontier.close()

    asyncio.run(crawl())
    _set_format(tmp_path, format)
    for _ in range(2):
        with pytest.raises(StoreFailed, match=said) as raised:
            open_rocks_frontier(tmp_path, SETTINGS, FakeClock())
        assert "new folder" in str(raised.value)
    _set_format(tmp_path, b"2")
    asyncio.run(open_rocks_frontier(tmp_path, SETTINGS, FakeClock()).close())


def _set_format(folder: Path, format: bytes | None) -> None:
    store = RocksStore(folder, MemoryPlan.of(SETTINGS.frontier))
    changes = store.changes()
    if format is None:
        changes.delete("meta", Note.FORMAT.encode())
    else:
        changes.put("meta", Note.FORMAT.encode(), format)
    store.commit(changes)
    store.close()
