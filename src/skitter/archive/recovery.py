"""What a kill or a power loss left of the archive's files, brought back to exactly what was committed.

Runs once, when an archive is opened, before anything is written. The frontier's marks decide: growing files are
cut back to them, what has no mark goes, a segment that was finished on commits that are lost grows again. Never
removes a byte that was committed; where committed bytes are missing it says so and touches nothing. What is there
and cannot be read is set aside, and the crawl goes on.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from skitter.archive.schema import Table
from skitter.archive.segments import INDEX, ROWS, Segment, SegmentFiles, finished_in, growing_in
from skitter.archive.tables.journal import DamagedHeading, has_shape_of, read_tables
from skitter.archive.tables.parts import discard_unfinished, recover_parts
from skitter.archive.tables.table_writer import Rollback, TableWriter
from skitter.archive.warc.cdxj import TEMPORARY, write_journal
from skitter.archive.warc.coding import OPEN, Coding, coding_of, stem_of
from skitter.errors import ArchiveFailed
from skitter.model import SegmentMark

_SERIAL = re.compile(r"-\d{14}-(\d{5,})\.(?:warc\.gz|warc\.zst|cdxj|rows)(?:\.open)?$")
_INFO = re.compile(rb"WARC/1\.[01]\r\nWARC-Type: warcinfo\r\n")


def recover(
    folder: Path,
    marks: Iterable[SegmentMark],
    segment_size: int,
    tables: Sequence[Table],
    coding: Coding,
    writer: TableWriter,
) -> Segment | None:
    """Bring the folder to exactly what was committed; returns the segment to continue, if one has room and is of
    the coding and the tables that are wanted now."""
    committed = {mark.segment: mark for mark in marks}
    _refuse_other_versions(folder, committed)
    for path in folder.glob(f"*{TEMPORARY}"):
        path.unlink()
    discard_unfinished(folder)
    _take_names_back(folder, committed, writer)
    growing = sorted(growing_in(folder), key=_serial)
    _refuse_missing(folder, committed, growing)
    segments = [_resume(folder, committed[name], tables, writer) for name in growing if name in committed]
    for name in growing:
        if name not in committed:
            SegmentFiles(folder, name).discard()
    _remove_spent_journals(folder, committed)
    last = segments[-1] if segments else None
    goes_on = (
        last is not None
        and last.length < segment_size
        and coding_of(last.name) is coding
        and has_shape_of(last.tables, tables)
        and not last.has_damaged_heading
    )
    continued = segments.pop() if goes_on else None
    for segment in segments:
        segment.finish()
    return continued


def _refuse_other_versions(folder: Path, committed: dict[str, SegmentMark]) -> None:
    """Before anything is changed."""
    for name in growing_in(folder):
        rows, length = (
            SegmentFiles(folder, name).rows,
            committed[name].rows_length if name in committed else 0,
        )
        if length and rows.exists() and rows.stat().st_size >= length:
            with contextlib.suppress(DamagedHeading):
                read_tables(rows, length)


def lost(folder: Path, marks: Iterable[SegmentMark]) -> list[SegmentMark]:
    """Segments of which committed bytes are neither here nor in the object store."""
    return [mark for mark in marks if not mark.stored and SegmentFiles(folder, mark.segment).lacks(mark)]


def next_serial(folder: Path, marks: Iterable[SegmentMark]) -> int:
    """One more than any segment that is here or was ever committed, also those moved away since."""
    names = (*(path.name for path in folder.iterdir()), *(mark.segment for mark in marks))
    return 1 + max((_serial(name) for name in names), default=-1)


def _serial(name: str) -> int:
    found = _SERIAL.search(name)
    return int(found[1]) if found else -1


def _take_names_back(folder: Path, committed: dict[str, SegmentMark], writer: TableWriter) -> None:
    """A power loss may cost the frontier its last commits; a segment that was finished on them grows again.

    One that is newer than all the frontier knows of goes. Where it knows of none, somebody has begun a new
    frontier beside an old archive: nothing is touched."""
    for name, mark in committed.items():
        files = SegmentFiles(folder, name)
        if files.finished.exists() and files.finished.stat().st_size > mark.length:
            _take_rows_back(files, mark, writer)
            write_journal(files.index, mark.length, files.journal)
            os.rename(files.finished, files.growing)
    newest = max(map(_serial, committed), default=None)
    for name in finished_in(folder):
        if newest is not None and _serial(name) > newest:
            os.rename(folder / name, SegmentFiles(folder, name).growing)


def _take_rows_back(files: SegmentFiles, mark: SegmentMark, writer: TableWriter) -> None:
    """The journal that the parts were made of is gone: a hole of its length stands for the rows in them."""
    writer.run(Rollback(str(files.folder), files.stem, mark.rows_length, mark.length))
    with files.rows.open("wb") as rows:
        rows.truncate(mark.rows_length)


def _resume(folder: Path, mark: SegmentMark, wanted: Sequence[Table], writer: TableWriter) -> Segment:
    """Where a journal no longer says of which tables it is, its rows are tried as those of the tables that are
    `wanted` now; what does not fit is set aside when the segment is finished."""
    files = SegmentFiles(folder, mark.segment)
    _cut_back(files.growing, mark.length)
    _cut_back(files.journal, mark.index_length)
    _cut_back(files.rows, mark.rows_length)
    is_damaged = False
    try:
        tables = read_tables(files.rows, mark.rows_length) if mark.rows_length else ()
    except DamagedHeading:
        tables, is_damaged = tuple(wanted), True
    # Behind a hole every row is in Parquet already, and the journal no longer says of which tables.
    names = {table.name for table in tables or ()}
    parts_end = recover_parts(folder, names, files.stem, mark.rows_length)
    # Left by a finish that was interrupted; the journal it was made from is still there.
    files.index.unlink(missing_ok=True)
    _check_start(files.growing)
    segment = Segment(folder, mark.segment, mark, tables or (), writer, parts_end)
    segment.has_damaged_heading = is_damaged
    return segment


def _cut_back(path: Path, length: int) -> None:
    size = path.stat().st_size if path.exists() else 0
    if size < length:
        raise ArchiveFailed(
            f"{path} lacks {length - size} of its {length} committed bytes (power loss?): put back a copy of "
            f"the file that is at least as long, or begin a new crawl folder"
        )
    if size > length:
        os.truncate(path, length)


def _refuse_missing(folder: Path, committed: dict[str, SegmentMark], growing: list[str]) -> None:
    # A finished segment may be moved elsewhere; its index then still says that it was finished.
    present = set(os.listdir(folder)).union(growing)
    for name, mark in committed.items():
        if not mark.stored and name not in present and stem_of(name) + INDEX not in present:
            raise ArchiveFailed(
                f"{folder / name} is gone with its {mark.length} committed bytes: put the file back (and the "
                f"{INDEX} file of that name), or begin a new crawl folder"
            )


def _remove_spent_journals(folder: Path, committed: dict[str, SegmentMark]) -> None:
    needed = {stem_of(name) for name in growing_in(folder) if name in committed}
    for end in (INDEX, ROWS):
        for journal in folder.glob(f"*{end}{OPEN}"):
            if journal.name.removesuffix(end + OPEN) not in needed:
                journal.unlink()


def _check_start(path: Path) -> None:
    """Records do not name their warcinfo record: it must be there, before them."""
    with path.open("rb") as warc:
        start = warc.read(65_536)
    coding = coding_of(path.name)
    try:
        begins = _INFO.match(coding.beginning(start, 65_536))
    except coding.fault:
        begins = None
    if begins is None:
        raise ArchiveFailed(f"{path} does not begin with a warcinfo record: put back an undamaged copy of it")
