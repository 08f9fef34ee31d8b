"""Segments: the WARC files, their index journals, and how both survive a kill at any instant.

A segment grows as `NAME.warc.gz.open` beside `NAME.cdxj.open`, and is finished as `NAME.warc.gz` beside
`NAME.cdxj`. How much of a growing one counts is not told by the files but by the mark that the frontier
committed with the pages; recovery cuts the files back to it. Never shows a finished name for bytes that were
not committed, and never removes a byte that was.
"""

from __future__ import annotations

import errno
import os
import re
import zlib
from collections.abc import Iterable
from pathlib import Path

from skitter.archive.cdxj import TEMPORARY, write_journal, write_sorted
from skitter.errors import ArchiveFailed, DiskFull
from skitter.model import SegmentMark

OPEN = ".open"
WARC = ".warc.gz"
INDEX = ".cdxj"
_SERIAL = re.compile(r"-\d{14}-(\d{5,})\.(?:warc\.gz|cdxj)(?:\.open)?$")
_RECORD_ID = re.compile(rb"\r\nWARC-Record-ID: <([^>\r\n]+)>")
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def fault(folder: Path, error: OSError) -> ArchiveFailed:
    """The one place where the disk's errors become ours."""
    if error.errno in _NO_ROOM:
        return DiskFull(f"no room left in {folder} ({error.strerror}): free some and go on, nothing is lost")
    return ArchiveFailed(f"the archive in {folder} cannot be written: {error}")


class SegmentFiles:
    """The names that one segment goes by."""

    def __init__(self, folder: Path, segment: str) -> None:
        stem = segment.removesuffix(WARC)
        self.growing = folder / (segment + OPEN)
        self.journal = folder / (stem + INDEX + OPEN)
        self.finished = folder / segment
        self.index = folder / (stem + INDEX)

    def discard(self) -> None:
        # The WARC file last: as long as it is there, the next recovery knows what to take away.
        for path in (self.index, self.journal, self.growing):
            path.unlink(missing_ok=True)


