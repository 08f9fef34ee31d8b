"""The archive of a crawl: exchanges in, WARC segments and their index out, each record exactly once.

The last station before settle. `append` writes, `marks` says what to commit, the frontier commits the marks
together with the pages, `committed` acknowledges; whatever falls between is cut off by the next `open`. One
archive per folder, used from one thread. Never fetches, parses or decides what is worth keeping.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import msgspec

from skitter.archive import warc
from skitter.archive.cdxj import index_line, write_merged
from skitter.archive.segments import INDEX, WARC, Segment, fault, next_serial, recover, sync_folder
from skitter.clock import Clock
from skitter.errors import FolderInUse, SettingsError
from skitter.faultpoints import Point, reach
from skitter.model import Copy, Exchange, RecordAt, SegmentMark
from skitter.settings import ArchiveSettings

MERGED_INDEX = "index.cdxj"
_PREFIX = re.compile(r"[\w.-]{1,100}", re.ASCII)


class Archived(msgspec.Struct, frozen=True):
    """Where an exchange went: its response or revisit record, and that record's id for a later `Copy`."""

    record: RecordAt
    record_id: str


class Archive:
    """At most one segment is current; full ones wait until their last records are committed.

    `marks` and `committed` alternate: `committed` acknowledges what the last `marks` returned, also when
    more was appended in between.
    """

    def __init__(
        self,
        folder: Path,
        settings: ArchiveSettings,
        clock: Clock,
        about: Mapping[str, str],
        lock: int,
        current: Segment | None,
        serial: int,
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._clock = clock
        self._about = dict(about)
        self._lock = lock
        self._current = current
        self._serial = serial
        self._full: list[Segment] = []
        self._offered: dict[str, SegmentMark] = {}
        self._ids = warc.record_ids()
        self._begun_since_sync = False

    @classmethod
    def open(
        cls,
        folder: Path,
        settings: ArchiveSettings,
        clock: Clock,
        marks: Iterable[SegmentMark],
        about: Mapping[str, str],
    ) -> Archive:
        """Recover the folder to the committed `marks` (all that were ever committed) and go on from there.

        `about` goes into each segment's warcinfo: `operator`, `http-header-user-agent`, `http-header-from`,
        `description` and whatever else the crawl wants to say of itself.
        """
        if _PREFIX.fullmatch(settings.prefix) is None:
            raise SettingsError(
                f"archive.prefix must be letters, digits, '.', '_' or '-': {settings.prefix!r}"
            )
        known = tuple(marks)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = _locked(folder)
            try:
                current = recover(folder, known, settings.segment_size)
                return cls(folder, settings, clock, about, lock, current, next_serial(folder, known))
            except BaseException:
                os.close(lock)
                raise
        except OSError as error:
            raise fault(folder, error) from error

    def append(
        self, exchange: Exchange, *, digest: bytes, media_type: str, original: Copy | None = None
    ) -> Archived:
        """Store one exchange; with `original`, as a revisit that points at that copy instead of a body.

        `original.fetched_at` is the `sent_at` of the exchange that was stored then. 36 KB of HTML take 155 us:
        60 to compress, 25 to digest the block, 16 to write, 16 for the request record, 11 for the index line.
        """
        try:
            segment = self._writable()
            members, at, line, record_id = self._records(segment, exchange, digest, media_type, original)
            reach(Point.BEFORE_APPEND)
            segment.append(members, line)
            reach(Point.AFTER_APPEND)
        except OSError as error:
            raise fault(self._folder, error) from error
        return Archived(at, record_id)

    def marks(self) -> tuple[SegmentMark, ...]:
        """What to commit with the pages: the lengths of every segment that grew since the last commit."""
        grown = (segment.mark for segment in self._segments() if not segment.is_committed)
        self._offered = {mark.segment: mark for mark in grown if mark.index_length}
        return tuple(self._offered.values())

    def committed(self) -> None:
        """The last `marks` are committed; segments that are full and wholly committed get their names."""
        for segment in self._segments():
            segment.committed = self._offered.get(segment.name, segment.committed)
        self._offered = {}
        try:
            self._finish_full()
        except OSError as error:
            raise fault(self._folder, error) from error

    def sync(self) -> None:
        """Force all to the disk. Call it before the frontier syncs: a mark must not outlive its bytes."""
        self.sync_later()()

    def sync_later(self) -> Callable[[], None]:
        """What `sync` would do now, to be run in another thread while this one goes on appending."""
        try:
            descriptors = [os.dup(fd) for segment in self._segments() for fd in segment.descriptors()]
        except OSError as error:
            raise fault(self._folder, error) from error
        begun, self._begun_since_sync = self._begun_since_sync, False
        return partial(_sync_all, descriptors, self._folder, begun)

    def close(self) -> None:
        """Finish what was committed, cut off what was not, merge the index.

        Segments whose last marks were neither committed nor known not to be stay open for the next `open`.
        """
        if self._lock < 0:
            return
        try:
            for segment in self._segments():
                if segment.name not in self._offered:
                    segment.settle()
            self._write_index()
        except OSError as error:
            raise fault(self._folder, error) from error
        finally:
            for segment in self._segments():
                segment.release()
            self._full, self._current = [], None
            os.close(self._lock)
            self._lock = -1

    def _segments(self) -> tuple[Segment, ...]:
        return (*self._full, self._current) if self._current is not None else tuple(self._full)

    def _records(
        self, segment: Segment, exchange: Exchange, digest: bytes, media_type: str, original: Copy | None
    ) -> tuple[bytes, RecordAt, bytes, str]:
        level = self._settings.compression
        date = warc.warc_date(exchange.sent_at or self._clock.now())
        uri = warc.target_uri(exchange.url)
        common = warc.common_fields(exchange, uri, segment.info_id)
        request_id, record_id = next(self._ids) if exchange.request else "", next(self._ids)
        request = warc.request_record(exchange, request_id, date, common, level) if request_id else b""
        # The digest of a 304's absent body would say that the page is empty.
        payload = "" if exchange.status == 304 and original is not None else warc.digest_field(digest)
        detected = warc.media_type_of(media_type)
        fields = warc.response_fields(exchange, common, payload, detected, request_id)
        if original is None:
            mime = warc.media_type_of(exchange.header("content-type")) or "unk"
            record = warc.response_record(exchange, record_id, date, fields, level)
        else:
            mime, detected = "warc/revisit", ""
            fields += warc.revisit_fields(original, exchange.status)
            record = warc.revisit_record(exchange, record_id, date, fields, level)
        at = RecordAt(segment.name, segment.length + len(request), len(record))
        line = index_line(
            uri=uri,
            date=date,
            mime=mime,
            detected=detected,
            status=exchange.status,
            digest=payload,
            offset=at.offset,
            length=at.length,
            segment=segment.name,
        )
        return request + record, at, line, record_id

    def _writable(self) -> Segment:
        current = self._current
        if current is not None and current.length < self._settings.segment_size:
            return current
        begun = self._begun()
        if current is not None:
            self._full.append(current)
        self._current = begun
        return begun

    def _begun(self) -> Segment:
        now = self._clock.now()
        stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(now))
        name = f"{self._settings.prefix}-{stamp}-{self._serial:05d}{WARC}"
        info_id = next(self._ids)
        info = warc.warcinfo(info_id, warc.warc_date(now), name, self._about, self._settings.compression)
        segment = Segment.create(self._folder, name, info_id, info)
        self._serial += 1
        self._begun_since_sync = True
        return segment

    def _finish_full(self) -> None:
        while self._full and self._full[0].is_committed:
            self._full[0].finish()
            self._full.pop(0)
        current = self._current
        if current is not None and current.is_committed and current.length >= self._settings.segment_size:
            current.finish()
            self._current = None

    def _write_index(self) -> None:
        indexes = [path for path in self._folder.glob(f"*{INDEX}") if path.name != MERGED_INDEX]
        if indexes:
            write_merged(sorted(indexes), self._folder / MERGED_INDEX)
            sync_folder(self._folder)


def _sync_all(descriptors: list[int], folder: Path, begun: bool) -> None:
    try:
        for fd in descriptors:
            os.fsync(fd)
        if begun:
            sync_folder(folder)
    except OSError as error:
        raise fault(folder, error) from error
    finally:
        for fd in descriptors:
            os.close(fd)


def _locked(folder: Path) -> int:
    # On the folder itself: a lock file would be one more thing to clean up after a kill.
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise FolderInUse(
            f"another process writes to the archive in {folder}: wait for it or stop it"
        ) from None
    return fd
