"""A finished segment read for another one: its exchanges as they lie there, with their index lines and rows.

For `skitter forget`, which writes a segment anew without what is to go. Members are copied byte by byte; rows
come from the segment's own parts of the tables. Holds the rows of one segment in memory. Never writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from skitter.archive.schema import PAGES, Column, Kind, Table
from skitter.archive.tables.parts import parts_of
from skitter.archive.tables.rows import stored_columns
from skitter.archive.warc.coding import stem_of
from skitter.extras import need

_encode = msgspec.msgpack.Encoder().encode
_EMPTY: Mapping[Kind, object] = {Kind.EXACT: "", Kind.LONG: ""}
Key = tuple[str, int]


class PageRow(NamedTuple):
    """What the table of pages says of a record, as far as it is needed to carry it over."""

    url: str
    micros: int
    revisit_of: str
    detected: str


class SegmentRows:
    """The rows of one segment, by where the record of their answer begins."""

    def __init__(self, folder: Path, segment: str, tables: Sequence[Table]) -> None:
        self._tables = tables
        self._stem = stem_of(segment)
        self._rows: dict[str, dict[Any, list[list[Any]]]] = {}
        self.pages: dict[int, PageRow] = {}
        for table in tables:
            self._rows[table.name] = self._read(folder, table)

    def _read(self, folder: Path, table: Table) -> dict[Any, list[list[Any]]]:
        found: dict[Any, list[list[Any]]] = {}
        parts = parts_of(folder, table.name, self._stem)
        if not parts:
            return found
        need("pyarrow")
        import pyarrow.parquet as pq

        for part in parts:
            for row in _plain(pq.read_table(part.path, partitioning=None)):
                if table.name == PAGES.name:
                    self._note_page(row)
                key = (
                    row["warc_record_offset"]
                    if "warc_record_offset" in row
                    else (row["url"], row["fetch_time"])
                )
                found.setdefault(key, []).append([_value(column, row) for column in stored_columns(table)])
        return found

    def _note_page(self, row: dict[str, Any]) -> None:
        self.pages[row["warc_record_offset"]] = PageRow(
            row["url"], row["fetch_time"], row.get("revisit_of") or "", row.get("content_mime_detected") or ""
        )

    def at(self, offset: int) -> bytes:
        """Of the answer whose record begins there, as a journal has them; empty where there are none."""
        page = self.pages.get(offset)
        if page is None:
            return b""
        found = {}
        for table in self._tables:
            rows = self._rows[table.name]
            if some := rows.get(offset) or rows.get((page.url, page.micros)):
                found[table.name] = some
        return _encode(found)


def _plain(rows: Any) -> Iterator[dict[str, Any]]:
    """Times as microseconds since 1970."""
    import pyarrow as pa

    for name, field in zip(rows.schema.names, rows.schema, strict=True):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(rows.schema.get_field_index(name), name, rows[name].cast(pa.int64()))
    for batch in rows.to_batches():
        yield from batch.to_pylist()


def _value(column: Column, row: dict[str, Any]) -> object:
    value = row.get(column.name)
    if column.kind is Kind.STRUCTS:
        return ["\n".join(each[field] or "" for each in value or ()) for field in column.fields]
    return _EMPTY.get(column.kind) if value is None else value
