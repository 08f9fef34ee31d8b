"""The gzip members of a segment, one after the other, each with its place: what every full reading stands on.

Memory is bounded by one record, however long the file. A member that cannot be read is a `Broken` value, and
reading goes on at the next one that begins a record: one bad byte must not hide the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

import msgspec
from isal import isal_zlib

from skitter.collection.source import Source

_GZIP = 31
_BLOCK = 1 << 22
# What a member leaves unused is copied: with 32 KB at a time that is 2 us, with whole blocks it was 200.
_STEP = 1 << 15
LARGEST = 1 << 30
_MAGIC = re.compile(rb"\x1f\x8b\x08")
_BROKEN = cast("type[Exception]", isal_zlib.error)


class Member(msgspec.Struct, frozen=True):
    offset: int
    length: int
    content: bytes


class Broken(msgspec.Struct, frozen=True):
    """`length` bytes that are no whole gzip member."""

    offset: int
    length: int
    what: str


class _Window:
    """A moving block of the file: `at(position)` gives the bytes from there, a step at most."""

    def __init__(self, source: Source, name: str, end: int) -> None:
        self._source, self._name, self._end = source, name, end
        self._start, self._block = 0, b""

    def at(self, position: int) -> memoryview:
        if not self._start <= position < self._start + len(self._block) - _STEP:
            self._start = position
            self._block = self._source.read(self._name, position, min(_BLOCK, max(0, self._end - position)))
        begin = position - self._start
        return memoryview(self._block)[begin : begin + _STEP]


def read_members(source: Source, name: str, end: int, start: int = 0) -> Iterator[Member | Broken]:
    """What lies from `start` to `end`, which is the file's size or the committed part of it."""
    window, position = _Window(source, name, end), start
    while position < end:
        found = _member(window, position, end)
        if isinstance(found, str):
            following = _next_record(window, position + 1, end)
            yield Broken(position, following - position, found)
            position = following
        else:
            content, length = found
            yield Member(position, length, content)
            position += length


def inflate(member: bytes) -> bytes | str:
    """The record of one gzip member that was read whole, or what is wrong with it."""
    stream = isal_zlib.decompressobj(_GZIP)
    try:
        content: bytes = stream.decompress(member, LARGEST)
    except _BROKEN as error:
        return _words(error)
    return content if stream.eof else "a gzip member breaks off"


def _member(window: _Window, start: int, end: int) -> tuple[bytes, int] | str:
    stream, position, size = isal_zlib.decompressobj(_GZIP), start, 0
    pieces = []
    while not stream.eof:
        piece = window.at(position)
        if not piece:
            return "a gzip member breaks off at the end of the file"
        try:
            output: bytes = stream.decompress(piece)
        except _BROKEN as error:
            return _no_member(bytes(window.at(start))) or _words(error)
        pieces.append(output)
        size += len(output)
        position += len(piece)
        if size > LARGEST:
            return "a gzip member inflates to more than 1 GiB"
    position -= len(stream.unused_data)
    return (pieces[0] if len(pieces) == 1 else b"".join(pieces)), position - start


def _words(error: Exception) -> str:
    return "gzip check sum or length is wrong" if "checksum" in str(error) else "broken gzip data"


def _no_member(start: bytes) -> str:
    if not any(start):
        return "zeros where a gzip member should begin"
    return "" if _MAGIC.match(start) else "not a gzip member"


def _next_record(window: _Window, position: int, end: int) -> int:
    while position < end:
        piece = bytes(window.at(position))
        if not piece:
            break
        for magic in _MAGIC.finditer(piece):
            if _begins_record(window, position + magic.start()):
                return position + magic.start()
        position += max(1, len(piece) - 2) if len(piece) == _STEP else len(piece)
    return end


def _begins_record(window: _Window, position: int) -> bool:
    try:
        start: bytes = isal_zlib.decompressobj(_GZIP).decompress(bytes(window.at(position)), 5)
    except _BROKEN:
        return False
    return start == b"WARC/"
