"""Segments: the WARC files and their journals, growing and finished.

A segment grows as `NAME.warc.gz.open` beside `NAME.cdxj.open` and `NAME.rows.open`, and is finished as
`NAME.warc.gz` beside `NAME.cdxj` and its parts of the tables; `.warc.zst` if it is of zstd (`warc/coding.py`).
How much of a growing one counts is said by the mark that the frontier committed with the pages (`recovery.py`).
Never shows a finished name for bytes that were not committed.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Sequence
from pathlib import Path

from skitter.archive.page_cache import leave_cache
from skitter.archive.schema import Table
from skitter.archive.set_aside import set_lines_aside
from skitter.archive.tables.journal import heading
from skitter.archive.tables.parts import all_parts_of, discard_parts, sync_tables
from skitter.archive.tables.table_writer import Stretch, TableWriter
from skitter.archive.warc.cdxj import write_sorted
from skitter.archive.warc.coding import OPEN, is_segment, stem_of
from skitter.errors import ArchiveFailed, DiskFull
from skitter.faultpoints import Point, reach
from skitter.model import SegmentMark

INDEX = ".cdxj"
ROWS = ".rows"
# A part of this many rows or bytes of rows is due: 2,000 pages of 29 KB are 22 MB of rows and 5 MB of Parquet.
# Making it takes several times the rows in memory.
ROWS_A_PART = 2_000
BYTES_A_PART = 16_000_000
# What is held back until the next commit asks for it: as much as 500 pages of 29 KB take.
_BUFFER = 8_000_000
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def fault(folder: Path, error: OSError) -> ArchiveFailed:
    """The one place where the disk's errors become ours."""
    if error.errno in _NO_ROOM:
        return DiskFull(f"no room left in {folder} ({error.strerror}): free some and go on, nothing is lost")
    return ArchiveFailed(f"the archive in {folder} cannot be written: {error}")


def finished_in(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if is_segment(name)]


def growing_in(folder: Path) -> list[str]:
    """By the names that they will be finished under."""
    names = (name.removesuffix(OPEN) for name in os.listdir(folder) if name.endswith(OPEN))
    return [name for name in names if is_segment(name)]


class SegmentFiles:
    """The names that one segment goes by."""

    def __init__(self, folder: Path, segment: str) -> None:
        self.folder = folder
        self.stem = stem = stem_of(segment)
        self.growing = folder / (segment + OPEN)
        self.journal = folder / (stem + INDEX + OPEN)
        self.rows = folder / (stem + ROWS + OPEN)
        self.finished = folder / segment
        self.index = folder / (stem + INDEX)

    def lacks(self, mark: SegmentMark) -> bool:
        """Whether committed bytes are missing; of a finished segment, in the WARC file itself."""
        if self.finished.exists():
            return self.finished.stat().st_size < mark.length
        wanted = (
            (self.growing, mark.length),
            (self.journal, mark.index_length),
            (self.rows, mark.rows_length),
        )
        return any(not path.exists() or path.stat().st_size < length for path, length in wanted)

    def shown(self) -> list[Path]:
        """All files of a finished segment, the WARC file last."""
        parts = (part.path for part in all_parts_of(self.folder, self.stem))
        return [*parts, self.index, self.finished]

    def discard(self) -> None:
        # The WARC file last: as long as it is there, the next recovery knows what to take away.
        discard_parts(self.folder, self.stem)
        for path in (self.index, self.journal, self.rows, self.growing):
            path.unlink(missing_ok=True)


