"""Columns to a Parquet file, in memory: one row group, pages of a megabyte, dictionaries where they pay, zstd.

The last step from rows to tables, after `columns.py` and `values.py`. For our own tables only: strings and
numbers that may not be there, and lists of structs of strings, none of them empty. pyarrow writes the same, but
takes 0.3 s to import, 0.6 where pandas is installed, and 110 MB. Knows nothing of files or of what a row means.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import compress
from typing import NamedTuple, Protocol

import zstandard

from skitter import __version__
from skitter.archive.columns_plain import Column
from skitter.archive.thrift import Value, binary, byte, int32, int64, many, struct, truth
from skitter.archive.values import extremes, plain, repeated
from skitter.archive.values_plain import varint

# Level 3 saves another 4 % of the bytes for a third more time.
_LEVEL = 1
_PAGE_BYTES = 1 << 20
# Of a least or greatest value: a longer one would not be worth its place in the footer.
_LONGEST_EXTREME = 4_096
_MAGIC = b"PAR1"
# The numbers that the format gives (parquet.thrift).
_INT32, _INT64, _FLOAT, _BYTES = 1, 2, 4, 6
_PLAIN, _RLE, _DICTIONARY = 0, 3, 8
_OPTIONAL, _REPEATED = 1, 2
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_ZSTD = 6
_LIST = 3
_EMPTY = struct({})


class Kind(NamedTuple):
    """How values lie in the file, what they mean, and of what `array` has them in memory."""

    physical: int
    annotations: dict[int, Value]
    code: str


def _integer(bits: int, *, signed: bool) -> Value:
    return struct({10: struct({1: byte(bits), 2: truth(signed)})})


_MICROS = struct({8: struct({1: truth(True), 2: struct({2: _EMPTY})})})
STRING = Kind(_BYTES, {6: int32(0), 10: struct({1: _EMPTY})}, "")
TIME = Kind(_INT64, {6: int32(10), 10: _MICROS}, "q")
INT16 = Kind(_INT32, {6: int32(16), 10: _integer(16, signed=True)}, "i")
INT32 = Kind(_INT32, {}, "i")
INT64 = Kind(_INT64, {}, "q")
UINT64 = Kind(_INT64, {6: int32(14), 10: _integer(64, signed=False)}, "Q")
FLOAT32 = Kind(_FLOAT, {}, "f")


class Field(NamedTuple):
    """`repeats` says that a dictionary is tried, `compared` that the footer tells the least and the greatest."""

    name: str
    kind: Kind
    column: Column
    repeats: bool = False
    compared: bool = False


class Lists(NamedTuple):
    """A list of structs a row, none of them empty; `ends` says where each row's does (int32, a zero first)."""

    name: str
    fields: tuple[Field, ...]
    ends: bytes


def parquet_of(fields: Sequence[Field | Lists], rows: int) -> bytes:
    """The whole file."""
    file = _File()
    for field in fields if rows else ():
        if isinstance(field, Lists):
            shape = _Listed(array("i", field.ends))
            for leaf in field.fields:
                file.add((field.name, "list", "element", leaf.name), leaf, shape)
        else:
            file.add((field.name,), field, _Flat(field.column))
    leaves = sum(len(field.fields) if isinstance(field, Lists) else 1 for field in fields)
    return file.finished(_schema(fields), leaves, rows)


class _Shape(Protocol):
    """What a page says of its values before them, and where it may end."""

    def levels(self, first: int, last: int) -> bytes: ...

    def cut(self, at: int) -> int: ...


