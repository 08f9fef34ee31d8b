"""`skitter query`: SQL over a crawl's tables, as a table for people, CSV, or one JSON object a line.

CSV and JSON are written row by row, so a million rows take no more memory than a thousand.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skitter.collection.collection import Collection, is_stored_elsewhere
from skitter.collection.export.csv_cells import harmless
from skitter.collection.source import cache_home
from skitter.collection.tables import select_only, sql_fault
from skitter.confinement import run_without_writing
from skitter.console.display.output import ReaderGone, write_lines
from skitter.console.display.table import table
from skitter.console.read.urls_table import add_urls, is_named, read_urls

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FORMATS = ("table", "csv", "json")
_BATCH = 2048
_MOST_IN_TABLE = 1000
_WIDEST = 80


def run_query(folder: Path | str, sql: str, form: str) -> None:
    """The statement may only read by its kind; and where the kernel can hold it to that, it does."""
    cache = cache_home()
    if is_stored_elsewhere(folder):
        with suppress(OSError):
            cache.mkdir(parents=True, exist_ok=True)
    # before writing is given up: a frontier is looked at from a copy of its list of files
    urls = read_urls(folder) if is_named(sql) and not is_stored_elsewhere(folder) else None
    run_without_writing(lambda: _run_query(folder, sql, form, urls), but=(str(cache),))


def _run_query(folder: Path | str, sql: str, form: str, urls: Any) -> None:
    with Collection.at(folder) as collection, collection.duckdb(locked=True) as database:
        if urls is not None:
            add_urls(database, urls)
        found = select_only(database, sql)
        names = _unique([column[0] for column in found.description or ()])
        render = {"table": _as_table, "csv": _as_csv, "json": _as_json}[form]
        with suppress(ReaderGone):
            for lines in render(names, _batches(found)):
                write_lines(lines)


def _batches(found: DuckDBPyConnection) -> Iterator[list[tuple[Any, ...]]]:
    import duckdb

    try:
        while rows := found.fetchmany(_BATCH):
            yield rows
    except duckdb.Error as error:
        raise sql_fault(error) from error


def _unique(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, -1) + 1
        unique.append(f"{name}_{seen[name]}" if seen[name] else name)
    return unique


def _as_table(names: list[str], batches: Iterator[list[tuple[Any, ...]]]) -> Iterator[list[str]]:
    rows: list[tuple[Any, ...]] = []
    for batch in batches:
        rows += batch
        if len(rows) > _MOST_IN_TABLE:
            break
    shown = [names, *([_cell(value) for value in row] for row in rows[:_MOST_IN_TABLE])]
    numbers = [i for i in range(len(names)) if rows and all(_is_number(row[i]) for row in rows)]
    yield list(table(shown, right=numbers, most=_WIDEST))
    if len(rows) > _MOST_IN_TABLE:
        print(f"skitter: only the first {_MOST_IN_TABLE:,} rows: --format csv has all", file=sys.stderr)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return value if isinstance(value, str) else str(value)


def _as_csv(names: list[str], batches: Iterator[list[tuple[Any, ...]]]) -> Iterator[list[str]]:
    yield [_csv([names])]
    for batch in batches:
        yield [_csv([[harmless(_flat(value)) for value in row] for row in batch])]


def _csv(rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().removesuffix("\n")


def _flat(value: object) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    return json.dumps(value, default=str) if isinstance(value, list | dict) else value


def _as_json(names: list[str], batches: Iterator[list[tuple[Any, ...]]]) -> Iterator[list[str]]:
    """One object a line, so that a reader can begin before the last row is there."""
    for batch in batches:
        yield [json.dumps(dict(zip(names, map(_jsonable, row), strict=True)), default=str) for row in batch]


def _jsonable(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, datetime | date) else value
