"""From rows to Parquet files, by pyarrow: a part of each table for a stretch of a journal.

Runs in the child of the table writer. Knows columns and their types, not what they mean: those of a table come
with the task. Never knows what a commit is.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skitter.archive.schema import ITEM, PLACE, URL_PART, Column, Kind, Table
from skitter.archive.set_aside import set_rows_aside
from skitter.archive.tables.journal import Entry, entries, salvaged, whole_frames
from skitter.archive.tables.parts import part_path, write_part
from skitter.archive.tables.rows import stored_columns
from skitter.archive.tables.table_writer import Stretch
from skitter.archive.tables.url_parts import url_columns
from skitter.faultpoints import Point, reach

_TYPES = {
    Kind.TEXT: pa.string(),
    Kind.EXACT: pa.string(),
    Kind.LONG: pa.string(),
    Kind.TIME: pa.timestamp("us", tz="UTC"),
    Kind.BOOL: pa.bool_(),
    Kind.INT16: pa.int16(),
    Kind.INT32: pa.int32(),
    Kind.INT64: pa.int64(),
    Kind.UINT64: pa.uint64(),
    Kind.FLOAT32: pa.float32(),
    Kind.FLOAT64: pa.float64(),
}
# Of a text or a list the least and the greatest would be long, and of no use to any query.
_NOT_COMPARED = (Kind.LONG, Kind.STRUCTS)
# Level 3 saves another 4 % of the bytes for a third more time.
_LEVEL = 1
# Bytes. Longer than what one answer may have of rows.
_LONGEST_FRAME = 1 << 28
# What msgspec, Arrow and we say of rows that are not of their tables.
_DAMAGE = (
    msgspec.MsgspecError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    ArithmeticError,
    NotImplementedError,
)


def write_stretch(task: Stretch) -> int:
    """As one part of each table; returns where it ends. Of a table without rows an empty part is written: its
    name says that the journal was read so far. Rows that cannot be read are set aside."""
    content = _read(task)
    end = task.start + len(content)
    try:
        found = _entries(content)
        built = [build_table(table, found, task.segment) for table in task.tables]
    except _DAMAGE:
        found = _salvage(task, content)
        built = [build_table(table, found, task.segment) for table in task.tables]
    for number, (table, rows) in enumerate(zip(task.tables, built, strict=True)):
        if number:
            reach(Point.BETWEEN_PARTS)
        path = part_path(Path(task.folder), table.name, task.stem, task.start, end)
        write_part(path, encode_parquet(rows, table.columns))
    return end


def _entries(content: bytes) -> list[Entry]:
    if content[whole_frames(content) :].strip(b"\0"):
        raise ValueError("a row breaks off")
    return [*entries(content)]


def _salvage(task: Stretch, content: bytes) -> list[Entry]:
    """What can be read of a damaged stretch; the rest is set aside."""
    found: list[Entry] = []
    for start, end, entry in salvaged(content):
        if entry is not None and _fits(task, entry):
            found.append(entry)
        else:
            set_rows_aside(Path(task.folder), task.stem, task.start + start, content[start:end])
    return found


def _fits(task: Stretch, entry: Entry) -> bool:
    """Whether its rows are rows of the tables."""
    try:
        for table in task.tables:
            build_table(table, [entry], task.segment)
    except _DAMAGE:
        return False
    return True


def _read(task: Stretch) -> bytes:
    most = task.most
    with open(task.journal, "rb") as journal:
        while True:
            journal.seek(task.start)
            content = journal.read(min(task.end - task.start, most))
            if task.start + len(content) == task.end:
                return content
            if whole := whole_frames(content):
                return content[:whole]
            if len(content) < most:
                raise OSError(errno.EIO, f"{task.journal} is shorter than what was committed of it")
            if most >= _LONGEST_FRAME:
                # A length that is damaged: up to the last row behind it that is whole.
                ends = [each.end for each in salvaged(content) if each.entry is not None]
                return content[: ends[-1]] if ends else content
            most *= 2


def build_table(table: Table, found: Sequence[Entry], segment: str) -> pa.Table:
    rows = [entry.rows.get(table.name, ()) for entry in found]
    stored = stored_columns(table)
    columns = zip(*chain.from_iterable(rows), strict=True) if any(rows) else repeat(())
    values: dict[str, Sequence[Any]] = {
        _key(column): each for column, each in zip(stored, columns, strict=False)
    }
    sources = {column.source for column in table.columns}
    if any(source.startswith(URL_PART) for source in sources):
        values |= {URL_PART + name: each for name, each in url_columns(values["url"]).items()}
    if any(source.startswith(PLACE) for source in sources):
        values |= {PLACE + name: each for name, each in _place_columns(found, rows, segment).items()}
    arrays = {column.name: _array(column, values[_key(column)]) for column in table.columns}
    return pa.table(arrays)


def _key(column: Column) -> str:
    """Several columns may be of items."""
    return f"{ITEM}.{column.name}" if column.source == ITEM else column.source


def _place_columns(
    found: Sequence[Entry], rows: Sequence[Sequence[Any]], segment: str
) -> dict[str, Sequence[Any]]:
    """For each row, where the record of its answer lies."""
    lengths = [*map(len, rows)]
    offsets, sizes, originals = zip(*(entry.place for entry in found), strict=True) if found else ((), (), ())
    columns = {"offset": offsets, "length": sizes, "revisit_of": originals, "segment": [segment] * len(found)}
    return {name: [*chain.from_iterable(map(repeat, each, lengths))] for name, each in columns.items()}


def _array(column: Column, values: Sequence[Any]) -> pa.Array:
    if column.kind is Kind.STRUCTS:
        return _structs(column, values)
    if column.kind is Kind.TEXT:
        values = [value or None for value in values]
    return pa.array(values, _TYPES[column.kind])


def _structs(column: Column, values: Sequence[Sequence[str]]) -> pa.Array:
    """Arrow splits the lines without making a Python object of each."""
    lines = [pa.array(texts, pa.string()) for texts in zip(*values, strict=True)] or [
        pa.array([], pa.string()) for _ in column.fields
    ]
    lists = [pc.split_pattern(texts, "\n") for texts in lines]
    ends = lists[0].offsets
    if any(not each.offsets.equals(ends) for each in lists):
        raise ValueError(f"the {column.name} of a page do not agree on their number")
    structs = pa.StructArray.from_arrays([each.values for each in lists], names=column.fields)
    return pa.ListArray.from_arrays(ends, structs)


def encode_parquet(built: pa.Table, columns: Sequence[Column]) -> memoryview:
    sink = pa.BufferOutputStream()
    pq.write_table(
        built,
        sink,
        compression="zstd",
        compression_level=_LEVEL,
        # Of values that do not repeat a dictionary would be built to be thrown away.
        use_dictionary=[path for column in columns if column.repeats for path in _paths(column)],
        write_statistics=[column.name for column in columns if column.kind not in _NOT_COMPARED],
        store_schema=False,
    )
    return memoryview(sink.getvalue())


def _paths(column: Column) -> list[str]:
    """The names of a column's leaves in the file."""
    return [f"{column.name}.list.element.{field}" for field in column.fields] or [column.name]