class _Flat:
    """Values that may not be there: a level each, in bits that lie as Arrow has them."""

    def __init__(self, column: Column) -> None:
        self._count, _, _, self._valid = column

    def levels(self, first: int, last: int) -> bytes:
        count = last - first
        bits = None if self._valid is None else self._valid[first // 8 : (last + 7) // 8]
        there = count if bits is None else int.from_bytes(bits, "little").bit_count()
        if bits is None or there in (0, count):
            return _sized(varint(count << 1) + (b"\1" if there else b"\0"))
        return _sized(_bit_packed(bits))

    def cut(self, at: int) -> int:
        return min(self._count, (at + 7) // 8 * 8)


class _Listed:
    """Values of lists: a level each that says whether it begins a row, and one that says that it is there, four
    steps down (the list, its struct, the struct's field, each of which might not be)."""

    def __init__(self, ends: array[int]) -> None:
        self._ends = ends
        # All fields of a struct have the same.
        self.levels = cache(self._levels)

    def _levels(self, first: int, last: int) -> bytes:
        count, bits = last - first, bytearray(b"\xff") * ((last - first + 7) // 8)
        ends = self._ends
        for start in ends[bisect_left(ends, first) : bisect_left(ends, last)]:
            bits[(start - first) // 8] &= ~(1 << (start - first) % 8)
        return _sized(_bit_packed(bits)) + _sized(varint(count << 1) + b"\4")

    def cut(self, at: int) -> int:
        return self._ends[bisect_left(self._ends, at)]


def _sized(levels: bytes) -> bytes:
    return len(levels).to_bytes(4, "little") + levels


def _bit_packed(bits: bytes | bytearray) -> bytes:
    return varint(len(bits) << 1 | 1) + bits


class _Page(NamedTuple):
    kind: int
    encoding: int
    values: int
    content: bytes

    def head(self, compressed: int) -> bytes:
        about = {1: int32(self.values), 2: int32(self.encoding)}
        if self.kind == _DATA_PAGE:
            about |= {3: int32(_RLE), 4: int32(_RLE)}
        sizes = {1: int32(self.kind), 2: int32(len(self.content)), 3: int32(compressed)}
        return struct({**sizes, 5 if self.kind == _DATA_PAGE else 7: struct(about)}).content


def _pages(field: Field, shape: _Shape) -> Iterator[_Page]:
    count, content, ends, valid = field.column
    if ends is None:
        numbers = _present(field).tobytes()
        yield _Page(_DATA_PAGE, _PLAIN, count, shape.levels(0, count) + numbers)
        return
    found = repeated(content, ends, valid) if field.repeats else None
    if found is not None and found[0]:
        different, strings, which = found
        yield _Page(_DICTIONARY_PAGE, _PLAIN, different, strings)
        yield _Page(_DATA_PAGE, _DICTIONARY, count, shape.levels(0, count) + which)
        return
    places, first = array("i", ends), 0
    while first < count:
        last = shape.cut(bisect_left(places, places[first] + _PAGE_BYTES, first + 1, count))
        strings = plain(shape.levels(first, last), content, ends, valid, first, last)
        yield _Page(_DATA_PAGE, _PLAIN, last - first, strings)
        first = last


def _present(field: Field) -> array[int] | array[float]:
    """The numbers that are there."""
    count, content, _, valid = field.column
    numbers = array(field.kind.code, content)
    there = count if valid is None else int.from_bytes(valid, "little").bit_count()
    if valid is None or there in (0, count):
        return numbers[:there]
    return array(field.kind.code, compress(numbers, (valid[at // 8] >> at % 8 & 1 for at in range(count))))


def _extremes(field: Field) -> tuple[bytes, bytes] | None:
    _, content, ends, valid = field.column
    if ends is not None:
        found = extremes(content, ends, valid)
        return found if found is not None and max(map(len, found)) <= _LONGEST_EXTREME else None
    numbers = _present(field)
    if not numbers:
        return None
    least, greatest = min(numbers), max(numbers)
    return array(numbers.typecode, [least]).tobytes(), array(numbers.typecode, [greatest]).tobytes()


def _statistics(field: Field) -> Value:
    count, _, _, valid = field.column
    absent = 0 if valid is None else count - int.from_bytes(valid, "little").bit_count()
    found = _extremes(field)
    if found is None:
        return struct({3: int64(absent)})
    return struct({3: int64(absent), 5: binary(found[1]), 6: binary(found[0])})


class _File:
    """What was written so far, and what the footer will say of it."""

    def __init__(self) -> None:
        self._compress = zstandard.ZstdCompressor(level=_LEVEL).compress
        self._pieces = [_MAGIC]
        self._length = len(_MAGIC)
        self._chunks: list[Value] = []
        self._plain_length = 0

    def add(self, path: tuple[str, ...], field: Field, shape: _Shape) -> None:
        start, plain_before = self._length, self._plain_length
        places: dict[int, int] = {}
        for page in _pages(field, shape):
            places.setdefault(page.kind, self._length)
            self._write(page)
        encodings = [_RLE, _PLAIN] + [_DICTIONARY] * (_DICTIONARY_PAGE in places)
        about = {
            1: int32(field.kind.physical),
            2: many([int32(encoding) for encoding in encodings]),
            3: many([binary(name.encode()) for name in path]),
            4: int32(_ZSTD),
            5: int64(field.column[0]),
            6: int64(self._plain_length - plain_before),
            7: int64(self._length - start),
            9: int64(places[_DATA_PAGE]),
        }
        if _DICTIONARY_PAGE in places:
            about[11] = int64(places[_DICTIONARY_PAGE])
        if field.compared:
            about[12] = _statistics(field)
        self._chunks.append(struct({2: int64(start), 3: struct(about)}))

    def _write(self, page: _Page) -> None:
        content = self._compress(page.content)
        head = page.head(len(content))
        self._pieces += (head, content)
        self._length += len(head) + len(content)
        self._plain_length += len(head) + len(page.content)

    def finished(self, schema: Sequence[Value], leaves: int, rows: int) -> bytes:
        group = {1: many(self._chunks), 2: int64(self._plain_length), 3: int64(rows), 5: int64(len(_MAGIC))}
        group[6] = int64(self._length - len(_MAGIC))
        footer = struct(
            {
                1: int32(2),
                2: many(schema),
                3: int64(rows),
                4: many([struct(group)] if rows else []),
                6: binary(f"skitter version {__version__}".encode()),
                # That the least and the greatest are by the order of the type.
                7: many([struct({1: _EMPTY})] * leaves),
            }
        ).content
        return b"".join((*self._pieces, footer, len(footer).to_bytes(4, "little"), _MAGIC))


def _schema(fields: Sequence[Field | Lists]) -> list[Value]:
    elements = [struct({4: binary(b"schema"), 5: int32(len(fields))})]
    for field in fields:
        elements += _lists_schema(field) if isinstance(field, Lists) else [_leaf(field)]
    return elements


def _leaf(field: Field) -> Value:
    about = {1: int32(field.kind.physical), 3: int32(_OPTIONAL), 4: binary(field.name.encode())}
    return struct(about | field.kind.annotations)


def _lists_schema(lists: Lists) -> list[Value]:
    """The three levels that the format wants of a list."""
    return [
        _group(lists.name, _OPTIONAL, 1, {6: int32(_LIST), 10: struct({3: _EMPTY})}),
        _group("list", _REPEATED, 1, {}),
        _group("element", _OPTIONAL, len(lists.fields), {}),
        *map(_leaf, lists.fields),
    ]


def _group(name: str, repetition: int, children: int, annotations: dict[int, Value]) -> Value:
    about = {3: int32(repetition), 4: binary(name.encode()), 5: int32(children)}
    return struct(about | annotations)
