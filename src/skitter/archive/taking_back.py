"""Parts of the tables that lose rows, when a power loss took commits back from a finished segment.

Beside `recovery.py`, which finds such a segment at the start of a crawl. Reads Parquet, and so wants pyarrow,
which takes 0.3 s to import: imported only when it is needed, which is hardly ever.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skitter.archive.parts import TABLES, part_path, parts_of, write_part


def take_back(folder: Path, stem: str, rows_length: int, length: int) -> None:
    """Parts of a finished segment lose the rows of records from the WARC file's `length` on.

    `pages` last: as long as it is whole, an interrupted attempt can be made again."""
    kept = _kept_before(folder, stem, rows_length, length)
    for table in reversed(TABLES):
        for part in parts_of(folder, table, stem):
            if part.end <= rows_length:
                continue
            if part.start < rows_length:
                cut = part_path(folder, table, stem, part.start, rows_length)
                write_part(cut, _parquet(table, _joined(pq.read_table(part.path, partitioning=None), kept)))
            os.unlink(part.path)


def _kept_before(folder: Path, stem: str, rows_length: int, length: int) -> pa.Table:
    """Which rows of the part that the mark lies in were committed; a record is told by its URL and time."""
    crossing = [p for p in parts_of(folder, "pages", stem) if p.start < rows_length < p.end]
    names = ["url", "fetch_time", "warc_record_offset"]
    if not crossing:
        return pa.table(
            {"url": pa.array([], pa.string()), "fetch_time": pa.array([], pa.timestamp("us", tz="UTC"))}
        )
    rows = pq.read_table(crossing[0].path, columns=names, partitioning=None)
    return rows.filter(pc.less(rows["warc_record_offset"], length)).select(names[:2])


def _joined(rows: pa.Table, kept: pa.Table) -> pa.Table:
    known = set(zip(kept["url"].to_pylist(), kept["fetch_time"].cast(pa.int64()).to_pylist(), strict=True))
    keys = zip(rows["url"].to_pylist(), rows["fetch_time"].cast(pa.int64()).to_pylist(), strict=True)
    return rows.filter(pa.array([key in known for key in keys], pa.bool_()))


def _parquet(table: str, built: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    # Of a text or a list they would be long and of no use to any query.
    statistics = True if table == "pages" else ["url", "fetch_time"]
    pq.write_table(built, sink, compression="zstd", compression_level=1, write_statistics=statistics)
    return memoryview(sink.getvalue())
