"""The archive of a crawl: parcels in, WARC segments and their index out, each record exactly once.

The last station before settle. `place` writes, `marks` says what to commit, the frontier commits the marks
together with the pages, `committed` acknowledges, `synced` says that the commits are on the disk; whatever falls
between is cut off by the next `open`. One archive per folder, used from one thread. Never fetches, parses or
decides what is worth keeping.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from skitter.archive.background import Background
from skitter.archive.packing import Parcel
from skitter.archive.page_cache import leave_cache
from skitter.archive.record_place import Archived, place_parcel
from skitter.archive.recovery import next_serial, recover
from skitter.archive.schema import Table, choose_tables
from skitter.archive.segments import INDEX, Segment, fault, sync_folder
from skitter.archive.tables.journal import entry
from skitter.archive.tables.table_writer import InChild, InProcess, TableWriter
from skitter.archive.warc import records
from skitter.archive.warc.cdxj import line_end, write_merged
from skitter.archive.warc.coding import CODINGS, OPEN, decode_record
from skitter.clock import Clock
from skitter.errors import FolderInUse, SettingsError
from skitter.faultpoints import Point, reach
from skitter.model import Copy, RecordAt, SegmentMark
from skitter.settings import ArchiveSettings

__all__ = ["Archive", "Archived"]

MERGED_INDEX = "index.cdxj"
# A merge takes 1 s per 100 MB; above this (about two million pages) every stop of a crawl would take longer than
# anyone waits, and readers take the segments' own indexes.
_MERGED_AT_MOST = 500_000_000
_TRIES = 20
_BETWEEN_TRIES = 0.05
_PREFIX = re.compile(r"[\w.-]{1,100}", re.ASCII)


class Carried(NamedTuple):
    """An exchange as it lies in a segment: its members (request, answer, metadata), its index line up to where
    the place begins, its rows, and the URL that it is a revisit of."""

    members: tuple[bytes, bytes, bytes]
    line: bytes
    rows: bytes
    revisit_of: str


class Archive:
    """At most one segment is current; full ones wait until their last records are committed, those commits are on
    the disk, and the background has written their parts and given them their names.

    `marks` and `committed` alternate: `committed` acknowledges what the last `marks` returned, also when
    more was appended in between. A segment is finished only on synced commits: so a finished one of which the
    frontier knows nothing, even after a power loss, is of an earlier frontier.
    """

    def __init__(
        self,
        folder: Path,
        settings: ArchiveSettings,
        clock: Clock,
        about: Mapping[str, str],
        lock: int,
        tables: Sequence[Table],
        writer: TableWriter,
        current: Segment | None,
        serial: int,
        unstored: Iterable[str] = (),
    ) -> None:
        self.folder = folder
        self._settings = settings
        self._coder = CODINGS[settings.compression].coder(settings.level)
        self._clock = clock
        self._about = dict(about)
        self._lock = lock
        self._tables = tables
        self._writer = writer
        self._current = current
        if current is not None:
            current.part_at = current.begun_at = clock.now()
        self._serial = serial
        # Only with an object store: segments that may yet be lost, and with them whatever refers to their
        # records.
        self._unstored = set(unstored)
        self._full: list[Segment] = []
        self._offered: dict[str, SegmentMark] = {}
        self._ids = records.record_ids()
        self._begun_since_sync = False
        self._background = Background()
        self.parts_written = 0
        self._durable: set[str] = set()
        self._being_synced: set[str] = set()

    @classmethod
    def open(
        cls,
        folder: Path,
        settings: ArchiveSettings,
        clock: Clock,
        marks: Iterable[SegmentMark],
        about: Mapping[str, str],
        *,
        added: Sequence[Table] = (),
        in_child: bool = True,
    ) -> Archive:
        """Recover the folder to the committed `marks` (all that were ever committed) and go on from there.

        `about` goes into each segment's warcinfo: `operator`, `http-header-user-agent`, `http-header-from`,
        `description` and whatever else the crawl wants to say of itself. `added` are tables of somebody else's,
        beside those that the settings name. Without `in_child`, this process writes the tables, and loads pyarrow
        for that: for tests and benchmarks.
        """
        if _PREFIX.fullmatch(settings.prefix) is None:
            raise SettingsError(
                f"archive.prefix must be letters, digits, '.', '_' or '-': {settings.prefix!r}"
            )
        tables = choose_tables(settings.tables, added)
        known = tuple(marks)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = _lock(folder)
            writer: TableWriter = InChild(lock, folder) if in_child else InProcess()
            try:
                coding = CODINGS[settings.compression]
                current = recover(folder, known, settings.segment_size, tables, coding, writer)
                unstored = [mark.segment for mark in known if settings.url and not mark.stored]
                serial = next_serial(folder, known)
                return cls(folder, settings, clock, about, lock, tables, writer, current, serial, unstored)
            except BaseException:
                writer.close()
                os.close(lock)
                raise
        except OSError as error:
            raise fault(folder, error) from error

    def place(self, parcel: Parcel, original: Copy | None = None) -> Archived:
        """Store one exchange; with `original`, as a revisit that points at that copy instead of a body, unless
        that copy may yet be lost with a segment that is not stored: then with its body again.

        `original.fetched_at` is the `sent_at` of the exchange that was stored then.
        """
        try:
            segment = self._writable()
            known = original if original is None or self._is_safe(original, parcel, segment) else None
            placed = place_parcel(parcel, known, segment.name, segment.length, self._coder)
            reach(Point.BEFORE_APPEND)
            segment.append(placed.records, placed.line, placed.rows)
            reach(Point.AFTER_APPEND)
        except OSError as error:
            raise fault(self.folder, error) from error
        return placed.archived

    def read(self, at: RecordAt) -> bytes | None:
        """A record that was committed, still compressed; None when it does not lie here any more."""
        for name in (at.segment, at.segment + OPEN):
            try:
                with (self.folder / name).open("rb") as file:
                    found = os.pread(file.fileno(), at.length, at.offset)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise fault(self.folder, error) from error
            return found if len(found) == at.length else None
        return None

    def carry_over(self, carried: Carried) -> RecordAt:
        """Store what another segment of this archive holds once more, here: that one is about to go."""
        try:
            segment = self._writable()
            request, record, metadata = (self._recoded(member) for member in carried.members)
            at = RecordAt(segment.name, segment.length + len(request), len(record))
            line = (carried.line, line_end(at.offset, at.length, segment.name))
            rows = entry(carried.rows, at, carried.revisit_of) if carried.rows and segment.tables else ()
            segment.append((request, record, metadata), line, rows)
        except OSError as error:
            raise fault(self.folder, error) from error
        return at

    def _recoded(self, member: bytes) -> bytes:
        if not member or member.startswith(self._coder.coding.magic):
            return member
        given = next(coding for coding in CODINGS.values() if member.startswith(coding.magic))
        return self._coder.page(decode_record(member, given))

    def _is_safe(self, original: Copy, parcel: Parcel, segment: Segment) -> bool:
        # A 304 has no body to store instead.
        at = original.segment
        return at not in self._unstored or at == segment.name or parcel.status == 304

    def stored(self, segment: str) -> None:
        """All of a finished segment is safe in the object store, and the frontier knows."""
        self._unstored.discard(segment)

    @property
    def growing(self) -> frozenset[str]:
        """Segments that are not finished."""
        return frozenset(segment.name for segment in self._segments())

    @property
    def child(self) -> int | None:
        """The process that writes the tables, when there is one."""
        return self._writer.pid if isinstance(self._writer, InChild) else None

    def marks(self) -> tuple[SegmentMark, ...]:
        """What to commit with the pages: the lengths of every segment that grew since the last commit."""
        growing = [segment for segment in self._segments() if not segment.is_committed]
        try:
            for segment in growing:
                segment.flush()
        except OSError as error:
            raise fault(self.folder, error) from error
        grown = (segment.mark for segment in growing)
        self._offered = {mark.segment: mark for mark in grown if mark.index_length}
        return tuple(self._offered.values())

    def committed(self) -> None:
        """The last `marks` are committed."""
        for segment in self._segments():
            segment.committed = self._offered.get(segment.name, segment.committed)
        self._offered = {}
        self._go_on()

    def synced(self) -> None:
        """What was committed when `sync_later` was last called is on the disk, in the frontier too."""
        self._durable |= self._being_synced
        self._being_synced = set()
        self._go_on()

    def sync(self) -> None:
        """Force all to the disk. Call it before the frontier syncs: a mark must not outlive its bytes."""
        self.sync_later()()

    def sync_later(self) -> Callable[[], None]:
        """What `sync` would do now, to be run in another thread while this one goes on appending."""
        try:
            files = [(os.dup(fd), done) for segment in self._segments() for fd, done in segment.descriptors()]
        except OSError as error:
            raise fault(self.folder, error) from error
        begun, self._begun_since_sync = self._begun_since_sync, False
        self._being_synced = {segment.name for segment in self._full if segment.is_committed}
        return partial(_sync_all, files, self.folder, begun)

    @property
    def free(self) -> int:
        """Bytes that can still be written to the archive's disk."""
        try:
            disk = os.statvfs(self.folder)
        except OSError as error:
            raise fault(self.folder, error) from error
        return disk.f_bavail * disk.f_frsize

    def rest(self) -> None:
        """Until the background has nothing left that can be done now."""
        try:
            while self._background.is_busy:
                self._background.wait()
                self._start_next()
        except OSError as error:
            raise fault(self.folder, error) from error

    def close(self, *, durable: bool = True) -> None:
        """Finish what was committed, cut off what was not, merge the index.

        Segments whose last marks were neither committed nor known not to be stay open for the next `open`;
        without `durable`, when the frontier could not be synced, all of them do.
        """
        if self._lock < 0:
            return
        try:
            self._background.wait()
            if durable:
                self._settle()
        except OSError as error:
            raise fault(self.folder, error) from error
        finally:
            self._background.close()
            self._writer.close()
            for segment in self._segments():
                segment.release()
            self._full, self._current = [], None
            os.close(self._lock)
            self._lock = -1

    def _settle(self) -> None:
        for segment in self._segments():
            if segment.name not in self._offered:
                segment.settle()
        self._write_index()

    def _segments(self) -> tuple[Segment, ...]:
        return (*self._full, self._current) if self._current is not None else tuple(self._full)

    def _writable(self) -> Segment:
        current = self._current
        if current is not None and not self._is_full(current):
            return current
        begun = self._begin()
        if current is not None:
            self._full.append(current)
        self._current = begun
        return begun

    def _is_full(self, segment: Segment) -> bool:
        if segment.length >= self._settings.segment_size:
            return True
        # What is in a growing segment is not in the object store: it must not wait there for ever.
        age = self._clock.now() - segment.begun_at if self._settings.url and segment.index_length else 0.0
        return age >= self._settings.segment_seconds

    def _begin(self) -> Segment:
        now = self._clock.now()
        stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(now))
        name = f"{self._settings.prefix}-{stamp}-{self._serial:05d}{self._coder.coding.suffix}"
        info = records.warcinfo(next(self._ids), records.warc_date(now), name, self._about)
        segment = Segment.create(self.folder, name, self._coder.page(info), self._tables, self._writer)
        segment.part_at = segment.begun_at = now
        if self._settings.url:
            self._unstored.add(name)
        self._serial += 1
        self._begun_since_sync = True
        return segment

    def _go_on(self) -> None:
        """The next work for the background, when it has none."""
        try:
            self._background.poll()
            if not self._background.is_busy:
                self._start_next()
        except OSError as error:
            raise fault(self.folder, error) from error

    def _start_next(self) -> None:
        current = self._current
        if current is not None and current.is_committed and self._is_full(current):
            self._full.append(current)
            self._current = None
        for segment in self._full:
            if segment.name in self._durable:
                self._background.start(segment.finish, partial(self._finished, segment))
                return
        now = self._clock.now()
        for segment in self._segments():
            if segment.is_part_due(now, self._settings.table_seconds):
                segment.rows_since_part, segment.part_at = 0, now
                self._background.start(
                    partial(segment.write_part, segment.committed.rows_length), self._part_written
                )
                return

    def _finished(self, segment: Segment) -> None:
        self._full.remove(segment)
        self._durable.discard(segment.name)

    def _part_written(self) -> None:
        self.parts_written += 1

    def _write_index(self) -> None:
        """Unless it is there already: each segment's lines are in it as they are in the segment's own."""
        if self._settings.url:
            return  # most segments are elsewhere, and readers take their own indexes
        merged = self.folder / MERGED_INDEX
        indexes = [path for path in self.folder.glob(f"*{INDEX}") if path.name != MERGED_INDEX]
        size = sum(path.stat().st_size for path in indexes)
        if size > _MERGED_AT_MOST:
            merged.unlink(missing_ok=True)
        elif indexes and not (merged.exists() and merged.stat().st_size == size and self._is_newest(merged)):
            write_merged(sorted(indexes), merged)
            sync_folder(self.folder)

    def _is_newest(self, merged: Path) -> bool:
        written = merged.stat().st_mtime_ns
        return all(path.stat().st_mtime_ns <= written for path in self.folder.glob(f"*{INDEX}"))


def _sync_all(files: list[tuple[int, int]], folder: Path, begun: bool) -> None:
    """Descriptors, each with how much of its file need not stay in memory then."""
    try:
        for fd, done in files:
            os.fsync(fd)
            leave_cache(fd, done)
        if begun:
            sync_folder(folder)
    except OSError as error:
        raise fault(folder, error) from error
    finally:
        for fd, _ in files:
            os.close(fd)


def _lock(folder: Path) -> int:
    # On the folder itself: a lock file would be one more thing to clean up after a kill.
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for left in reversed(range(_TRIES)):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except BlockingIOError:
            # A child whose parent was killed is dying: not sooner than the disk has what it wrote last.
            if left:
                time.sleep(_BETWEEN_TRIES)
    os.close(fd)
    raise FolderInUse(f"another process writes to the archive in {folder}: wait for it or stop it")
