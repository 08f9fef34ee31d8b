"""Parts of the tables that lose rows, when a power loss took commits back from a finished segment.

Runs in the child of the table writer, for `recovery.py`, which finds such a segment at the start of a crawl. A
row is known by its URL and time, which every table has: rows stay whose record was committed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skitter.archive.schema import PAGES, TABLES, Column, Kind
from skitter.archive.set_aside import set_part_aside
from skitter.archive.tables.parquet_files import encode_parquet
from skitter.archive.tables.parts import (
    Part,
    part_path,
    parts_of,
    sync_tables,
    table_folders,
    write_part,
)
from skitter.archive.tables.table_writer import Rollback

_KEY = ["url", "fetch_time"]
_OFFSET = "warc_record_offset"
# pyarrow reads a damaged file with any of these; a file that is not there is none of them.
_DAMAGE = (pa.ArrowException, ValueError, TypeError, LookupError)


def roll_back(task: Rollback) -> int:
    """`pages` last: as long as it is whole, an interrupted attempt can be made again."""
    folder = Path(task.folder)
    kept = _committed_keys(task)
    names = [table.name for table in table_folders(folder)]
    for table in sorted(names, key=lambda name: name == PAGES.name):
        for part in parts_of(folder, table, task.stem):
            if part.end <= task.rows_length:
                continue
            if part.start >= task.rows_length or _cut(task, table, part, kept):
                os.unlink(part.path)
            else:
                set_part_aside(part.path)
    sync_tables(folder)
    return task.rows_length


def _cut(task: Rollback, table: str, part: Part, kept: set[tuple[str, int]] | None) -> bool:
    """Write the part anew, with the rows that are kept; False where it cannot be read."""
    if kept is None:
        return False
    try:
        rows = _with_keys(pq.read_table(part.path, partitioning=None), kept)
    except _DAMAGE:
        return False
    cut = part_path(Path(task.folder), table, task.stem, part.start, task.rows_length)
    write_part(cut, encode_parquet(rows, _columns(table, rows.schema)))
    return True


def _committed_keys(task: Rollback) -> set[tuple[str, int]] | None:
    """Of the rows in the part that the mark lies in; None where it cannot be read."""
    parts = parts_of(Path(task.folder), PAGES.name, task.stem)
    crossing = [part for part in parts if part.start < task.rows_length < part.end]
    if not crossing:
        return set()
    try:
        rows = pq.read_table(crossing[0].path, columns=[*_KEY, _OFFSET], partitioning=None)
        return {*_keys(rows.filter(pc.less(rows[_OFFSET], task.length)))}
    except _DAMAGE:
        return None


def _keys(rows: pa.Table) -> list[tuple[str, int]]:
    return [*zip(rows["url"].to_pylist(), rows["fetch_time"].cast(pa.int64()).to_pylist(), strict=True)]


def _with_keys(rows: pa.Table, kept: set[tuple[str, int]]) -> pa.Table:
    return rows.filter(pa.array([key in kept for key in _keys(rows)], pa.bool_()))


def _columns(table: str, schema: pa.Schema) -> list[Column]:
    """As far as they matter for how a file is written. The journal, which had all of it, is gone."""
    known = {column.name: column for each in TABLES if each.name == table for column in each.columns}
    return [known.get(field.name) or Column(field.name, _kind(field.type), "") for field in schema]


def _kind(of: pa.DataType) -> Kind:
    return Kind.STRUCTS if pa.types.is_nested(of) else Kind.EXACT
