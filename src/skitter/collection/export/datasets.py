"""Exports for those who train and analyse: shards of text as dataset hubs take them, and a DuckDB file of views.

Shards are Parquet files of a bounded size, written in the order of the records, one page in memory at a time. The
DuckDB file holds no page: it reads the tables where they lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from skitter.collection.collection import Collection
from skitter.collection.export.contents import Document, documents
from skitter.collection.tables import open_tables
from skitter.errors import UsageError
from skitter.extras import need

Advance = Callable[[int], None]
_ROWS_A_GROUP = 1_000
# Of text, before compression: some 250 MB of file.
_TEXT_A_SHARD = 1_000_000_000
_COLUMNS = ("url", "fetched_at", "title", "language", "text", "digest")
_CARD = """\
---
pretty_name: {name}
configs:
- config_name: default
  data_files:
  - split: train
    path: data/train-*.parquet
---

Text of {pages:,} web pages, by skitter. Columns: {columns}.
A page that was fetched again is here once, as it was last.
"""


def write_shards(collection: Collection, target: Path, where: str, advance: Advance) -> int:
    need("pyarrow")
    folder = target / "data"
    folder.mkdir()
    written = 0
    shards: list[Path] = []
    for rows in _shards(documents(collection, where, advance)):
        shards.append(folder / f"train-{len(shards):05d}.parquet")
        written += _write_shard(shards[-1], rows)
    for number, path in enumerate(shards):
        path.rename(folder / f"train-{number:05d}-of-{len(shards):05d}.parquet")
    name = collection.about.title or Path(collection.name).name
    (target / "README.md").write_text(
        _CARD.format(name=name, pages=written, columns=", ".join(_COLUMNS)), encoding="utf-8"
    )
    return written


def _shards(found: Iterator[Document]) -> Iterator[Iterator[Document]]:
    """Runs of documents, each of so much text; a run must be used up before the next."""
    for first in found:

        def run(first: Document = first) -> Iterator[Document]:
            yield first
            size = len(first.text)
            while size < _TEXT_A_SHARD:
                following = next(found, None)
                if following is None:
                    return
                size += len(following.text)
                yield following

        yield run()


def _write_shard(path: Path, rows: Iterator[Document]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.string()) for name in _COLUMNS])
    written = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        group: list[Any] = []
        for row in rows:
            group.append({name: getattr(row, name) for name in _COLUMNS})
            written += 1
            if len(group) == _ROWS_A_GROUP:
                writer.write_table(pa.Table.from_pylist(group, schema))
                group = []
        writer.write_table(pa.Table.from_pylist(group, schema))
    return written


def write_duckdb(collection: Collection, target: Path, where: str, advance: Advance) -> int:
    """Views of every table, for `attach`. They read the archive where it lies now."""
    if where.strip():
        raise UsageError("a DuckDB file has views of the whole archive: leave --where out, and ask it")
    if "://" in collection.name:
        raise UsageError("a DuckDB file needs an archive on this machine, and this one is in an object store")
    with open_tables(collection.source, collection.layout, locked=False, file=str(target)) as database:
        found = database.execute("select count(*) from pages").fetchone()
    count = int(found[0]) if found else 0
    advance(count)
    return count
