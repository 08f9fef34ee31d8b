"""DuckDB over an archive: the views `pages`, `links` and `text`, on the Parquet parts where they lie.

Rows of `pages` that are not in a part yet (the end of a growing segment, an archive without tables) are made
from the CDXJ lines, so that nothing committed is missing; what the index does not say is null there. A
`locked` database reads the archive and nothing else: no other file, no network, no extension, no setting, no
write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from skitter.collection.captures import parse_line, whole_lines
from skitter.collection.layout import Layout, SegmentAt
from skitter.collection.schema import COLUMNS, PAGES, SHORT
from skitter.collection.source import Source
from skitter.errors import UsageError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_CONFIG = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    # Else a large sort would write a folder of its own beside the caller.
    "temp_directory": "",
}
_URL = re.compile(r"(https?)://(?:[^/?#@]*@)?(\[[^\]/?#]*\]|[^/?#:]*)(?::(\d+))?([^?#]*)(?:\?([^#]*))?", re.I)


def open_tables(source: Source, layout: Layout, *, locked: bool) -> DuckDBPyConnection:
    import duckdb

    database = duckdb.connect(":memory:", config=dict(_CONFIG))
    database.execute("set TimeZone = 'UTC'")
    covered = _add_views(database, source, layout)
    _add_fresh(database, source, _uncovered(layout, covered))
    _add_pages(database, bool(layout.parts["pages"]))
    if locked:
        folder = source.location().replace("'", "''")
        database.execute(f"set allowed_directories = ['{folder}']")
        database.execute("set enable_external_access = false")
        database.execute("set lock_configuration = true")
    return database


def select_only(database: DuckDBPyConnection, sql: str) -> DuckDBPyConnection:
    """Run one select. What DuckDB says of a wrong one is told in a line."""
    import duckdb

    try:
        statements = duckdb.extract_statements(sql)
        if len(statements) != 1:
            raise UsageError(f"one select statement at a time, not {len(statements)}")
        if statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
            raise UsageError("only select: an archive is read, never changed")
        return database.execute(sql)
    except duckdb.Error as error:
        raise sql_fault(error) from error


def sql_fault(error: Exception) -> UsageError:
    said = [line.strip() for line in str(error).splitlines() if line.strip()]
    words = " ".join(line for line in said if not line.startswith(("LINE ", "^")))
    return UsageError(f"{words[:400]}; the tables are pages, links and text (describe pages lists columns)")


def _add_views(database: DuckDBPyConnection, source: Source, layout: Layout) -> dict[str, int] | None:
    """Views over the parts; returns how far each segment is covered by them."""
    for table, columns in COLUMNS.items():
        parts = layout.parts[table]
        empty = ", ".join(f'null::{kind} as "{name}"' for name, kind in columns.items())
        target = "parts" if table == "pages" else table
        if not parts:
            short = "" if table == "pages" else _short(table)
            database.execute(f"create view {target} as select *{short} from (select {empty}) limit 0")
            continue
        files = ", ".join("'" + source.location(name).replace("'", "''") + "'" for name in parts)
        reading = f"read_parquet([{files}])"
        present = {row[0] for row in database.execute(f"describe select * from {reading}").fetchall()}
        chosen = ", ".join(_column(name, kind, present) for name, kind in columns.items())
        more = "".join(f', "{name}"' for name in sorted(present - set(columns)))
        inner = f"select {chosen}{more if table != 'pages' else ''} from {reading}"
        short = "" if table == "pages" else _short(table)
        database.execute(f"create view {target} as select *{short} from ({inner})")
    if not layout.parts["pages"]:
        return None
    ends = "select warc_filename, max(warc_record_offset) from parts group by 1"
    return {name: offset for name, offset in database.execute(ends).fetchall() if name}


def _column(name: str, kind: str, present: set[str]) -> str:
    if name not in present:
        return f'null::{kind} as "{name}"'
    # UTC without a zone: DuckDB needs another library to hand zoned times to Python.
    return f'"{name}"::TIMESTAMP as "{name}"' if kind == "TIMESTAMP" else f'"{name}"'


def _short(table: str) -> str:
    return "".join(f", {expression} as {name}" for name, expression in SHORT[table].items())


def _uncovered(layout: Layout, covered: dict[str, int] | None) -> list[tuple[SegmentAt, int]]:
    """The segments with rows that no part holds yet, and the offset after which they begin."""
    known = covered or {}
    return [
        (segment, known.get(segment.name, -1))
        for segment in layout.segments
        if segment.index and (segment.is_growing or segment.name not in known)
    ]


def _add_fresh(database: DuckDBPyConnection, source: Source, segments: list[tuple[SegmentAt, int]]) -> None:
    columns = ", ".join(f'"{name}" {kind}' for name, kind in PAGES.items())
    database.execute(f"create table fresh ({columns})")
    rows = [row for segment, after in segments for row in _rows(source, segment, after)]
    if not rows:
        return
    import pyarrow

    table = pyarrow.Table.from_pylist(rows)
    database.register("lines", table)
    names = ", ".join(rows[0])
    database.execute(f"insert into fresh ({names}) select {names} from lines")
    database.unregister("lines")


def _add_pages(database: DuckDBPyConnection, has_parts: bool) -> None:
    union = "select * from parts union all select * from fresh" if has_parts else "select * from fresh"
    database.execute(f"create view pages as select *{_short('pages')} from ({union})")


def _rows(source: Source, segment: SegmentAt, after: int) -> Iterator[dict[str, Any]]:
    for line in whole_lines(source, segment.index):
        capture = parse_line(line)
        if capture is None or capture.at.offset <= after:
            continue
        parts = _URL.match(capture.url)
        scheme, host, port, path, query = parts.groups() if parts else ("", "", None, "", None)
        tld, domain = _domain(host)
        stamp = capture.stamp.ljust(14, "0")
        yield {
            "url_surtkey": capture.key,
            "url": capture.url,
            "url_host_name": host,
            "url_host_tld": tld,
            "url_host_registered_domain": domain,
            "url_protocol": scheme,
            "url_port": int(port) if port else None,
            "url_path": path,
            "url_query": query,
            "fetch_time": datetime.strptime(stamp, "%Y%m%d%H%M%S"),
            "fetch_status": capture.status,
            "content_digest": capture.digest,
            "content_mime_detected": "" if capture.mime == "warc/revisit" else capture.mime,
            "warc_filename": capture.at.segment,
            "warc_record_offset": capture.at.offset,
            "warc_record_length": capture.at.length,
            "kind": "robots" if path == "/robots.txt" else "page",
        }


@lru_cache(maxsize=4096)
def _domain(host: str) -> tuple[str, str]:
    suffixes = _suffixes()
    if not host or host.startswith("[") or host.replace(".", "").isdigit():
        return "", ""
    return suffixes.publicsuffix(host) or "", suffixes.privatesuffix(host) or ""


@lru_cache(maxsize=1)
def _suffixes() -> Any:
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()