class Segment:
    """A growing segment.

    `length` and `index_length` are what was written; `committed` is what the frontier last acknowledged, and
    never more. The files may be longer than `length` only inside a failing `append`.
    """

    def __init__(self, folder: Path, name: str, info_id: str, mark: SegmentMark) -> None:
        self.name = name
        self.info_id = info_id
        self.length = mark.length
        self.index_length = mark.index_length
        self.committed = mark
        self._files = SegmentFiles(folder, name)
        self._warc = os.open(self._files.growing, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self._journal = os.open(self._files.journal, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:
            os.close(self._warc)
            raise

    @classmethod
    def create(cls, folder: Path, name: str, info_id: str, warcinfo: bytes) -> Segment:
        files = SegmentFiles(folder, name)
        try:
            segment = cls(folder, name, info_id, SegmentMark(name, 0, 0))
        except OSError:
            files.discard()
            raise
        try:
            segment.append(warcinfo, b"")
        except OSError:
            segment.discard()
            raise
        return segment

    @property
    def mark(self) -> SegmentMark:
        return SegmentMark(self.name, self.length, self.index_length)

    @property
    def is_committed(self) -> bool:
        return self.committed.length == self.length

    def append(self, members: bytes, line: bytes) -> None:
        """Both writes or neither. Written through at once, so that a full disk is this append's fault."""
        try:
            _write(self._warc, members, self.length)
            _write(self._journal, line, self.index_length)
        except OSError:
            self._cut(self.mark)
            raise
        self.length += len(members)
        self.index_length += len(line)

    def descriptors(self) -> tuple[int, int]:
        return self._warc, self._journal

    def sync(self) -> None:
        os.fsync(self._warc)
        os.fsync(self._journal)

    def finish(self) -> None:
        """Give a committed segment its final names.

        In this order, so that a kill between any two steps leaves `recover` something unambiguous: while
        `.warc.gz.open` is there everything can be done again; once `.warc.gz` is there its index is whole and
        only the journal is left to take away.
        """
        files = self._files
        self.sync()
        write_sorted(files.journal, self.index_length, files.index)
        os.rename(files.growing, files.finished)
        sync_folder(files.finished.parent)
        self.release()
        os.unlink(files.journal)

    def settle(self) -> None:
        """Keep what was committed and nothing else: finish it, or remove it when that is nothing."""
        if self.committed.index_length == 0:
            self.discard()
            return
        self._cut(self.committed)
        self.length, self.index_length = self.committed.length, self.committed.index_length
        self.finish()

    def discard(self) -> None:
        self.release()
        self._files.discard()

    def release(self) -> None:
        for fd in (self._warc, self._journal):
            if fd >= 0:
                os.close(fd)
        self._warc = self._journal = -1

    def _cut(self, mark: SegmentMark) -> None:
        os.ftruncate(self._warc, mark.length)
        os.ftruncate(self._journal, mark.index_length)


def recover(folder: Path, marks: Iterable[SegmentMark], segment_size: int) -> Segment | None:
    """Bring the folder to exactly what was committed; returns the segment to continue, if one has room."""
    for path in folder.glob(f"*{TEMPORARY}"):
        path.unlink()
    committed = {mark.segment: mark for mark in marks}
    _take_names_back(folder, committed)
    growing = sorted((path.name.removesuffix(OPEN) for path in folder.glob(f"*{WARC}{OPEN}")), key=_serial)
    _refuse_missing(folder, committed, growing)
    segments = [_resumed(folder, committed[name]) for name in growing if name in committed]
    for name in growing:
        if name not in committed:
            SegmentFiles(folder, name).discard()
    _remove_spent_journals(folder, committed)
    continued = segments.pop() if segments and segments[-1].length < segment_size else None
    for segment in segments:
        segment.finish()
    return continued


def next_serial(folder: Path, marks: Iterable[SegmentMark]) -> int:
    """One more than any segment that is here or was ever committed, also those moved away since."""
    names = (*(path.name for path in folder.iterdir()), *(mark.segment for mark in marks))
    return 1 + max((_serial(name) for name in names), default=-1)


def _serial(name: str) -> int:
    found = _SERIAL.search(name)
    return int(found[1]) if found else -1


def _take_names_back(folder: Path, committed: dict[str, SegmentMark]) -> None:
    """A power loss may cost the frontier its last commits; a segment that was finished on them grows again.

    One that is newer than all the frontier knows of goes. Where it knows of none, somebody has begun a new
    frontier beside an old archive: nothing is touched."""
    for name, mark in committed.items():
        files = SegmentFiles(folder, name)
        if files.finished.exists() and files.finished.stat().st_size > mark.length:
            write_journal(files.index, mark.length, files.journal)
            os.rename(files.finished, files.growing)
    newest = max(map(_serial, committed), default=None)
    for finished in folder.glob(f"*{WARC}"):
        if newest is not None and _serial(finished.name) > newest:
            os.rename(finished, SegmentFiles(folder, finished.name).growing)


def _resumed(folder: Path, mark: SegmentMark) -> Segment:
    files = SegmentFiles(folder, mark.segment)
    _cut_back(files.growing, mark.length)
    _cut_back(files.journal, mark.index_length)
    # Left by a finish that was interrupted; the journal it was made from is still there.
    files.index.unlink(missing_ok=True)
    return Segment(folder, mark.segment, _info_id(files.growing), mark)


def _cut_back(path: Path, length: int) -> None:
    size = path.stat().st_size if path.exists() else 0
    if size < length:
        raise ArchiveFailed(
            f"{path} lacks {length - size} of its {length} committed bytes (power loss?): put back a copy of "
            f"the file that is at least as long, or begin a new crawl folder"
        )
    os.truncate(path, length)


def _refuse_missing(folder: Path, committed: dict[str, SegmentMark], growing: list[str]) -> None:
    # A finished segment may be moved elsewhere; its index then still says that it was finished.
    present = set(os.listdir(folder)).union(growing)
    for name, mark in committed.items():
        if name not in present and name.removesuffix(WARC) + INDEX not in present:
            raise ArchiveFailed(
                f"{folder / name} is gone with its {mark.length} committed bytes: put the file back (and the "
                f"{INDEX} file of that name), or begin a new crawl folder"
            )


def _remove_spent_journals(folder: Path, committed: dict[str, SegmentMark]) -> None:
    for journal in folder.glob(f"*{INDEX}{OPEN}"):
        name = journal.name.removesuffix(INDEX + OPEN) + WARC
        if name not in committed or not (folder / (name + OPEN)).exists():
            journal.unlink()


def _info_id(path: Path) -> str:
    with path.open("rb") as warc:
        start = warc.read(65_536)
    try:
        found = _RECORD_ID.search(zlib.decompressobj(31).decompress(start, 65_536))
    except zlib.error:
        found = None
    if found is None:
        raise ArchiveFailed(f"{path} does not begin with a warcinfo record: put back an undamaged copy of it")
    return found[1].decode("ascii", "replace")


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
