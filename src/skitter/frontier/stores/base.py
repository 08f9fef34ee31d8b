"""What a frontier needs of a store: tables of bytes in key order, and commits that are all or nothing.

Under `tables/`, which knows what the bytes mean; an implementation does not. `rocks.py` is the one that crawls
use, `logged.py` puts a log elsewhere before it, `memory.py` is for tests. One process writes at a time: a second
one's opening raises `FolderInUse`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator
from typing import Protocol


class Changes(Protocol):
    """Puts and deletes that become true together, in the order in which they were made."""

    def put(self, table: str, key: bytes, value: bytes) -> None: ...

    def put_all(self, table: str, rows: Iterable[tuple[bytes, bytes]]) -> None: ...

    def delete(self, table: str, key: bytes) -> None: ...

    def delete_range(self, table: str, start: bytes, end: bytes) -> None:
        """Every key from `start` up to but excluding `end`."""
        ...

    def is_empty(self) -> bool: ...


class Store(Protocol):
    @property
    def read_only(self) -> bool:
        """Whether it looks at a crawl that another process may be writing. It sees what was committed when it
        was opened."""
        ...

    @property
    def keeps_every_commit(self) -> bool:
        """Whether a commit survives also a power loss and the loss of the machine, as soon as it is made."""
        ...

    @property
    def has_moved(self) -> bool:
        """Whether somebody elsewhere wrote last, who may still be alive without being able to write."""
        ...

    def get(self, table: str, key: bytes) -> bytes | None: ...

    def scan(self, table: str, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Rows from `start` up to but excluding `end`, in the order of their keys' bytes. What is committed after
        the first row was taken is not seen."""
        ...

    def first(self, table: str, start: bytes, end: bytes, most: int) -> list[tuple[bytes, bytes]]:
        """The first rows of such a scan, in one read."""
        ...

    def first_keys(self, table: str, start: bytes, end: bytes, most: int) -> list[bytes]:
        """The keys of such rows, for who reads a whole table once: nothing stays in a cache for it."""
        ...

    def changes(self) -> Changes:
        """An empty set of changes, for `commit`."""
        ...

    def commit(self, changes: Changes) -> None:
        """All of them or none: raises `StoreFailed` or `DiskFull` when they are not committed, as they never are
        by a store that is read only. They survive the death of the process from now on."""
        ...

    def compact(self) -> None:
        """What was deleted is in no file any more."""
        ...

    def commit_soon(self, changes: Changes) -> Awaitable[None] | None:
        """The same for callers on the event loop: None when it is done, or what to wait for. The caller makes no
        other changes meanwhile."""
        ...

    def sync(self) -> None:
        """Every commit so far survives a power loss once this returns."""
        ...

    def close(self) -> None: ...
