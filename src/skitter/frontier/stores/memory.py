"""A store in memory, for tests: it shows that the rules of a frontier need nothing of RocksDB.

`MemoryTables` are what a disk would be: they outlive the store that has them open, so a frontier can be closed,
or be dropped as by a death, and opened again. `sync` has nothing to do: a power loss cannot be tried with it.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

from skitter.errors import FolderInUse, StoreFailed
from skitter.faultpoints import Point, reach
from skitter.frontier.stores.base import Changes
from skitter.frontier.tables.layout import TABLES


class _Table:
    """Rows and the order of their keys. One that a scan or a reader goes through is not changed any more but
    copied, so that they see the rows of one moment, as they do in RocksDB."""

    def __init__(self, rows: dict[bytes, bytes] | None = None) -> None:
        self.rows = rows or {}
        self.order = sorted(self.rows)
        self.is_shared = False

    def put(self, key: bytes, value: bytes) -> None:
        if key not in self.rows:
            insort(self.order, key)
        self.rows[key] = value

    def delete(self, key: bytes) -> None:
        if self.rows.pop(key, None) is not None:
            del self.order[bisect_left(self.order, key)]

    def delete_range(self, start: bytes, end: bytes) -> None:
        first, last = bisect_left(self.order, start), bisect_left(self.order, end)
        for key in self.order[first:last]:
            del self.rows[key]
        del self.order[first:last]


class MemoryTables:
    def __init__(self) -> None:
        self._tables = {name: _Table() for name in TABLES}
        self._writer: MemoryStore | None = None

    def take(self, writer: MemoryStore) -> None:
        if self._writer is not None:
            raise FolderInUse("these tables are in use: close the frontier that has them open first")
        self._writer = writer

    def release(self) -> None:
        """Whoever had them open has closed them, or is dead: a lock does not outlive its process."""
        self._writer = None

    def is_open_by(self, store: MemoryStore) -> bool:
        return self._writer is store

    def table(self, name: str) -> _Table:
        return self._tables[name]

    def shared(self, name: str) -> _Table:
        """As it is now, whatever is committed later."""
        table = self._tables[name]
        table.is_shared = True
        return table

    def writable(self, name: str) -> _Table:
        table = self._tables[name]
        if table.is_shared:
            table = self._tables[name] = _Table(table.rows.copy())
        return table

    def as_of_now(self) -> MemoryTables:
        copied = MemoryTables()
        copied._tables = {name: self.shared(name) for name in self._tables}
        return copied


class MemoryChanges:
    def __init__(self) -> None:
        self.made: list[tuple[str, bytes, bytes | None, bytes | None]] = []
        """Table and key, with a value (a put), an end (a range that is deleted), or neither (a delete)."""

    def put(self, table: str, key: bytes, value: bytes) -> None:
        self.made.append((table, key, value, None))

    def put_all(self, table: str, rows: Iterable[tuple[bytes, bytes]]) -> None:
        self.made += [(table, key, value, None) for key, value in rows]

    def delete(self, table: str, key: bytes) -> None:
        self.made.append((table, key, None, None))

    def delete_range(self, table: str, start: bytes, end: bytes) -> None:
        self.made.append((table, start, None, end))

    def is_empty(self) -> bool:
        return not self.made


class MemoryStore:
    keeps_every_commit = has_moved = False

    def __init__(self, tables: MemoryTables, *, read_only: bool = False) -> None:
        if not read_only:
            tables.take(self)
        self.read_only = read_only
        self._tables = tables.as_of_now() if read_only else tables

    def get(self, table: str, key: bytes) -> bytes | None:
        return self._tables.table(table).rows.get(key)

    def scan(self, table: str, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        found = self._tables.shared(table)
        for at in range(bisect_left(found.order, start), bisect_left(found.order, end)):
            yield found.order[at], found.rows[found.order[at]]

    def first(self, table: str, start: bytes, end: bytes, most: int) -> list[tuple[bytes, bytes]]:
        return list(itertools.islice(self.scan(table, start, end), most))

    def first_keys(self, table: str, start: bytes, end: bytes, most: int) -> list[bytes]:
        return [key for key, _ in self.first(table, start, end, most)]

    def changes(self) -> MemoryChanges:
        return MemoryChanges()

    def commit(self, changes: Changes) -> None:
        assert isinstance(changes, MemoryChanges)
        if not self._tables.is_open_by(self):
            raise StoreFailed("these tables are not open for writing")
        reach(Point.BEFORE_COMMIT)
        for table, key, value, end in changes.made:
            rows = self._tables.writable(table)
            if value is not None:
                rows.put(key, value)
            elif end is not None:
                rows.delete_range(key, end)
            else:
                rows.delete(key)
        reach(Point.AFTER_COMMIT)

    def compact(self) -> None:
        """Nothing that was deleted is kept."""

    def commit_soon(self, changes: Changes) -> None:
        self.commit(changes)

    def sync(self) -> None:
        """Nothing is kept beyond the process."""

    def close(self) -> None:
        if self._tables.is_open_by(self):
            self._tables.release()
