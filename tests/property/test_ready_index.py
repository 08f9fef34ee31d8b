"""Whatever comes and goes in the ready index, a walk finds what is there, in its order, and nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.frontier.stores.rocks import RocksChanges, RocksStore
from skitter.frontier.tables import ready_index
from skitter.frontier.tables.memory_plan import MemoryPlan
from skitter.frontier.tables.ready_index import TABLE, ReadyIndex
from skitter.settings import FrontierSettings

TIER = 2
TIMES = st.integers(0, 40)
# True: a host becomes ready at that time, or no longer is; False: a lease walks up to then.
STEPS = st.lists(st.tuples(st.booleans(), TIMES), max_size=60)


@pytest.fixture(scope="module")
def store() -> Iterator[RocksStore]:
    with tempfile.TemporaryDirectory() as folder:
        opened = RocksStore(Path(folder), MemoryPlan.of(FrontierSettings(memory=16_000_000)))
        yield opened
        opened.close()


def entry(at: int) -> bytes:
    return bytes((TIER,)) + at.to_bytes(8, "big") + b"the-host"


def flip(store: RocksStore, index: ReadyIndex, live: set[bytes], key: bytes) -> None:
    batch = RocksChanges(store)
    if key in live:
        live.remove(key)
        batch.delete(TABLE, key)
        index.remove(TIER, key)
    else:
        live.add(key)
        batch.put(TABLE, key, b"")
        index.add(TIER, key)
    store.commit(batch)


@given(STEPS, st.integers(1, 8))
def test_a_walk_finds_all_that_is_ready_in_its_order(
    store: RocksStore, steps: list[tuple[bool, int]], most_early: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ready_index, "_MOST_EARLY", most_early)
        clear = RocksChanges(store)
        clear.delete_range(TABLE, b"", b"\xff")
        store.commit(clear)
        index, live = ReadyIndex(), set[bytes]()
        for is_change, at in steps:
            if is_change:
                flip(store, index, live, entry(at))
            else:
                found = list(index.walk(store, TIER, entry(at)))
                assert found == sorted(key for key in live if key < entry(at))
            assert index.first(store, TIER) == min(live, default=None)


def test_what_is_ready_early_does_not_take_the_mark_back(store: RocksStore) -> None:
    """Else the next lease walks over the tombstones of all hosts that were taken before."""
    clear = RocksChanges(store)
    clear.delete_range(TABLE, b"", b"\xff")
    store.commit(clear)
    index, live = ReadyIndex(), set[bytes]()
    for at in (10, 20, 30):
        flip(store, index, live, entry(at))
    flip(store, index, live, entry(10))
    assert list(index.walk(store, TIER, entry(40))) == [entry(20), entry(30)]
    flip(store, index, live, entry(1))
    assert list(index.walk(store, TIER, entry(40))) == [entry(1), entry(20), entry(30)]
    assert index._lows[TIER] == entry(20)


@given(st.sets(st.integers(0, 999), max_size=40), st.integers(0, 999), st.integers(1, 20))
def test_the_first_entries_are_those_that_a_scan_begins_with(
    store: RocksStore, numbers: set[int], host: int, most: int
) -> None:
    """Ten hosts with a hundred URLs each at most; ranges of one host, as a lease reads them."""
    batch = RocksChanges(store)
    batch.delete_range("urls", b"", b"\xff" * 17)
    for number in numbers:
        batch.put("urls", b"%08d" % (number // 100) + b"%08d" % number, b"%d" % number)
    store.commit(batch)
    start = b"%08d" % (host // 100)
    found = store.first("urls", start, start + b"\xff" * 9, most)
    assert found == list(store.scan("urls", start, start + b"\xff" * 9))[:most]
    assert [int(raw) for _, raw in found] == sorted(n for n in numbers if n // 100 == host // 100)[:most]
