"""Segments written anew without what is forgotten: captures of others are carried over, the old files go.

Between `forget.py` and the archive. One segment after the other: what is kept of it goes into a growing segment
and is committed with its new places, then its mark goes, then its files. A kill at any point leaves every
capture in one committed place or in two, and the next run finishes: what lies elsewhere already is not carried
again. A revisit of a forgotten record gets the body itself, or refers to who got it.
"""

from __future__ import annotations

import re
from base64 import b32decode
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from skitter.archive.carrying import SegmentRows
from skitter.archive.schema import Table
from skitter.archive.segments import SegmentFiles, finished_in, sync_folder
from skitter.archive.store import Archive, Carried
from skitter.archive.tables.parts import PARQUET, table_folders
from skitter.archive.warc import records
from skitter.archive.warc.cdxj import line_middle
from skitter.archive.warc.coding import coding_of, stem_of
from skitter.collection.captures import Capture, parse_line
from skitter.collection.members import Broken, Member, read_members
from skitter.collection.record import Record, parse_record
from skitter.collection.source import FolderSource
from skitter.errors import ArchiveFailed
from skitter.faultpoints import Point, reach
from skitter.frontier.base import Forgetting, MovedRecord
from skitter.model import Copy, RecordAt

_COMMITTED_AT_ONCE = 500
_DROPPED = re.compile(
    r"(?:WARC-(?:Type|Record-ID|Profile|Refers-To[\w-]*|Block-Digest|Truncated)|Content-Length): .*",
    re.IGNORECASE,
)
_REFERS = "warc-refers-to-target-uri"
_MADE_OF_A_PAGE = re.compile(r"urn:[a-z]+:(?=https?://)")
_LEVEL = 1


class Removed(msgspec.Struct):
    """What was taken out of the archive, and what was kept of others for it."""

    segments: int = 0
    captures: int = 0
    bytes: int = 0
    carried: int = 0
    given_a_body: int = 0
    extracted_parts: int = 0


class Exchange(NamedTuple):
    """The members of one exchange as they lie in a segment, the answer's record, and where it begins."""

    members: tuple[bytes, bytes, bytes]
    record: Record
    at: RecordAt


