"""Archives in object storage, as readers see them: ranges of objects, and the local spool before them.

A `Source` like the folder. Objects never change, so what was fetched whole (Parquet parts, for DuckDB) is kept
in a cache of bounded size. Never writes to the store or to the crawl's folder.
"""

from __future__ import annotations

import os
import tempfile
from hashlib import sha256
from pathlib import Path

from skitter.archive.objects import NoRanges, Objects
from skitter.archive.warc.coding import OPEN
from skitter.collection.source import FolderSource, cache_home
from skitter.errors import ArchiveFailed

_CACHED_AT_MOST = 10_000_000_000


class Cache:
    """Objects as files, the least recently used gone first; what this process has asked for stays."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._used: set[Path] = set()
        self.folder = cache_home() / sha256(objects.url.encode()).hexdigest()[:16]
        self._own: tempfile.TemporaryDirectory[str] | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            self._own = tempfile.TemporaryDirectory(prefix="skitter-")
            self.folder = Path(self._own.name)

    def path(self, name: str, size: int) -> Path:
        # By digest: an object may be called anything, and a file must lie here. The ending is for DuckDB.
        path = self.folder / (sha256(name.encode()).hexdigest()[:32] + Path(name).suffix)
        self._used.add(path)
        if path.exists() and path.stat().st_size == size:
            os.utime(path)
        else:
            self._objects.fetch(name, path)
            self._make_room()
        return path

    def _make_room(self) -> None:
        found = [(path.stat().st_mtime, path.stat().st_size, path) for path in self.folder.iterdir()]
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= _CACHED_AT_MOST:
                return
            if path not in self._used:
                path.unlink(missing_ok=True)
                total -= size


class ObjectSource:
    """The objects under a URL."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._sizes: dict[str, int] = {}
        self._cache = Cache(objects)

    def list(self) -> dict[str, int]:
        self._sizes = self._objects.list()
        return dict(self._sizes)

    def has(self, name: str) -> bool:
        if name not in self._sizes and (size := self._objects.size(name)) is not None:
            self._sizes[name] = size
        return name in self._sizes

    def size(self, name: str) -> int:
        if not self.has(name):
            raise ArchiveFailed(
                f"{self._objects.url}/{name} is gone: skitter verify says what else is missing"
            )
        return self._sizes[name]

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        rest = max(0, self.size(name) - offset)
        length = rest if length is None else min(length, rest)
        try:
            return self._objects.read(name, offset, length)
        except NoRanges:
            # Some servers say 200 to a range; obstore does not believe them. Once whole is better than never.
            with self._cache.path(name, self.size(name)).open("rb") as file:
                file.seek(offset)
                return file.read(length)

    def location(self, name: str) -> str:
        return str(self._cache.path(name, self.size(name)))

    def folders(self) -> tuple[str, ...]:
        return (str(self._cache.folder),)


class SpooledSource:
    """A crawl's folder, and behind it the object store that its finished segments go to."""

    def __init__(self, spool: FolderSource, store: ObjectSource) -> None:
        self._spool = spool
        self._store = store

    def list(self) -> dict[str, int]:
        # The spool first: what leaves it meanwhile is in the store already.
        here = self._spool.list()
        return {**self._store.list(), **here}

    def has(self, name: str) -> bool:
        return self._spool.has(name) or self._store.has(name)

    def size(self, name: str) -> int:
        try:
            return self._spool.size(name)
        except ArchiveFailed:
            return self._store.size(name.removesuffix(OPEN))

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        try:
            return self._spool.read(name, offset, length)
        except ArchiveFailed:
            return self._store.read(name.removesuffix(OPEN), offset, length)

    def location(self, name: str) -> str:
        return self._spool.location(name) if self._spool.has(name) else self._store.location(name)

    def folders(self) -> tuple[str, ...]:
        return (*self._spool.folders(), *self._store.folders())
