"""Exports of the tables and the index: filtered Parquet copies, and one sorted CDXJ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from skitter.collection.captures import whole_lines
from skitter.collection.collection import Collection
from skitter.collection.export.csv_cells import harmless_in_sql
from skitter.collection.tables import columns_of, sql_fault
from skitter.errors import UsageError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Advance = Callable[[int], None]


def write_parquet(collection: Collection, target: Path, where: str, advance: Advance) -> int:
    """`pages.parquet`, and of every other table the rows of those pages."""
    import duckdb

    matching = collection.count(where)
    condition = f"where (\n{where}\n)" if where.strip() else ""
    chosen = f"(select url, fetch_time from pages {condition})"
    with collection.duckdb() as database:
        try:
            for table in collection.layout.parts:
                columns = ", ".join(f'"{name}"' for name in columns_of(database, table))
                rows = condition if table == "pages" else f"where (url, fetch_time) in {chosen}"
                file = str(target / f"{table}.parquet").replace("'", "''")
                database.execute(
                    f"copy (select {columns} from {table} {rows}) to '{file}' (format parquet, compression zstd)"
                )
        except duckdb.IOException as error:
            raise OSError(_errno_of(error), str(error).splitlines()[0][:200]) from error
        except duckdb.Error as error:
            raise sql_fault(error) from error
    advance(matching)
    return matching


ITEM_FORMS = {
    "parquet": "format parquet, compression zstd",
    "csv": "format csv, header",
    "jsonl": "format json, array false",
}


def write_items(
    collection: Collection, target: Path, where: str, advance: Advance, *, kind: str, form: str
) -> int:
    """The newest items of one type, a column for each field, of the pages that the condition lets through."""
    import duckdb

    condition = f"where (url, fetch_time) in (select url, fetch_time from pages where (\n{where}\n))"
    name, file = kind.replace('"', '""'), str(target).replace("'", "''")
    with collection.duckdb() as database:
        try:
            rows = f'select * from "{name}" {condition if where.strip() else ""} order by url'
            shown = _harmless(database, rows) if form == "csv" else rows
            database.execute(f"copy ({shown}) to '{file}' ({ITEM_FORMS[form]})")
            found = database.execute(f"select count(*) from ({rows})").fetchone()
        except duckdb.CatalogException:
            raise UsageError(
                f'there are no items of type {kind}: ask with "select type, count(*) from items group by 1"'
            ) from None
        except duckdb.IOException as error:
            raise OSError(_errno_of(error), str(error).splitlines()[0][:200]) from error
        except duckdb.Error as error:
            raise sql_fault(error) from error
    return int(found[0]) if found else 0


def _harmless(database: DuckDBPyConnection, rows: str) -> str:
    described = database.execute(f"describe {rows}").fetchall()
    texts = [harmless_in_sql(column) for column, kind, *_ in described if kind == "VARCHAR"]
    return f"select * replace ({', '.join(texts)}) from ({rows})" if texts else rows


def _errno_of(error: Exception) -> int:
    import errno

    return errno.ENOSPC if "No space left" in str(error) else errno.EIO


def index_lines(collection: Collection, where: str, advance: Advance) -> Iterator[bytes]:
    """Index lines, sorted; without a condition those of the archive, byte for byte."""
    layout, source = collection.layout, collection.source
    if not where.strip():
        import heapq

        growing = [segment.index for segment in layout.segments if segment.is_growing and segment.index]
        sorted_ones = [whole_lines(source, name) for name in layout.indexes]
        journals = [iter(sorted(whole_lines(source, name))) for name in growing]
        for line in heapq.merge(*sorted_ones, *journals):
            advance(1)
            yield line + b"\n"
        return
    yield from sorted(_filtered(collection, where, advance))


def _filtered(collection: Collection, where: str, advance: Advance) -> Iterator[bytes]:
    """The archive's own lines of the pages that match; sorted by whoever takes them."""
    wanted: dict[str, set[int]] = {}
    for page in collection.pages(where):
        wanted.setdefault(page.record.segment, set()).add(page.record.offset)
    from skitter.collection.captures import parse_line

    for segment in collection.layout.segments:
        offsets = wanted.get(segment.name)
        if not offsets or not segment.index:
            continue
        for line in whole_lines(collection.source, segment.index):
            capture = parse_line(line)
            if capture is not None and capture.at.offset in offsets:
                advance(1)
                yield line + b"\n"


def write_cdxj(collection: Collection, target: Path, where: str, advance: Advance) -> int:
    written = 0
    with target.open("wb") as file:
        for line in index_lines(collection, where, advance):
            file.write(line)
            written += 1
    return written
