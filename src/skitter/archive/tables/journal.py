"""A segment's journal of rows: what the tables will say of each record, in the order of records.

Written beside the WARC record and committed with it; the table writer turns committed stretches of it into
Parquet. It begins with a frame that says which tables and columns its rows have: so a journal is read by what it
was written by, whatever the tables of the crawl are by now. A frame is a mark, four bytes of length and a message
of msgpack. Never decides what is committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from skitter.archive.schema import Column, Kind, Table
from skitter.errors import ArchiveFailed
from skitter.model import RecordAt

FORMAT = 2
_MARK = b"\xc1"  # which no message of msgpack begins with
_FRAME = 5
_PAIR = b"\x92"  # an array of two: the place of a record, and its rows
_encode = msgspec.msgpack.Encoder().encode


class _Shape(msgspec.Struct, frozen=True, array_like=True):
    """A column without what only people read."""

    name: str
    kind: Kind
    source: str
    fields: tuple[str, ...]
    repeats: bool


class _Heading(msgspec.Struct, frozen=True, tag="skitter-rows"):
    format: int
    tables: dict[str, tuple[_Shape, ...]]


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """The rows of one record, by table."""

    place: tuple[int, int, str]
    """Where it begins in its segment, how long it is, and the URL that it is a revisit of."""
    rows: dict[str, list[list[Any]]]


_decode_entry = msgspec.msgpack.Decoder(Entry).decode
_decode_heading = msgspec.msgpack.Decoder(_Heading).decode


def heading(tables: Sequence[Table]) -> bytes:
    """What the journal of these tables begins with."""
    shapes = {table.name: tuple(map(_shape_of, table.columns)) for table in tables}
    return _framed(_encode(_Heading(FORMAT, shapes)))


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
    the journal was made anew without them."""
    with path.open("rb") as journal:
        start = journal.read(min(length, _FRAME))
        if not any(start):
            return None
        message = journal.read(int.from_bytes(start[1:], "little"))
    try:
        found = _decode_heading(message)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _of_another_version(path) from None
    if found.format != FORMAT:
        raise _of_another_version(path)
    return tuple(
        Table(name, tuple(Column(c.name, c.kind, c.source, "", "", c.fields, c.repeats) for c in columns))
        for name, columns in found.tables.items()
    )


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
    for start, end in _frames(journal):
        message = memoryview(journal)[start:end]
        if message[:1] == _PAIR:
            yield _decode_entry(message)


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