class Segment:
    """A growing segment.

    The three lengths are what was appended; `flush` brings the files up to them, in one write each for all the
    records of a commit; `committed` is what the frontier last acknowledged, and never more. `parts_end` is how
    much of the rows is in Parquet; only committed ones are. `write_part` and `finish` may run in another thread,
    one at a time: the former while this one appends, the latter when nothing is appended any more.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        mark: SegmentMark,
        tables: Sequence[Table],
        writer: TableWriter,
        parts_end: int = 0,
    ) -> None:
        self.name = name
        self.length = mark.length
        self.index_length = mark.index_length
        self.rows_length = mark.rows_length
        self.committed = mark
        self.parts_end = parts_end
        self.rows_since_part = 0
        self.part_at = math.inf
        self.begun_at = math.inf
        self.has_damaged_heading = False
        self.tables = tuple(tables)
        self._writer = writer
        self._files = SegmentFiles(folder, name)
        self._waiting: tuple[list[bytes], list[bytes], list[bytes]] = ([], [], [])
        self._held = 0
        self._fds: list[int] = []
        try:
            for path in (self._files.growing, self._files.journal, self._files.rows):
                self._fds.append(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
        except OSError:
            self.release()
            raise

    @classmethod
    def create(
        cls, folder: Path, name: str, warcinfo: bytes, tables: Sequence[Table], writer: TableWriter
    ) -> Segment:
        files = SegmentFiles(folder, name)
        try:
            segment = cls(folder, name, SegmentMark(name, 0, 0), tables, writer)
        except OSError:
            files.discard()
            raise
        try:
            segment.append((warcinfo,), (), (heading(tables),) if tables else ())
            segment.flush()
            segment.rows_since_part = 0
        except OSError:
            segment.discard()
            raise
        return segment

    @property
    def mark(self) -> SegmentMark:
        return SegmentMark(self.name, self.length, self.index_length, self.rows_length)

    @property
    def is_committed(self) -> bool:
        return self.committed.length == self.length

    def is_part_due(self, now: float, seconds: float) -> bool:
        """Also of whatever there is after so many seconds, so that a slow crawl can be asked too."""
        waiting = self.committed.rows_length - self.parts_end
        return waiting > 0 and (
            self.rows_since_part >= ROWS_A_PART or waiting >= BYTES_A_PART or now - self.part_at >= seconds
        )

    def append(self, records: Sequence[bytes], line: Sequence[bytes], rows: Sequence[bytes]) -> None:
        """Records, index line and rows of one exchange, each in as many pieces as they come."""
        for waiting, pieces in zip(self._waiting, (records, line, rows), strict=True):
            waiting += pieces
        records_length, line_length, rows_length = (
            sum(map(len, records)),
            sum(map(len, line)),
            sum(map(len, rows)),
        )
        self.length += records_length
        self.index_length += line_length
        self.rows_length += rows_length
        self.rows_since_part += 1
        self._held += records_length + line_length + rows_length
        if self._held > _BUFFER:
            self.flush()

    def flush(self) -> None:
        """What was appended is in the files. On a full disk it is not, and this segment is worth no more than
        its last commit."""
        ends = (self.length, self.index_length, self.rows_length)
        for fd, waiting, end in zip(self._fds, self._waiting, ends, strict=True):
            content = b"".join(waiting)
            waiting.clear()
            _write(fd, content, end - len(content))
        self._held = 0

    def descriptors(self) -> list[tuple[int, int]]:
        """Each with how much of its file is not read again soon: all records, no lines, the rows in Parquet. None
        of one that is released."""
        return [*zip(self._fds, (self.length, 0, self.parts_end), strict=False)]

    def write_part(self, committed: int) -> None:
        """The next rows, a bounded stretch of those up to `committed`, as a part of each table."""
        files = self._files
        stretch = Stretch(
            str(files.rows),
            self.parts_end,
            committed,
            BYTES_A_PART,
            str(files.folder),
            self.name,
            files.stem,
            self.tables,
        )
        self.parts_end = self._writer.run(stretch)

    def finish(self) -> None:
        """Give a committed segment its final names.

        In this order, so that a kill between any two steps leaves `recover` something unambiguous: while
        the WARC file is `.open` everything can be done again; once it is not its index and its parts
        are whole and only the journals are left to take away.
        """
        files = self._files
        reach(Point.BEFORE_FINISH)
        for fd in self._fds:
            os.fsync(fd)
        leave_cache(self._fds[0], self.length)
        while self.parts_end < self.rows_length:
            self.write_part(self.rows_length)
        # Not sooner: as long as the journal is there, a part whose name a power loss took is written again.
        sync_tables(files.folder)
        if damaged := write_sorted(files.journal, self.index_length, files.index):
            set_lines_aside(files.folder, files.stem, damaged)
        os.rename(files.growing, files.finished)
        sync_folder(files.folder)
        self.release()
        os.unlink(files.journal)
        os.unlink(files.rows)

    def settle(self) -> None:
        """Keep what was committed and nothing else: finish it, or remove it when that is nothing."""
        mark = self.committed
        if mark.index_length == 0:
            self.discard()
            return
        self._drop_waiting()
        self._cut(mark)
        self.length, self.index_length, self.rows_length = mark.length, mark.index_length, mark.rows_length
        self.finish()

    def discard(self) -> None:
        self._drop_waiting()
        self.release()
        self._files.discard()

    def _drop_waiting(self) -> None:
        for waiting in self._waiting:
            waiting.clear()
        self._held = 0

    def release(self) -> None:
        while self._fds:
            os.close(self._fds.pop())

    def _cut(self, mark: SegmentMark) -> None:
        for fd, length in zip(self._fds, (mark.length, mark.index_length, mark.rows_length), strict=True):
            os.ftruncate(fd, length)


def _write(fd: int, content: bytes, offset: int) -> None:
    written = os.pwrite(fd, content, offset)
    while written < len(content):
        written += os.pwrite(fd, memoryview(content)[written:], offset + written)


def sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