class Rewriting:
    def __init__(self, folder: Path, forgetting: Forgetting, tables: Sequence[Table]) -> None:
        self._folder, self._forgetting, self._tables = folder, forgetting, tables
        self._source = FolderSource(folder)
        self._bodies: dict[str, RecordAt] = {}
        self._copies: dict[str, Copy] = {}
        self.removed = Removed()

    def affected(self) -> list[str]:
        """Segments that hold a capture to be forgotten, or a revisit of one; the newest first: what refers to a
        body is carried over while the body is still there, and a body is never newer than who refers to it."""
        found = []
        lines = {name: self._lines(name) for name in sorted(finished_in(self._folder))}
        for captures in lines.values():
            for capture in captures:
                if (
                    self._forgetting.is_of(_page_of(capture.url))
                    and capture.mime != "warc/revisit"
                    and capture.digest
                ):
                    self._bodies.setdefault(capture.digest, capture.at)
        for name, captures in lines.items():
            if any(self._forgetting.is_of(_page_of(one.url)) or self._refers(one) for one in captures):
                found.append(name)
        return found[::-1]

    def _lines(self, segment: str) -> list[Capture]:
        index = SegmentFiles(self._folder, segment).index
        lines = index.read_bytes().splitlines() if index.exists() else []
        return [capture for line in lines if (capture := parse_line(line)) is not None]

    def _refers(self, capture: Capture) -> bool:
        if capture.digest not in self._bodies:
            return False
        record = self._record_at(capture.at)
        return self._forgetting.is_of(record.fields.get(_REFERS, ""))

    def _record_at(self, at: RecordAt) -> Record:
        (member,) = read_members(self._source, at.segment, at.offset + at.length, at.offset)
        record = parse_record(member.content) if isinstance(member, Member) else "it cannot be read"
        if isinstance(record, str):
            raise ArchiveFailed(f"{at.segment} at {at.offset}: {record}; skitter verify says more")
        return record

    # -- one segment

    def rewrite(self, archive: Archive, segment: str) -> None:
        rows = SegmentRows(self._folder, segment, self._tables)
        lines = {capture.at.offset: line for capture, line in self._raw_lines(segment)}
        moves: list[MovedRecord] = []
        for exchange in self._exchanges(segment):
            if self._forgetting.is_of(_page_of(exchange.record.url)):
                self.removed.captures += 1
                self.removed.bytes += sum(map(len, exchange.members))
                continue
            sent_at = _seconds(exchange.record.date)
            key = self._forgetting.key_of_fetch(_page_of(exchange.record.url), sent_at)
            if self._forgetting.has_moved(key, sent_at, segment):
                continue
            carried, copy = self._carried(exchange, lines[exchange.at.offset], rows)
            place = archive.carry_over(carried)
            digest = _digest(exchange.record) if copy is not None else b""
            if copy is not None:
                copy = msgspec.structs.replace(copy, segment=place.segment)
                self._copies[exchange.record.fields.get("warc-payload-digest", "")] = copy
            moves.append(MovedRecord(key, sent_at, exchange.at, place, digest, copy))
            self.removed.carried += 1
            if len(moves) >= _COMMITTED_AT_ONCE:
                self._commit(archive, moves)
        self._commit(archive, moves)
        self.removed.segments += 1

    def _commit(self, archive: Archive, moves: list[MovedRecord]) -> None:
        archive_marks = archive.marks()
        if moves or archive_marks:
            self._forgetting.move(moves, archive_marks)
            archive.committed()
            reach(Point.AFTER_ACKNOWLEDGE)
        moves.clear()

    def remove(self, segment: str) -> None:
        """The files of a segment of which everything lies elsewhere; the WARC file last."""
        files = SegmentFiles(self._folder, segment)
        for path in files.shown():
            path.unlink(missing_ok=True)
            reach(Point.BEFORE_REMOVAL)
        for table in table_folders(self._folder):
            # made by skitter extract, and made again by it
            for path in table.glob(f"{stem_of(segment)}*{PARQUET}"):
                path.unlink()
                self.removed.extracted_parts += 1
        sync_folder(self._folder)

    def _raw_lines(self, segment: str) -> Iterator[tuple[Capture, bytes]]:
        """Each with its line up to where the place of the record is told."""
        for line in SegmentFiles(self._folder, segment).index.read_bytes().splitlines():
            if (capture := parse_line(line)) is not None:
                yield capture, line[: line.rindex(b'"length": ')]

    def _exchanges(self, segment: str) -> Iterator[Exchange]:
        size = self._source.size(segment)
        request, answer, metadata = b"", None, b""
        for member in read_members(self._source, segment, size):
            record = "a member is broken" if isinstance(member, Broken) else parse_record(member.content)
            if isinstance(record, str) or isinstance(member, Broken):
                raise ArchiveFailed(
                    f"{segment} at {member.offset}: {record}; put back a sound copy, then forget again"
                )
            raw = self._source.read(segment, member.offset, member.length)
            if record.kind != "metadata" and answer is not None:
                yield Exchange((request, answer[0], metadata), answer[1], answer[2])
                request, answer, metadata = b"", None, b""
            match record.kind:
                case "request":
                    request = raw
                case "response" | "revisit" | "resource":
                    answer = (raw, record, RecordAt(segment, member.offset, member.length))
                case "metadata":
                    metadata = raw
                case _:
                    pass
        if answer is not None:
            yield Exchange((request, answer[0], metadata), answer[1], answer[2])

    def _carried(self, exchange: Exchange, line: bytes, rows: SegmentRows) -> tuple[Carried, Copy | None]:
        """As it is, unless it refers to a record that goes."""
        page = rows.pages.get(exchange.at.offset)
        revisit_of = page.revisit_of if page is not None else ""
        found = rows.at(exchange.at.offset)
        is_made = exchange.record.kind == "resource"  # of a page that stays
        if is_made or not self._forgetting.is_of(exchange.record.fields.get(_REFERS, "")):
            return Carried(exchange.members, line, found, revisit_of), None
        record = exchange.record
        known = self._copies.get(record.fields.get("warc-payload-digest", ""))
        coder = coding_of(exchange.at.segment).coder(_LEVEL)
        if known is not None:
            again = coder.page(_revisit_of(record, known))
            members = (exchange.members[0], again, exchange.members[2])
            return Carried(members, line, found, known.url), None
        body = self._body_of(record)
        whole = coder.page(_with_body(record, body))
        mime = records.media_type_of(record.header("content-type"))
        detected = page.detected if page is not None else ""
        start = line[: line.index(b'"mime": ')]
        digest = record.fields.get("warc-payload-digest", "")
        middle = line_middle(mime or "unk", detected, record.status, digest)
        self.removed.given_a_body += 1
        copy = Copy(record.url, _seconds(record.date), record.id)
        members = (exchange.members[0], whole, exchange.members[2])
        return Carried(members, start + middle, found, ""), copy

    def _body_of(self, record: Record) -> bytes:
        at = self._bodies.get(record.fields.get("warc-payload-digest", ""))
        if at is None or record.status == 304:
            return b""
        return self._record_at(at).body


def _page_of(uri: str) -> str:
    """What was made of a page goes with it: `urn:rendered:URL`."""
    made = _MADE_OF_A_PAGE.match(uri)
    return uri[made.end() :] if made else uri


def _with_body(record: Record, body: bytes) -> bytes:
    """The revisit as the response that it stood for."""
    block = records.digest_field(sha256(record.head + body).digest())
    return records.response_record(record.head, body, block, record.id, _other_fields(record))


def _revisit_of(record: Record, known: Copy) -> bytes:
    fields = _other_fields(record) + records.revisit_fields(known, record.status)
    return records.revisit_record(record.head, record.id, fields)


def _other_fields(record: Record) -> str:
    lines = (f"{_spelled(name)}: {value}" for name, value in record.fields.items())
    return "".join(f"{line}\r\n" for line in lines if not _DROPPED.fullmatch(line))


def _spelled(name: str) -> str:
    words = "-".join(part.capitalize() for part in name.split("-"))
    return (
        words.replace("Warc-", "WARC-").replace("-Uri", "-URI").replace("-Id", "-ID").replace("-Ip-", "-IP-")
    )


def _digest(record: Record) -> bytes:
    _, _, value = record.fields.get("warc-payload-digest", "").partition(":")
    return b32decode(value) if value else b""


def _seconds(date: str) -> float:
    return datetime.fromisoformat(date).timestamp()
