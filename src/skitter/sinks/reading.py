"""The rows of parts, ready to be sent: filtered, with an id that is the same whenever a row is read.

Between the parts of an archive and a target. A row's id is made of what names it: the crawl, the table, the
answer, and for an item its extractor and place. So a row that is sent twice can be told from two rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from skitter.collection.changes import select_changes
from skitter.collection.source import Source
from skitter.collection.tables import open_parts, select_arrow, select_parts, with_further_names
from skitter.sinks.parts import CHANGES, Part

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ROW_ID = "row_id"
_NAMING = """url fetch_time warc_filename warc_record_offset change extractor version made_at n""".split()
_TIME = pa.timestamp("us", "UTC")


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """What a target takes as one: all rows of a part, or nothing. `replaces` are parts that the archive has lost
    since they were delivered."""

    name: str
    table: str
    rows: pa.Table
    replaces: tuple[str, ...] = ()


class PartReader:
    """One database for all parts; it can read the archive and nothing else."""

    def __init__(self, source: Source, crawl: str, where: str) -> None:
        self._source = source
        self._crawl = crawl
        self._where = f"where (\n{where}\n)" if where.strip() else ""
        self._database: DuckDBPyConnection = open_parts(source)

    def close(self) -> None:
        self._database.close()

    def read(self, part: Part) -> pa.Table:
        """The rows of a part of any table but `changes`."""
        rows = self._select(part.table, select_parts(self._database, self._source, part.table, (part.file,)))
        return self._with_ids(part.table, rows)

    def changes(self, parts: Sequence[Part], all_pages: Sequence[str]) -> dict[str, pa.Table]:
        """Of several parts at once, by name: what was before them is looked for in all pages, which is one pass
        over the archive however many parts there are."""
        database, source = self._database, self._source
        fresh = select_parts(database, source, "pages", [part.file for part in parts])
        pages = select_parts(database, source, "pages", all_pages)
        alike = f"(select * from ({pages}) where url in (select url from ({fresh})))"
        places = f"(select warc_filename, warc_record_offset from ({fresh}))"
        told = (
            f"select * from ({select_changes(alike)}) where (warc_filename, warc_record_offset) in {places} "
            "order by warc_filename, warc_record_offset"
        )
        found = self._with_ids(CHANGES, self._select(CHANGES, told))
        return {part.name: self._of(part, found) for part in parts}

    def _of(self, part: Part, changes: pa.Table) -> pa.Table:
        pages = select_parts(self._database, self._source, "pages", (part.file,))
        rows = self._fetch(f"select warc_filename, warc_record_offset from ({pages})")
        places = {*zip(*(column.to_pylist() for column in rows.columns), strict=True)}
        own = zip(
            changes["warc_filename"].to_pylist(), changes["warc_record_offset"].to_pylist(), strict=True
        )
        return changes.filter(pa.array([place in places for place in own], pa.bool_()))

    def _select(self, table: str, reading: str) -> pa.Table:
        """The condition may use the further names of a table, which are not sent."""
        names = self._fetch(f"select * from ({reading}) limit 0").column_names
        columns = ", ".join(f'"{name}"' for name in names)
        return self._fetch(f"select {columns} from ({with_further_names(table, reading)}) {self._where}")

    def _fetch(self, sql: str) -> pa.Table:
        found = select_arrow(self._database, sql)
        return found.cast(pa.schema([_zoned(field) for field in found.schema]))

    def _with_ids(self, table: str, rows: pa.Table) -> pa.Table:
        named = [
            rows[name].cast(pa.int64()) if pa.types.is_timestamp(rows[name].type) else rows[name]
            for name in _NAMING
            if name in rows.column_names
        ]
        prefix = f"{self._crawl}\0{table}"
        seen: Counter[str] = Counter()
        ids = []
        for values in zip(*(column.to_pylist() for column in named), strict=True):
            text = "\0".join((prefix, *map(str, values)))
            seen[text] += 1
            again = f"\0{seen[text]}" if seen[text] > 1 else ""
            ids.append(sha256((text + again).encode()).hexdigest()[:32])
        return rows.add_column(0, ROW_ID, pa.array(ids, pa.string()))


def _zoned(field: pa.Field) -> pa.Field:
    return field.with_type(_TIME) if pa.types.is_timestamp(field.type) else field
