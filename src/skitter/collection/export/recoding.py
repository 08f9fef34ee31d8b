"""Segments of another compression than a reader takes, compressed anew record by record, and their index lines.

Between an archive and a WACZ file. Records stay as they are, byte for byte, but for the file name in the first;
what is broken is left out, with its index lines. Remembers where each answer lies now: 24 bytes an answer.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator

from skitter.archive.warc.cdxj import line_end
from skitter.archive.warc.coding import Coder, stem_of
from skitter.collection.captures import parse_line
from skitter.collection.layout import SegmentAt
from skitter.collection.members import Member, read_members
from skitter.collection.source import Source

_IN_THE_INDEX = re.compile(rb"WARC/1\.[01]\r\nWARC-Type: re(?:sponse|visit)\r\n")
_FIRST = re.compile(rb"WARC/1\.[01]\r\nWARC-Type: warcinfo\r\n")


class _Moved:
    """Of one segment, in the order of its records: where an answer lay, where it lies, how long it is."""

    def __init__(self) -> None:
        self._before, self._offsets, self._lengths = array("Q"), array("Q"), array("Q")

    def add(self, before: int, offset: int, length: int) -> None:
        self._before.append(before)
        self._offsets.append(offset)
        self._lengths.append(length)

    def find(self, before: int) -> tuple[int, int] | None:
        at = bisect_left(self._before, before)
        found = at < len(self._before) and self._before[at] == before
        return (self._offsets[at], self._lengths[at]) if found else None


class Recoding:
    def __init__(self, source: Source, coder: Coder) -> None:
        self._source = source
        self._coder = coder
        self._moved: dict[str, _Moved] = {}

    def name_of(self, segment: SegmentAt) -> str:
        return self._name(segment.name)

    def members(self, segment: SegmentAt) -> Iterator[bytes]:
        """To be taken to the end before the lines are."""
        moved = self._moved[segment.name] = _Moved()
        position = 0
        for member in read_members(self._source, segment.file, segment.size):
            if not isinstance(member, Member):
                continue
            packed = self._coder.page(self._renamed(member.content, segment))
            if _IN_THE_INDEX.match(member.content):
                moved.add(member.offset, position, len(packed))
            yield packed
            position += len(packed)

    def lines(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        """The same lines with the new places, which come last in them: in the same order."""
        for line in lines:
            capture = parse_line(line) if self._moved else None
            moved = self._moved.get(capture.at.segment) if capture else None
            if capture is None or moved is None:
                yield line
            elif place := moved.find(capture.at.offset):
                yield self._placed(line, *place, capture.at.segment)

    def _placed(self, line: bytes, offset: int, length: int, segment: str) -> bytes:
        return line.rpartition(b'"length": ')[0] + line_end(offset, length, self._name(segment))

    def _name(self, segment: str) -> str:
        return stem_of(segment) + self._coder.coding.suffix

    def _renamed(self, record: bytes, segment: SegmentAt) -> bytes:
        if _FIRST.match(record) is None:
            return record
        field = b"\r\nWARC-Filename: %b\r\n"
        return record.replace(field % segment.name.encode(), field % self.name_of(segment).encode(), 1)
