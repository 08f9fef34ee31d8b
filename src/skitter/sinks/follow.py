"""The loop of a sink: look what is committed, send what the target lacks, wait, look again.

Reads finished files of the archive alone, so a crawl that runs beside it does not notice. Holds nothing that
matters: what was delivered is for the target to say, and it is asked anew after each of its faults.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Protocol

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skitter.archive.schema import PAGES
from skitter.clock import Clock
from skitter.collection.collection import Collection
from skitter.collection.source import FolderSource
from skitter.errors import ArchiveFailed, SkitterError, TargetFailed
from skitter.sinks.parts import CHANGES, Part, final_parts, lacking
from skitter.sinks.reading import Delivery, PartReader
from skitter.sinks.target import Target

TABLES = ("pages", "links", "text", "items", CHANGES)
# Of `changes`: each lot is one pass over the URLs of the archive.
_PARTS_A_LOT = 64
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0
_TRIES_OF_ONCE = 6
# To list an object store costs money, a folder nothing.
_POLL, _POLL_REMOTE = 1.0, 30.0


class Sent(msgspec.Struct):
    """What a sink has done and what it has yet to do. `newest` is the time of the newest answer that was sent, in
    seconds since 1970."""

    rows: dict[str, int] = {}
    parts: int = 0
    behind_parts: int = 0
    behind_rows: int = 0
    newest: float = 0.0
    retries: int = 0


class Teller(Protocol):
    def progress(self, sent: Sent) -> None: ...

    def trouble(self, error: SkitterError, wait: float) -> None: ...


class Sink:
    """`opening` makes the target, again after each of its faults."""

    def __init__(
        self,
        place: Path | str,
        tables: Sequence[str],
        where: str,
        crawl: str,
        opening: Callable[[], Target],
        clock: Clock,
        teller: Teller,
    ) -> None:
        self._place = place
        self._tables = tables
        self._where = where
        self._crawl = crawl
        self._opening = opening
        self._clock = clock
        self._teller = teller
        self.stop = threading.Event()
        self.sent = Sent(rows=dict.fromkeys(tables, 0))

    def run(self, *, once: bool) -> Sent:
        """Until `stop` is set; with `once`, until all that is committed now is sent."""
        target: Target | None = (
            self._opening()
        )  # a first fault is said at once: it is most often a wrong name
        failures = 0
        try:
            while not self.stop.is_set():
                parts = self.sent.parts
                try:
                    target = target or self._opening()
                    self._follow(target, once=once)
                    return self.sent
                except (TargetFailed, ArchiveFailed) as error:
                    _close(target)
                    target = None
                    failures = 1 if self.sent.parts > parts else failures + 1
                    if once and failures >= _TRIES_OF_ONCE:
                        raise
                    self._wait_after(error, failures)
            return self.sent
        finally:
            _close(target)

    def _wait_after(self, error: TargetFailed | ArchiveFailed, failures: int) -> None:
        asked = error.wait if isinstance(error, TargetFailed) else 0.0
        wait = max(asked, min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(failures - 1, 6)))
        self.sent.retries += 1
        self._teller.trouble(error, wait)
        self.stop.wait(wait)

    def _follow(self, target: Target, *, once: bool) -> None:
        delivered = target.delivered()
        seen: object = None
        while not self.stop.is_set():
            now = self._looks()
            if now is None or now != seen:
                self._send_all(target, delivered)
                seen = now
            if once:
                return
            self.stop.wait(_POLL if now is not None else _POLL_REMOTE)

    def _looks(self) -> object:
        """Changes whenever a part or a segment gets its name; None where that cannot be told."""
        archive = Path(self._place) / "archive" if isinstance(self._place, Path) else None
        if archive is None or not archive.is_dir():
            return None
        folders = (archive, *(archive / table for table in TABLES))
        return tuple(folder.stat().st_mtime_ns if folder.is_dir() else 0 for folder in folders)

    def _send_all(self, target: Target, delivered: set[str]) -> None:
        with Collection.at(self._place) as collection:
            parts = final_parts(collection.source, collection.layout, self._tables)
            left = lacking(parts, delivered)
            self._measure(collection, left)
            self._teller.progress(self.sent)
            reader = PartReader(collection.source, self._crawl, self._where)
            try:
                for part, rows, replaces in self._readings(reader, left, collection):
                    target.deliver(Delivery(name=part.name, table=part.table, rows=rows, replaces=replaces))
                    delivered.add(part.name)
                    delivered.difference_update(replaces)
                    self._count(part, rows)
            finally:
                reader.close()
        self._teller.progress(self.sent)

    def _readings(
        self,
        reader: PartReader,
        left: Sequence[tuple[Part, tuple[str, ...]]],
        collection: Collection,
    ) -> Iterator[tuple[Part, pa.Table, tuple[str, ...]]]:
        waiting = iter(left)
        while lot := list(islice(waiting, _PARTS_A_LOT)):
            changes = self._changes(reader, [part for part, _ in lot if part.table == CHANGES], collection)
            for part, replaces in lot:
                if self.stop.is_set():
                    return
                rows = changes.pop(part.name) if part.table == CHANGES else reader.read(part)
                yield part, rows, replaces

    def _changes(
        self, reader: PartReader, parts: Sequence[Part], collection: Collection
    ) -> dict[str, pa.Table]:
        if not parts:
            return {}
        pages = final_parts(collection.source, collection.layout, (PAGES.name,))
        return reader.changes(parts, [part.file for part in pages])

    def _measure(self, collection: Collection, left: Sequence[tuple[Part, tuple[str, ...]]]) -> None:
        """How far the target is behind; rows only where to count them costs no download."""
        self.sent.behind_parts = len(left)
        source = collection.source
        here = isinstance(source, FolderSource)
        counted = (part.file for part, _ in left if here and part.table != CHANGES)
        self.sent.behind_rows = sum(_rows_in(source.location(file)) for file in counted)

    def _count(self, part: Part, rows: pa.Table) -> None:
        sent = self.sent
        sent.parts += 1
        sent.behind_parts -= 1
        if part.table != CHANGES:
            sent.behind_rows = max(0, sent.behind_rows - rows.num_rows)
        sent.rows[part.table] += rows.num_rows
        newest = pc.max(rows["fetch_time"]).as_py() if rows.num_rows else None
        sent.newest = max(sent.newest, newest.timestamp() if newest else 0.0)
        self._teller.progress(sent)


def _rows_in(file: str) -> int:
    try:
        return int(pq.read_metadata(file).num_rows)
    except OSError:
        return 0


def _close(target: Target | None) -> None:
    if target is not None:
        with suppress(SkitterError):
            target.close()
