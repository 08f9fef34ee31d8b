"""A store whose commits are in a log elsewhere before they are in its own tables.

Over any other store. A commit is appended to the log, then written here together with its place in the log, and
only then it is done: so the tables are never ahead of the log, and a folder that lacks commits gets them from
there. The append runs in a thread of its own: it takes as long as the database's standby, some milliseconds, and
the event loop goes on meanwhile.

    open    commits are taken
    broken  fenced, or a commit whose outcome is unknown: every further commit raises, and the process must open
            the crawl anew, which reads from the log what became of it
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from concurrent.futures import ThreadPoolExecutor

from skitter.frontier.log.base import Claim, Log
from skitter.frontier.log.heartbeat import Beating
from skitter.frontier.log.packing import NUMBERS, Change, pack
from skitter.frontier.log.position import Position, put_position
from skitter.frontier.stores.base import Changes, Store

# Whoever is cancelled waits so long for the outcome: a standby is promoted within 20 to 25 s.
_PATIENCE = 30.0


class LoggedChanges:
    def __init__(self, inner: Changes) -> None:
        self.inner = inner
        self.made: list[Change] = []
        self._append = self.made.append
        self._put, self._delete = inner.put, inner.delete

    def put(self, table: str, key: bytes, value: bytes) -> None:
        self._append((NUMBERS[table], key, value))
        self._put(table, key, value)

    def put_all(self, table: str, rows: Iterable[tuple[bytes, bytes]]) -> None:
        number, rows = NUMBERS[table], list(rows)
        self.made += [(number, key, value) for key, value in rows]
        self.inner.put_all(table, rows)

    def delete(self, table: str, key: bytes) -> None:
        self._append((NUMBERS[table], key))
        self._delete(table, key)

    def delete_range(self, table: str, start: bytes, end: bytes) -> None:
        self._append((NUMBERS[table], start, end, True))
        self.inner.delete_range(table, start, end)

    def is_empty(self) -> bool:
        return not self.made


class LoggedStore:
    """`inner` has all commits of the log up to the claim's; it is closed with this store."""

    read_only = False
    keeps_every_commit = True

    def __init__(self, inner: Store, log: Log, claim: Claim, beating: Beating) -> None:
        self.inner = inner
        self.log = log
        self.claim = claim
        self.has_moved = claim.has_moved
        self.sequence = claim.sequence
        self._fault: BaseException | None = None
        self.is_closed = False
        self._appending = ThreadPoolExecutor(1, thread_name_prefix="log")
        self._beating = beating
        self.get, self.scan, self.first, self.first_keys = (
            inner.get,
            inner.scan,
            inner.first,
            inner.first_keys,
        )
        self.sync, self.compact = inner.sync, inner.compact

    def changes(self) -> LoggedChanges:
        self._check()
        return LoggedChanges(self.inner.changes())

    def commit(self, changes: Changes) -> None:
        assert isinstance(changes, LoggedChanges)
        self._check()
        self._appending.submit(self._append, changes.made).result()
        self._write(changes)

    def commit_soon(self, changes: Changes) -> Awaitable[None]:
        assert isinstance(changes, LoggedChanges)
        self._check()
        return self._commit_soon(changes)

    async def _commit_soon(self, changes: LoggedChanges) -> None:
        """Cancelled or not, the commit is made: nobody else may write before its outcome is known."""
        appending = asyncio.wrap_future(self._appending.submit(self._append, changes.made))
        cancelled: asyncio.CancelledError | None = None
        while not appending.done():
            try:
                await asyncio.wait((appending,))
            except asyncio.CancelledError as error:
                if cancelled is None:
                    asyncio.get_running_loop().call_later(_PATIENCE, self._give_up_on, appending)
                cancelled = error
        appending.result()
        self._write(changes)
        if cancelled is not None:
            raise cancelled

    def _give_up_on(self, appending: asyncio.Future[None]) -> None:
        if not appending.done():
            self.log.give_up()

    def _append(self, made: list[Change]) -> None:
        try:
            self.log.append(self.sequence + 1, pack(made))
        except BaseException as error:
            self._break(error)
            raise
        self.sequence += 1

    def _write(self, changes: LoggedChanges) -> None:
        """What is in the log and cannot be written here is read from there at the next opening."""
        put_position(changes.inner, Position(self.claim.crawl, self.sequence, self.claim.epoch))
        try:
            self.inner.commit(changes.inner)
        except BaseException as error:
            self._break(error)
            raise

    def _break(self, error: BaseException) -> None:
        self._fault = self._fault or error

    def _check(self) -> None:
        if fault := self._fault or self._beating.fault:
            raise fault

    def die(self) -> None:
        """For tests: the end of a process, as far as the log sees it. The inner store is left as it is."""
        self.is_closed = True
        self._beating.stop()
        self._appending.shutdown()
        self.log.close()

    def close(self) -> None:
        """Whoever ends in order lets another owner begin at once."""
        if self.is_closed:
            return
        self.is_closed = True
        self._beating.stop()
        self._appending.shutdown()
        try:
            self.inner.close()
        finally:
            if (self._fault or self._beating.fault) is None:
                self.log.release()
            self.log.close()
