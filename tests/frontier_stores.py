"""The stores that tests of a frontier run on, and what tests want of a store besides: to fail, to be watched, to
be left behind by a death.

A `Disk` is where tables lie. It outlives every store that is opened on it.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from skitter.errors import FolderInUse, StoreFailed
from skitter.frontier.log.catching_up import catch_up
from skitter.frontier.log.owning import Fetch, own
from skitter.frontier.log.postgres import PostgresLog
from skitter.frontier.stores.base import Changes, Store
from skitter.frontier.stores.logged import LoggedStore
from skitter.frontier.stores.memory import MemoryStore, MemoryTables
from skitter.frontier.stores.rocks import RocksStore
from skitter.frontier.tables.layout import TABLES
from skitter.frontier.tables.memory_plan import MemoryPlan
from skitter.settings import FrontierSettings
from tests.postgres import new_database

# -- where tables lie


class Disk(Protocol):
    folder: Path
    """For the files that a frontier keeps beside its tables."""

    def open(self, settings: FrontierSettings, *, read_only: bool = False) -> Store: ...

    def outlive(self, store: Store) -> None:
        """The process that has the store open dies: what is committed stays, the lock goes. Does nothing to a
        store that is closed."""
        ...


class RocksDisk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, settings: FrontierSettings, *, read_only: bool = False) -> Store:
        plan = MemoryPlan.of(settings)
        try:
            return RocksStore(self.folder, plan, read_only=read_only)
        except FolderInUse:
            gc.collect()  # a scan that a failed call left unfinished keeps a dead store's lock
            return RocksStore(self.folder, plan, read_only=read_only)

    def outlive(self, store: Store) -> None:
        """Without its objects the database ends as it does in a death: nothing is flushed, and the next opening
        replays the log."""
        for held in vars(store).values():
            if isinstance(held, dict):
                held.clear()
        vars(store).clear()


class MemoryDisk:
    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self._tables = MemoryTables()

    def open(self, settings: FrontierSettings, *, read_only: bool = False) -> Store:
        return MemoryStore(self._tables, read_only=read_only)

    def outlive(self, store: Store) -> None:
        assert isinstance(store, MemoryStore)
        if self._tables.is_open_by(store):
            self._tables.release()


class LogDisk:
    """Tables in memory or in RocksDB whose commits are first in a log in PostgreSQL. When the last store on it is
    closed, the log replayed elsewhere must give the same tables, byte for byte."""

    def __init__(
        self, folder: Path, inner: Disk | None = None, url: str = "", fetch: Fetch | None = None
    ) -> None:
        self.inner = inner or MemoryDisk(folder)
        self.folder = self.inner.folder
        self.url = url or new_database()
        self._fetch = fetch

    def log(self, lapse: float = 15.0) -> PostgresLog:
        return PostgresLog(self.url, lapse=lapse, is_unreplicated=True)

    def open(self, settings: FrontierSettings, *, read_only: bool = False) -> Store:
        if read_only:
            return self.inner.open(settings, read_only=True)
        lapse = settings.log_lapse
        return own(self.folder, lambda: self.inner.open(settings), self.log(lapse), lapse, self._fetch)

    def outlive(self, store: Store) -> None:
        assert isinstance(store, LoggedStore)
        if store.is_closed:
            return
        store.die()
        self.inner.outlive(store.inner)

    def check_replay(self, settings: FrontierSettings) -> None:
        """Checkpoint and log, replayed elsewhere, are the owner's tables."""
        log = self.log()
        owners, elsewhere = self.inner.open(settings), MemoryStore(MemoryTables())
        standing = log.standing()
        assert standing is not None
        catch_up(elsewhere, log, standing.crawl, standing.sequence)
        log.close()
        try:
            assert tables_of(elsewhere) == tables_of(owners)
        finally:
            owners.close()


def tables_of(store: Store) -> dict[str, list[tuple[bytes, bytes]]]:
    return {table: list(store.scan(table, b"", b"\xff" * 64)) for table in TABLES}


