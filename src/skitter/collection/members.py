"""The members of a segment, a compressed record each, one after the other with its place: what every full reading
stands on.

Memory is bounded by one record, however long the file. A member that cannot be read is a `Broken` value, and
reading goes on at the next one that begins a record: one bad byte must not hide the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from skitter.archive.warc.coding import Coding, coding_of
from skitter.collection.source import Source

_BLOCK = 1 << 22
# What a member leaves unused is copied: with 32 KB at a time that is 2 us, with whole blocks it was 200.
_STEP = 1 << 15
# zstd gives nothing of a block, 128 KiB of a record, before it has all of it.
_BEGINNING = 5 * _STEP
LARGEST = 1 << 30


class Member(msgspec.Struct, frozen=True):
    offset: int
    length: int
    content: bytes


class Broken(msgspec.Struct, frozen=True):
    """`length` bytes that are no whole member."""

    offset: int
    length: int
    what: str


class _Window:
    """A moving block of the file: `at(position)` gives the bytes from there, a step at most."""

    def __init__(self, source: Source, name: str, end: int) -> None:
        self.coding = coding_of(name)
        self._source, self._name, self._end = source, name, end
        self._start, self._block = 0, b""

    def at(self, position: int, most: int = _STEP) -> memoryview:
        if not self._start <= position < self._start + len(self._block) - most:
            self._start = position
            self._block = self._source.read(self._name, position, min(_BLOCK, max(0, self._end - position)))
        begin = position - self._start
        return memoryview(self._block)[begin : begin + most]


def read_members(source: Source, name: str, end: int, start: int = 0) -> Iterator[Member | Broken]:
    """What lies from `start` to `end`, which is the file's size or the committed part of it."""
    window, position = _Window(source, name, end), start
    while position < end:
        found = _inflated(window.coding, window.at, position)
        if isinstance(found, str):
            following = _next_record(window, position + 1, end)
            yield Broken(position, following - position, found)
            position = following
        else:
            content, length = found
            yield Member(position, length, content)
            position += length


def inflate(member: bytes, coding: Coding) -> bytes | str:
    """The record of one member that was read whole, or what is wrong with it."""
    found = _inflated(coding, lambda position: memoryview(member)[position : position + _STEP], 0)
    return found if isinstance(found, str) else found[0]


def _inflated(coding: Coding, at: Callable[[int], memoryview], start: int) -> tuple[bytes, int] | str:
    stream, position, size = coding.decoder(), start, 0
    pieces = []
    while not stream.eof:
        piece = at(position)
        if not piece:
            return f"a {coding.unit} breaks off at the end"
        try:
            output = stream.decompress(piece)
        except coding.fault as error:
            return _no_member(bytes(at(start)), coding) or _words(error, coding)
        pieces.append(output)
        size += len(output)
        position += len(piece)
        if size > LARGEST:
            return f"a {coding.unit} inflates to more than 1 GiB"
    position -= len(stream.unused_data)
    return (pieces[0] if len(pieces) == 1 else b"".join(pieces)), position - start


def _words(error: Exception, coding: Coding) -> str:
    wrong = "checksum" in str(error)
    return f"{coding.name} check sum or length is wrong" if wrong else f"broken {coding.name} data"


def _no_member(start: bytes, coding: Coding) -> str:
    if not any(start):
        return f"zeros where a {coding.unit} should begin"
    return "" if start.startswith(coding.magic) else f"not a {coding.unit}"


def _next_record(window: _Window, position: int, end: int) -> int:
    magic = re.compile(re.escape(window.coding.magic))
    overlap = len(window.coding.magic) - 1
    while position < end:
        piece = bytes(window.at(position))
        if not piece:
            break
        for found in magic.finditer(piece):
            if _begins_record(window, position + found.start()):
                return position + found.start()
        position += max(1, len(piece) - overlap) if len(piece) == _STEP else len(piece)
    return end


def _begins_record(window: _Window, position: int) -> bool:
    try:
        return window.coding.beginning(window.at(position, _BEGINNING), 5) == b"WARC/"
    except window.coding.fault:
        return False
