"""A segment's journal of rows: what the tables will say of each record, in the order of records.

Written beside the WARC record and committed with it; the table writer turns committed stretches of it into
Parquet. It begins with a frame that says which tables and columns its rows have: so a journal is read by what it
was written by, whatever the tables of the crawl are by now. A frame is a mark, four bytes of length and a message
of msgpack. Never decides what is committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from zlib import crc32

import msgspec

from skitter.archive.schema import ITEMS, TABLES, Column, Kind, Table
from skitter.errors import ArchiveFailed
from skitter.model import RecordAt

FORMAT = 2
_MARK = b"\xc1"  # which no message of msgpack begins with
_FRAME = 5
_PIECE = 1 << 20
_PAIR = b"\x92"  # an array of two: the place of a record, and its rows
_EARLIER = b"\xdc\0\x21"  # an array of 33: a row of 0.1, which wrote no heading
_SOURCES = frozenset(column.source for table in (*TABLES, ITEMS) for column in table.columns)
_encode = msgspec.msgpack.Encoder().encode


class _Shape(msgspec.Struct, frozen=True, array_like=True):
    """A column without what only people read."""

    name: str
    kind: Kind
    source: str
    fields: tuple[str, ...]
    repeats: bool


class _Heading(msgspec.Struct, frozen=True, tag="skitter-rows"):
    """`check` tells a heading of another version from a damaged one; those of 0.2's first days have none."""

    format: int
    tables: dict[str, tuple[_Shape, ...]]
    check: int = 0

    @property
    def is_whole(self) -> bool:
        return self.check == _check_of(self.format, self.tables)


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """The rows of one record, by table."""

    place: tuple[int, int, str]
    """Where it begins in its segment, how long it is, and the URL that it is a revisit of."""
    rows: dict[str, list[list[Any]]]


class Salvaged(NamedTuple):
    """Bytes of a damaged journal, from `start` to `end`: an entry, or None where they are none."""

    start: int
    end: int
    entry: Entry | None


class DamagedHeading(Exception):
    """A journal no longer says of which tables its rows are."""


_decode_entry = msgspec.msgpack.Decoder(Entry).decode
_decode_heading = msgspec.msgpack.Decoder(_Heading).decode


def heading(tables: Sequence[Table]) -> bytes:
    """What the journal of these tables begins with."""
    shapes = {table.name: tuple(map(_shape_of, table.columns)) for table in tables}
    return _framed(_encode(_Heading(FORMAT, shapes, _check_of(FORMAT, shapes))))


def _check_of(number: int, shapes: dict[str, tuple[_Shape, ...]]) -> int:
    return crc32(_encode((number, shapes)))


def _shape_of(column: Column) -> _Shape:
    return _Shape(column.name, column.kind, column.source, column.fields, column.repeats)


def entry(rows: bytes, at: RecordAt, revisit_of: str) -> tuple[bytes, bytes]:
    """In two pieces, of which the second is long and as it was given."""
    place = _PAIR + _encode((at.offset, at.length, revisit_of))
    return _MARK + (len(place) + len(rows)).to_bytes(_FRAME - 1, "little") + place, rows


def _framed(message: bytes) -> bytes:
    return _MARK + len(message).to_bytes(_FRAME - 1, "little") + message


def read_tables(path: Path, length: int) -> tuple[Table, ...] | None:
    """The tables of a journal's first `length` bytes; none where a hole stands for rows that are in Parquet, and
    the journal was made anew without them. Raises `DamagedHeading`."""
    with path.open("rb") as journal:
        start = journal.read(min(length, _FRAME))
        if not any(start):
            if not _is_hole(journal, length - len(start)):
                raise DamagedHeading
            return None
        message = journal.read(min(length, int.from_bytes(start[1:], "little")))
    if start[:1] == _MARK and message.startswith(_EARLIER):
        raise _of_another_version(path)
    try:
        found = _decode_heading(message)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise DamagedHeading from None
    if found.format != FORMAT and found.is_whole:
        raise _of_another_version(path)
    is_sound = found.is_whole if found.check else _is_possible(found)
    if start[:1] != _MARK or found.format != FORMAT or not is_sound:
        raise DamagedHeading
    return tuple(
        Table(name, tuple(Column(c.name, c.kind, c.source, "", "", c.fields, c.repeats) for c in columns))
        for name, columns in found.tables.items()
    )


def _is_possible(found: _Heading) -> bool:
    """Without a check: whether its columns are taken from what there is. A damaged one may have lost it."""
    return all(shape.source in _SOURCES for shapes in found.tables.values() for shape in shapes)


def _is_hole(journal: BinaryIO, length: int) -> bool:
    """Whether nothing but zeros follows: with a row behind them they are a heading that was overwritten."""
    while length > 0 and (piece := journal.read(min(length, _PIECE))):
        if piece.strip(b"\0"):
            return False
        length -= len(piece)
    return True


def _of_another_version(path: Path) -> ArchiveFailed:
    return ArchiveFailed(
        f"{path} holds rows of another version of skitter, which was interrupted: run the crawl once more with "
        f"that version and let it stop by itself (Ctrl-C once), then go on with this one; nothing was changed"
    )


def has_shape_of(journal: Sequence[Table], wanted: Sequence[Table]) -> bool:
    """Whether rows of the wanted tables can follow in a journal of those."""
    return heading(journal) == heading(wanted)


def entries(journal: bytes | bytearray | memoryview) -> Iterator[Entry]:
    """Raises `msgspec.DecodeError` when the journal is damaged. Zeros are a hole, see `read_tables`."""
    at = 0
    for start, end in _frames(journal):
        if start - _FRAME > at and bytes(journal[at : start - _FRAME]).strip(b"\0"):
            raise msgspec.DecodeError("there are bytes between two rows")
        message = memoryview(journal)[start:end]
        if message[:1] == _PAIR:
            yield _decode_entry(message)
        else:
            _decode_heading(message)
        at = end


def salvaged(journal: bytes) -> Iterator[Salvaged]:
    """All of a damaged journal but its heading and its holes. No text of a page can pass for a frame: the mark is
    no byte of UTF-8."""
    at = read = 0
    while (mark := journal.find(_MARK, at)) >= 0:
        found = _frame_at(journal, mark)
        if found is None:
            at = mark + 1
            continue
        if journal[read:mark].strip(b"\0"):
            yield Salvaged(read, mark, None)
        if found.entry is not None:
            yield found
        at = read = found.end
    if journal[read:].strip(b"\0"):
        yield Salvaged(read, len(journal), None)


def _frame_at(journal: bytes, mark: int) -> Salvaged | None:
    """Of an entry, or of a heading; None when there is neither."""
    start = mark + _FRAME
    end = start + int.from_bytes(journal[mark + 1 : start], "little")
    if end > len(journal) or start > len(journal):
        return None
    message = memoryview(journal)[start:end]
    try:
        if message[:1] == _PAIR:
            return Salvaged(mark, end, _decode_entry(message))
        _decode_heading(message)
        return Salvaged(mark, end, None)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def whole_frames(journal: bytes | bytearray) -> int:
    """How many of the bytes are whole frames."""
    return max((end for _, end in _frames(journal)), default=0)


def _frames(journal: bytes | bytearray | memoryview) -> Iterator[tuple[int, int]]:
    """Where the message of each whole frame begins and ends."""
    content, at = bytes(journal) if isinstance(journal, memoryview) else journal, 0
    while (at := content.find(_MARK, at)) >= 0:
        start = at + _FRAME
        at = start + int.from_bytes(content[at + 1 : start], "little")
        if at > len(content) or start > len(content):
            return
        yield start, at