DISKS: dict[str, Callable[[Path], Disk]] = {"rocks": RocksDisk, "memory": MemoryDisk, "log": LogDisk}


# -- stores that fail and stores that are watched


class FailingStore:
    """Any store; while it is told to fail, commits raise as they do on a full disk and change nothing."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self._left: int | None = None
        self.read_only = inner.read_only
        self.keeps_every_commit, self.has_moved = inner.keeps_every_commit, inner.has_moved
        self.get, self.scan, self.first, self.first_keys = (
            inner.get,
            inner.scan,
            inner.first,
            inner.first_keys,
        )
        self.changes, self.sync, self.close = inner.changes, inner.sync, inner.close
        self.compact = inner.compact

    @contextlib.contextmanager
    def failing(self, after: int) -> Iterator[None]:
        """So many commits succeed; the others fail, until the block ends."""
        self._left = after
        try:
            yield
        finally:
            self._left = None

    def commit(self, changes: Changes) -> None:
        self._count()
        self._inner.commit(changes)

    def commit_soon(self, changes: Changes) -> Awaitable[None] | None:
        self._count()
        return self._inner.commit_soon(changes)

    def _count(self) -> None:
        if self._left is not None:
            if not self._left:
                raise StoreFailed("the test broke this write")
            self._left -= 1


class Watch:
    """What was asked of a store: each commit's tables, and each row that was read by its key."""

    def __init__(self) -> None:
        self.commits: list[set[str]] = []
        self.reads: list[tuple[str, bytes]] = []

    def tables_written(self) -> set[str]:
        return set().union(*self.commits)

    def tables_read(self) -> set[str]:
        return {table for table, _ in self.reads}


class _WatchedChanges:
    def __init__(self, inner: Changes) -> None:
        self.inner = inner
        self.tables: set[str] = set()
        self.is_empty = inner.is_empty

    def put(self, table: str, key: bytes, value: bytes) -> None:
        self.tables.add(table)
        self.inner.put(table, key, value)

    def put_all(self, table: str, rows: Iterable[tuple[bytes, bytes]]) -> None:
        self.tables.add(table)
        self.inner.put_all(table, rows)

    def delete(self, table: str, key: bytes) -> None:
        self.tables.add(table)
        self.inner.delete(table, key)

    def delete_range(self, table: str, start: bytes, end: bytes) -> None:
        self.tables.add(table)
        self.inner.delete_range(table, start, end)


class CountingStore:
    """Any store; what is asked of it is noted in every `Watch` that is open."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self._watches: list[Watch] = []
        self.read_only = inner.read_only
        self.keeps_every_commit, self.has_moved = inner.keeps_every_commit, inner.has_moved
        self.scan, self.sync, self.close = inner.scan, inner.sync, inner.close
        self.compact = inner.compact

    @contextlib.contextmanager
    def watched(self) -> Iterator[Watch]:
        self._watches.append(Watch())
        try:
            yield self._watches[-1]
        finally:
            self._watches.pop()

    def get(self, table: str, key: bytes) -> bytes | None:
        for watch in self._watches:
            watch.reads.append((table, key))
        return self._inner.get(table, key)

    def first(self, table: str, start: bytes, end: bytes, most: int) -> list[tuple[bytes, bytes]]:
        found = self._inner.first(table, start, end, most)
        for watch in self._watches:
            watch.reads += [(table, key) for key, _ in found]
        return found

    def first_keys(self, table: str, start: bytes, end: bytes, most: int) -> list[bytes]:
        found = self._inner.first_keys(table, start, end, most)
        for watch in self._watches:
            watch.reads += [(table, key) for key in found]
        return found

    def changes(self) -> Changes:
        return _WatchedChanges(self._inner.changes())

    def commit(self, changes: Changes) -> None:
        self._inner.commit(self._noted(changes))

    def commit_soon(self, changes: Changes) -> Awaitable[None] | None:
        return self._inner.commit_soon(self._noted(changes))

    def _noted(self, changes: Changes) -> Changes:
        assert isinstance(changes, _WatchedChanges)
        for watch in self._watches:
            watch.commits.append(changes.tables)
        return changes.inner
