"""How a store merges what it has flushed may change between versions: what an earlier one wrote can be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from rocksdict import DBCompactionStyle

from skitter.frontier.stores import rocks as stores
from skitter.frontier.stores.rocks import RocksChanges, RocksStore
from skitter.frontier.tables.memory_plan import MemoryPlan
from skitter.settings import FrontierSettings

PLAN = MemoryPlan.of(FrontierSettings())
FLUSHES, ROWS, HOSTS = 20, 200, 50


class ByLevel:
    """As tables by host were merged before they were merged by size."""

    @staticmethod
    def universal() -> DBCompactionStyle:
        return DBCompactionStyle.level()


def key(number: int) -> bytes:
    return (number % HOSTS).to_bytes(8, "big") + number.to_bytes(8, "big")


def fill(store: RocksStore, start: int) -> None:
    for first in range(start, start + FLUSHES * ROWS, ROWS):
        batch = RocksChanges(store)
        for number in range(first, first + ROWS):
            batch.put("urls", key(number), b"%d" % number)
        store.commit(batch)
        store._tables["urls"].flush(True)


def known(store: RocksStore) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for host in range(HOSTS):
        start = host.to_bytes(8, "big")
        found.update(store.scan("urls", start, start + b"\xff" * 9))
    return found


def test_a_store_that_was_merged_by_level_goes_on_merged_by_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(stores, "DBCompactionStyle", ByLevel)
        earlier = RocksStore(tmp_path, PLAN)
        fill(earlier, 0)
        earlier._tables["urls"].compact_range(None, None)
        fill(earlier, FLUSHES * ROWS)
        earlier.close()
    for round_ in (2, 3):
        store = RocksStore(tmp_path, PLAN)
        fill(store, round_ * FLUSHES * ROWS)
        expected = {key(number): b"%d" % number for number in range((round_ + 1) * FLUSHES * ROWS)}
        assert known(store) == expected
        assert all(store.get("urls", one) == value for one, value in expected.items())
        store.close()


def test_flushes_of_one_size_are_merged_before_they_are_too_many_to_ask(tmp_path: Path) -> None:
    store = RocksStore(tmp_path, PLAN)
    for number in range(4):
        fill(store, number * FLUSHES * ROWS)
    table = store._tables["urls"]
    flushes = table.property_int_value("rocksdb.num-files-at-level0")
    merged = sum(table.property_int_value(f"rocksdb.num-files-at-level{level}") or 0 for level in range(1, 7))
    del table
    store.close()
    assert merged > 0
    assert flushes is not None
    assert flushes <= 3 * stores._RUNS_BY_HOST
