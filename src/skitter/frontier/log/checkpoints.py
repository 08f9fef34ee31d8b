"""Checkpoints: the tables of the log's owner in the object store, so that the log need not be kept for ever.

Beside the path of a URL: taken every few minutes while the crawl goes on. Files of RocksDB never change, so only
new ones are uploaded; they are named after their content, because another owner numbers its files as it likes. A
checkpoint counts when all its files are there and the log says so. The last three are kept, and the log behind
the oldest of them. Never removes a file that a checkpoint in the log still names.

    idle        the next one is not due
    taking      hard links are made, new files are uploaded
    in trouble  the object store or the log is away; `trouble` says how, and the next one is tried in time
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from skitter.errors import LogFailed, ObjectsFailed
from skitter.frontier.log.base import Checkpoint
from skitter.frontier.log.position import position_of
from skitter.frontier.stores.logged import LoggedStore
from skitter.frontier.stores.rocks import RocksStore

KEPT = 3
# RocksDB's own lock and diary say nothing about the tables.
_LEFT_OUT = ("LOCK", "LOG")


class Files(Protocol):
    """An object store, by the few calls that are needed of it."""

    async def put(self, name: str, path: Path) -> None: ...

    async def take_away(self, names: list[str]) -> None: ...


class Checkpoints:
    def __init__(self, store: LoggedStore, files: Files, folder: Path, interval: float) -> None:
        """`folder` is that of the tables; hard links are made beside it."""
        self._store = store
        self._files = files
        self._scratch = folder.with_name(f"{folder.name}.checkpoint")
        self._interval = interval
        self._stored: set[str] = set()
        self._named: dict[tuple[str, int, int], str] = {}
        self._taking = asyncio.Lock()
        self.trouble = ""
        self.taken = 0

    async def run(self, after: Callable[[], Awaitable[None]]) -> None:
        """Until it is cancelled, or fenced. `after` is done after each."""
        known = await asyncio.to_thread(self._store.log.checkpoints)
        self._stored.update(name for checkpoint in known for name in checkpoint.files.values())
        while True:
            await asyncio.sleep(self._interval)
            try:
                await self.take()
                await after()
                self.trouble = ""
            except (ObjectsFailed, LogFailed) as error:
                self.trouble = str(error)

    async def take(self) -> Checkpoint:
        """One at a time: who lets go of a partition takes one, whatever the interval says."""
        async with self._taking:
            return await self._take()

    async def _take(self) -> Checkpoint:
        try:
            checkpoint = await asyncio.to_thread(self._link)
            for name, object_name in checkpoint.files.items():
                if object_name not in self._stored:
                    await self._files.put(object_name, self._scratch / name)
                    self._stored.add(object_name)
            await asyncio.to_thread(self._store.log.add_checkpoint, checkpoint)
            await self._trim()
        finally:
            await asyncio.to_thread(shutil.rmtree, self._scratch, ignore_errors=True)
        self.taken += 1
        return checkpoint

    def _link(self) -> Checkpoint:
        """The commit is read first: the links have it, and perhaps more."""
        inner = self._store.inner
        assert isinstance(inner, RocksStore)
        position = position_of(inner)
        shutil.rmtree(self._scratch, ignore_errors=True)
        inner.checkpoint(self._scratch)
        paths = [path for path in sorted(self._scratch.iterdir()) if path.name not in _LEFT_OUT]
        return Checkpoint(
            sequence=position.sequence if position else 0,
            epoch=self._store.claim.epoch,
            files={path.name: self._object_of(path) for path in paths},
        )

    def _object_of(self, path: Path) -> str:
        """A file that was named before is not read again: it is the same one by its inode."""
        status = path.stat()
        which = (path.name, status.st_ino, status.st_size)
        if path.suffix != ".sst" or which not in self._named:
            with path.open("rb") as file:
                self._named[which] = hashlib.file_digest(file, "sha256").hexdigest()
        return self._named[which]

    async def _trim(self) -> None:
        gone = await asyncio.to_thread(self._store.log.trim, KEPT)
        if not gone:
            return
        kept = await asyncio.to_thread(self._store.log.checkpoints)
        needed = {name for checkpoint in kept for name in checkpoint.files.values()}
        unneeded = {name for checkpoint in gone for name in checkpoint.files.values()} - needed
        self._stored -= unneeded
        await self._files.take_away(sorted(unneeded))
        self._named = {which: name for which, name in self._named.items() if name in needed}
