"""What a frontier needs of any store: order, bounds, whole commits, one writer, readers beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from skitter.errors import FolderInUse, StoreFailed
from skitter.frontier.stores.base import Changes, Store
from skitter.frontier.stores.logged import LoggedStore
from skitter.frontier.tables.layout import TABLES
from skitter.settings import FrontierSettings
from tests.frontier_stores import DISKS, CountingStore, Disk, FailingStore

SETTINGS = FrontierSettings()
# One in which all of a host lies together behind eight bytes, one that is looked up, one that is only walked.
WALKED = ("urls", "hosts", "due")
END = b"\xff" * 40
Rows = dict[bytes, bytes]
Model = dict[str, Rows]


@pytest.fixture(params=DISKS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    return DISKS[request.param](tmp_path / "store")


@pytest.fixture
def store(disk: Disk) -> Iterator[Store]:
    store = disk.open(SETTINGS)
    yield store
    store.close()


def put(store: Store, **rows: bytes) -> None:
    changes = store.changes()
    for key, value in rows.items():
        changes.put("urls", key.encode(), value)
    store.commit(changes)


def everything(store: Store, table: str = "urls") -> Rows:
    rows = dict(store.scan(table, b"", END))
    if isinstance(store, LoggedStore) and table == "meta":
        assert rows.pop(b"log")  # its own note of how much of the log it has
    return rows


# -- reads


def test_a_row_is_read_as_it_was_put_also_an_empty_one(store: Store) -> None:
    put(store, full=b"value", empty=b"")
    assert store.get("urls", b"full") == b"value"
    assert store.get("urls", b"empty") == b""
    assert store.get("urls", b"none") is None
    assert store.get("hosts", b"full") is None


def test_rows_come_in_the_order_of_their_bytes_up_to_the_end_and_without_it(store: Store) -> None:
    keys = [b"", b"\0", b"a", b"a\0", b"aa", b"b", b"\xfe", b"\xff", b"\xff\0", b"\xff\xff"]
    changes = store.changes()
    changes.put_all("urls", ((key, key) for key in reversed(keys)))
    store.commit(changes)
    assert list(store.scan("urls", b"", END)) == [(key, key) for key in keys]
    assert [key for key, _ in store.scan("urls", b"a", b"b")] == [b"a", b"a\0", b"aa"]
    assert [key for key, _ in store.scan("urls", b"\xff", b"\xff\xff")] == [b"\xff", b"\xff\0"]
    assert store.first("urls", b"a\0", END, 2) == [(b"a\0", b"a\0"), (b"aa", b"aa")]
    assert store.first_keys("urls", b"a\0", END, 2) == [b"a\0", b"aa"]
    assert list(store.scan("urls", b"c", b"d")) == []


def test_a_scan_sees_the_rows_of_the_moment_at_which_it_began(store: Store) -> None:
    put(store, a=b"1", b=b"1", c=b"1")
    rows = store.scan("urls", b"", END)
    assert next(rows) == (b"a", b"1")
    changes = store.changes()
    changes.put("urls", b"b", b"2")
    changes.put("urls", b"bb", b"2")
    changes.delete("urls", b"c")
    store.commit(changes)
    assert list(rows) == [(b"b", b"1"), (b"c", b"1")]
    assert everything(store) == {b"a": b"1", b"b": b"2", b"bb": b"2"}


# -- commits


def test_nothing_is_seen_of_changes_before_they_are_committed(store: Store) -> None:
    changes = store.changes()
    assert changes.is_empty()
    changes.put("urls", b"a", b"1")
    assert not changes.is_empty()
    assert everything(store) == {}
    store.commit(changes)
    assert everything(store) == {b"a": b"1"}


def test_changes_are_made_in_the_order_in_which_they_were_asked_for(store: Store) -> None:
    put(store, a=b"0", b=b"0", c=b"0", d=b"0")
    changes = store.changes()
    changes.put("urls", b"b", b"before")
    changes.delete_range("urls", b"b", b"d")
    changes.put("urls", b"c", b"after")
    changes.put("urls", b"a", b"put")
    changes.delete("urls", b"a")
    store.commit(changes)
    assert everything(store) == {b"c": b"after", b"d": b"0"}


def test_what_is_committed_survives_a_close_and_a_death_and_what_is_not_survives_neither(disk: Disk) -> None:
    store = disk.open(SETTINGS)
    put(store, closed=b"1")
    store.close()
    store = disk.open(SETTINGS)
    put(store, dead=b"1")
    store.changes().put("urls", b"lost", b"1")
    disk.outlive(store)
    store = disk.open(SETTINGS)
    assert everything(store) == {b"closed": b"1", b"dead": b"1"}
    store.sync()
    store.close()


# -- others


def test_a_second_writer_is_refused_until_the_first_has_closed_or_died(disk: Disk) -> None:
    ends: list[Callable[[Store], None]] = [lambda store: store.close(), disk.outlive]
    for end in ends:
        store = disk.open(SETTINGS)
        with pytest.raises(FolderInUse, match=r"in use.*: (stop|close) "):
            disk.open(SETTINGS)
        put(store, a=b"1")  # the refusal has done it no harm
        end(store)
    store = disk.open(SETTINGS)
    assert everything(store) == {b"a": b"1"}
    store.close()


def test_a_reader_sees_what_there_was_when_it_was_opened_and_writes_nothing(disk: Disk, store: Store) -> None:
    put(store, a=b"1")
    reader = disk.open(SETTINGS, read_only=True)
    put(store, a=b"2", b=b"2")
    assert (reader.read_only, store.read_only) == (True, False)
    assert everything(reader) == {b"a": b"1"}
    assert reader.get("urls", b"b") is None
    changes = reader.changes()
    changes.put("urls", b"c", b"3")
    with pytest.raises(StoreFailed):
        reader.commit(changes)
    reader.close()
    put(store, c=b"3")  # its end frees no lock and closes nothing
    assert everything(store) == {b"a": b"2", b"b": b"2", b"c": b"3"}
    with pytest.raises(FolderInUse):
        disk.open(SETTINGS)


# -- the stores of the tests


def test_a_store_that_fails_fails_the_commits_that_it_was_told_to_and_no_other(store: Store) -> None:
    failing = FailingStore(store)
    with failing.failing(after=1):
        put(failing, a=b"1")
        with pytest.raises(StoreFailed):
            put(failing, b=b"1", c=b"1")
    put(failing, d=b"1")
    assert everything(store) == {b"a": b"1", b"d": b"1"}


def test_a_store_that_is_watched_tells_commits_and_reads(store: Store) -> None:
    counting = CountingStore(store)
    put(counting, a=b"1")
    with counting.watched() as watch:
        put(counting, b=b"1")
        counting.get("hosts", b"x")
        counting.first("urls", b"", END, 1)
    counting.get("meta", b"x")
    assert watch.commits == [{"urls"}]
    assert watch.reads == [("hosts", b"x"), ("urls", b"a")]
    assert everything(store) == {b"a": b"1", b"b": b"1"}


# -- any sequence, against plain dicts

# Keys of few bytes, so that they meet; some behind one host's id, on which a bounded scan takes a shorter way.
_HOST = b"host-id-"
_tails = st.lists(st.sampled_from([0, 1, 0x61, 0xFE, 0xFF]), max_size=3).map(bytes)
_keys = st.one_of(_tails, _tails.map(lambda tail: _HOST + tail), _tails.map(lambda tail: b"host-id." + tail))
_values = st.sampled_from([b"", b"v", b"\xff" * 9])
_bounds = st.tuples(_keys, _keys).map(lambda pair: (min(pair), max(pair)))
_tables = st.sampled_from(WALKED)
_one_change = st.one_of(
    st.tuples(st.just("put"), _tables, _keys, _values),
    st.tuples(st.just("delete"), _tables, _keys),
    st.tuples(st.just("delete_range"), _tables, _bounds),
)
_step = st.one_of(
    st.tuples(st.just("commit"), st.lists(_one_change, max_size=6)),
    st.tuples(st.just("drop"), st.lists(_one_change, min_size=1, max_size=3)),
    st.tuples(st.just("scan"), _tables, _bounds, st.integers(0, 3)),
    st.tuples(st.just("get"), _tables, _keys),
)


def make(changes: Changes, model: Model, change: tuple[str, str, object, *tuple[bytes, ...]]) -> None:
    match change:
        case ("put", table, bytes(key), value):
            changes.put(table, key, value)
            model[table][key] = value
        case ("delete", table, bytes(key)):
            changes.delete(table, key)
            model[table].pop(key, None)
        case ("delete_range", table, (bytes(start), bytes(end))):
            changes.delete_range(table, start, end)
            model[table] = {key: value for key, value in model[table].items() if not start <= key < end}


def take(store: Store, model: Model, step: tuple[object, ...]) -> None:
    match step:
        case ("commit" | "drop" as kind, list(wanted)):
            changes, after = store.changes(), {table: rows.copy() for table, rows in model.items()}
            for change in wanted:
                make(changes, after, change)
            if kind == "commit":
                store.commit(changes)
                model.update(after)
        case ("scan", str(table), (bytes(start), bytes(end)), int(most)):
            expected = sorted((k, v) for k, v in model[table].items() if start <= k < end)
            assert list(store.scan(table, start, end)) == expected
            assert store.first(table, start, end, most) == expected[:most]
            assert store.first_keys(table, start, end, most) == [key for key, _ in expected[:most]]
        case ("get", str(table), bytes(key)):
            assert store.get(table, key) == model[table].get(key)


def empty(store: Store) -> None:
    changes = store.changes()
    for table in TABLES:
        changes.delete_range(table, b"", END)
    store.commit(changes)


@profile(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=st.lists(_step, max_size=20))
def test_any_sequence_leaves_what_plain_dicts_would_hold(
    store: Store, plan: list[tuple[object, ...]]
) -> None:
    """In one store, emptied before each sequence: opening RocksDB takes longer than all of it."""
    empty(store)
    model: Model = {table: {} for table in TABLES}
    for step in plan:
        take(store, model, step)
    assert {table: everything(store, table) for table in TABLES} == model
