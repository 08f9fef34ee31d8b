"""The log in PostgreSQL: one row is the fence, one row a commit.

The only module that knows psycopg's calls for it; its errors become ours here. An append is one statement: it
moves the fence from the commit before to this one, under the owner's epoch, and inserts the commit, or does
neither. After a lost connection the outcome is read and not guessed. It is read by a write: a synchronous
commit returns only when the standby has all that was written before it, also what another connection was cut
off from.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg import conninfo, errors

from skitter.errors import Fenced, LogFailed, OwnedElsewhere, UsageError
from skitter.frontier.log import postgres_schema as sql
from skitter.frontier.log.base import Checkpoint, Claim, Entry, Owner, Standing
from skitter.frontier.log.replication import check_replication

T = TypeVar("T")
_Connection = psycopg.Connection[Any]
# A dead machine is noticed after some ten seconds. None of these ends a statement that is being carried out: a
# commit whose wait for a standby is cancelled has been made all the same.
_CONNECTING = {
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "target_session_attrs": "read-write",
    "application_name": "skitter",
}
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 2.0
_READ_AT_ONCE = 64
_LOST = (psycopg.OperationalError, psycopg.InterfaceError, errors.ReadOnlySqlTransaction)


class PostgresLog:
    """
    unclaimed  anybody may read
    claimed    appends are taken, one at a time; heartbeats may come from another thread
    fenced     every call of an owner raises `Fenced`
    """

    def __init__(
        self,
        url: str,
        *,
        lapse: float = 15.0,
        is_unreplicated: bool = False,
        tell: Callable[[str], None] | None = None,
        part: int = 0,
        links: tuple[Link, Link] | None = None,
    ) -> None:
        """An owner that is silent for `lapse` seconds may be replaced. `tell` is told when the database is away,
        and when it answers again. `links` are shared with the logs of other partitions: one for appends, one for
        the rest."""
        self._part = part
        self._lapse = lapse
        self._is_unreplicated = is_unreplicated
        self._given_up = threading.Event()
        self._has_own_links = links is None
        self._appending, self._beating = links or (Link(url, tell), Link(url, None))
        self._epoch = 0

    # -- for the owner

    def claim(self, owner: Owner) -> Claim:
        return self._appending.lasting(
            lambda connection: self._claim(connection, owner), self._given_up, tries=3
        )

    def _claim(self, connection: _Connection, owner: Owner) -> Claim:
        check_replication(connection, is_told=self._is_unreplicated)
        with connection.transaction():
            for statement in sql.CREATE:
                connection.execute(statement)
            connection.execute(sql.BEGIN, {"part": self._part, "crawl": uuid.uuid4().hex})
            row = connection.execute(sql.LOCK, {"part": self._part}).fetchone()
            assert row is not None
            crawl, _, sequence, former, place, is_free, silent = row
            if former != owner.ident and not is_free:
                raise OwnedElsewhere(
                    f"{place} works on this crawl and was heard of {silent:.0f} s ago: stop it first, or wait "
                    f"until it has been silent for {self._lapse:g} s (frontier.log_lapse)"
                )
            values = {"part": self._part, "ident": owner.ident, "place": owner.place, "lapse": self._lapse}
            claimed = connection.execute(sql.CLAIM, values).fetchone()
        assert claimed is not None
        self._epoch, has_moved = claimed
        return Claim(crawl=crawl, epoch=self._epoch, sequence=sequence, has_moved=has_moved)

    def append(self, sequence: int, body: bytes) -> None:
        is_again = False

        def send(connection: _Connection) -> None:
            nonlocal is_again
            if is_again and self._confirm(connection) == sequence:
                return
            is_again = True
            while not self._insert(connection, sequence, body):
                at = self._confirm(connection)
                if at == sequence:
                    return
                if at != sequence - 1:
                    raise LogFailed(
                        f"the frontier's log ends with commit {at} and not with {sequence - 1}: was the "
                        f"database put back to an earlier state? Nothing is written any more"
                    )

        self._appending.lasting(send, self._given_up)

    def _insert(self, connection: _Connection, sequence: int, body: bytes) -> bool:
        """Whether it is kept for certain."""
        warned = self._appending.warnings
        done = connection.execute(
            sql.APPEND, {**self._ours(), "sequence": sequence, "body": body}, prepare=True, binary=True
        )
        return done.rowcount == 1 and self._appending.warnings == warned

    def _confirm(self, connection: _Connection) -> int:
        """The last commit that is kept for certain."""
        while True:
            warned = self._appending.warnings
            row = connection.execute(sql.HEARTBEAT, self._ours()).fetchone()
            if row is None:
                raise self._fenced(connection)
            if self._appending.warnings == warned:
                return int(row[0])
            # the wait for the standby was cancelled: it is waited for again
            if self._given_up.is_set():
                raise LogFailed("the database does not wait for its standby any more: see its own log")

    def give_up(self) -> None:
        self._given_up.set()
        self._appending.interrupt()

    def heartbeat(self) -> None:
        def beat(connection: _Connection) -> None:
            if connection.execute(sql.HEARTBEAT, self._ours()).fetchone() is None:
                raise self._fenced(connection)

        self._beating.lasting(beat, self._given_up, tries=1)

    def _ours(self) -> dict[str, Any]:
        return {"part": self._part, "epoch": self._epoch}

    def keep_settings(self, settings: str) -> None:
        self._fenced_by(sql.KEEP_SETTINGS, {"settings": settings})

    def add_checkpoint(self, checkpoint: Checkpoint) -> None:
        files = msgspec.json.encode(checkpoint.files).decode()
        self._fenced_by(
            sql.ADD_CHECKPOINT, {"sequence": checkpoint.sequence, "files": files}, link=self._beating
        )

    def trim(self, keep: int) -> list[Checkpoint]:
        known = self.checkpoints()
        kept, gone = known[:keep], known[keep:]
        if len(kept) < keep:
            return []
        for checkpoint in gone:
            self._fenced_by(sql.DROP_CHECKPOINT, {"sequence": checkpoint.sequence}, link=self._beating)
        oldest = {"sequence": kept[-1].sequence}
        self._fenced_by(sql.TRIM, oldest, link=self._beating, is_question=True)
        return gone

    def release(self) -> None:
        with contextlib.suppress(LogFailed, Fenced):
            self._fenced_by(sql.RELEASE, {})

    def _fenced_by(
        self, statement: str, values: dict[str, Any], *, link: Link | None = None, is_question: bool = False
    ) -> None:
        """Carried out only while the epoch is ours."""

        def act(connection: _Connection) -> None:
            if connection.execute(statement, {**self._ours(), **values}).rowcount == 0 and not is_question:
                raise self._fenced(connection)

        (link or self._appending).lasting(act, self._given_up, tries=3)

    def _fenced(self, connection: _Connection) -> Fenced:
        row = connection.execute(sql.STANDING, {"part": self._part}).fetchone()
        if row is None:
            return Fenced(
                "the frontier's log is gone from its database: this process stops, and nothing was answered"
            )
        return Fenced(
            f"{row[5] or 'another process'} goes on with this crawl since it was taken over (epoch {row[1]}, "
            f"ours was {self._epoch}): this process stops, and answers nothing more"
        )

    # -- for anybody

    def standing(self) -> Standing | None:
        try:
            row = self._asked(lambda found: found.execute(sql.STANDING, {"part": self._part}).fetchone())
        except _NoTable:
            return None
        if row is None:
            return None
        crawl, epoch, sequence, first, owner, place, silent, is_free, settings = row
        return Standing(
            crawl=crawl,
            epoch=epoch,
            sequence=sequence,
            first=first,
            owner=owner or "",
            place=place or "",
            silent=float("inf") if silent is None else silent,
            is_free=is_free,
            settings=settings,
        )

    def read_from(self, sequence: int) -> Iterator[Entry]:
        while True:
            some = self._asked(partial(_read, self._part, sequence))
            yield from some
            if len(some) < _READ_AT_ONCE:
                return
            sequence = some[-1].sequence + 1

    def checkpoints(self) -> list[Checkpoint]:
        rows = self._asked(lambda found: found.execute(sql.CHECKPOINTS, {"part": self._part}).fetchall())
        return [Checkpoint(sequence=sequence, epoch=epoch, files=files) for sequence, epoch, files in rows]

    def _asked(self, question: Callable[[_Connection], T]) -> T:
        return self._beating.lasting(question, self._given_up, tries=3)

    def close(self) -> None:
        if self._has_own_links:
            self._appending.close()
            self._beating.close()


def _read(part: int, start: int, connection: _Connection) -> list[Entry]:
    asked = {"part": part, "start": start, "most": _READ_AT_ONCE}
    rows = connection.execute(sql.READ, asked, binary=True).fetchall()
    return [Entry(*row) for row in rows]


class _NoTable(LogFailed):
    """Nobody has ever claimed a log in this database."""


class Link:
    """A connection that is made again when it is lost. One thread at a time: the others wait."""

    def __init__(self, url: str, tell: Callable[[str], None] | None) -> None:
        self._conninfo = _conninfo(url)
        self._tell = tell or (lambda _: None)
        self._lock = threading.Lock()
        self._connection: _Connection | None = None
        self.warnings = 0

    def lasting(
        self, act: Callable[[_Connection], T], given_up: threading.Event | None = None, *, tries: int = 0
    ) -> T:
        """What the act returns, on as many connections as it takes; with `tries`, on at most so many, and none
        once it is `given_up`. The act may have been carried out in part on an earlier one."""
        given_up = given_up or threading.Event()
        wait, lost = _FIRST_WAIT, 0
        with self._lock:
            while True:
                try:
                    result = act(self._connected())
                except _LOST as error:
                    self._drop()
                    lost += 1
                    if lost == tries or given_up.wait(wait):
                        raise LogFailed(
                            f"the database of the frontier's log does not answer: {_line(error)}"
                        ) from error
                    if lost == 2:
                        self._tell(
                            f"the database of the frontier's log is away, nothing is committed: {_line(error)}"
                        )
                    wait = min(2 * wait, _LONGEST_WAIT)
                except errors.UndefinedTable as error:
                    raise _NoTable(f"the frontier's log is not in its database: {_line(error)}") from error
                except psycopg.Error as error:
                    raise LogFailed(f"the database of the frontier's log refuses: {_line(error)}") from error
                else:
                    if lost >= 2:
                        self._tell("the database of the frontier's log answers again")
                    return result

    def _connected(self) -> _Connection:
        if self._connection is None:
            self._connection = psycopg.connect(self._conninfo, autocommit=True)
            self._connection.add_notice_handler(self._note)
            for setting in sql.SESSION:
                self._connection.execute(setting)
        return self._connection

    def _note(self, notice: errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self.warnings += 1

    def interrupt(self) -> None:
        connection = self._connection
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.cancel_safe(timeout=2.0)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()

    def close(self) -> None:
        with self._lock:
            self._drop()


def _conninfo(url: str) -> str:
    try:
        given = conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise UsageError(f"frontier.log is not the URL of a database: {_line(error)}") from error
    return conninfo.make_conninfo("", **{**_CONNECTING, **given})


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
