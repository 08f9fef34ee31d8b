"""DuckDB over an archive: the views `pages`, `links` and `text`, on the Parquet parts where they lie.

Rows of `pages` that are not in a part yet (the end of a growing segment, an archive without tables) are made
from the CDXJ lines, so that nothing committed is missing; what the index does not say is null there. A
`locked` database reads the archive and nothing else: no other file, no network, no extension, no setting, no
write.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from skitter.collection.captures import whole_lines
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
_CHUNK = 50_000
_URL = r"^(https?)://(?:[^/?#@]*@)?(\[[^\]/?#]*\]|[^/?#:]*)(?::(\d+))?([^?#]*)(?:\?([^#]*))?"
_FROM_LINES = """
    insert into fresh by name
    select key as url_surtkey, url,
        parts.protocol as url_protocol, parts.host as url_host_name, parts.path as url_path,
        try_cast(nullif(parts.port, '') as integer) as url_port, nullif(parts.query, '') as url_query,
        try_strptime(stamp, '%Y%m%d%H%M%S') as fetch_time,
        try_cast(body->>'status' as smallint) as fetch_status,
        body->>'digest' as content_digest,
        nullif(body->>'mime', 'warc/revisit') as content_mime_type,
        body->>'mime-detected' as content_mime_detected,
        body->>'filename' as warc_filename, place as warc_record_offset,
        try_cast(body->>'length' as bigint) as warc_record_length,
        if(parts.path = '/robots.txt', 'robots', 'page') as kind
    from (
        select key, stamp, body, body->>'url' as url, try_cast(body->>'offset' as bigint) as place,
            regexp_extract(body->>'url', $url, ['protocol', 'host', 'port', 'path', 'query'], 'i') as parts
        from lines where json_valid(body)
    ) where place > $after
"""


def open_tables(source: Source, layout: Layout, *, locked: bool) -> DuckDBPyConnection:
    import duckdb

    database = duckdb.connect(":memory:", config=dict(_CONFIG))
    database.execute("set TimeZone = 'UTC'")
    covered = _add_views(database, source, layout)
    _add_fresh(database, source, _uncovered(layout, covered))
    _add_pages(database, bool(layout.parts["pages"]))
    if locked:
        folders = ", ".join("'" + folder.replace("'", "''") + "'" for folder in source.folders())
        database.execute(f"set allowed_directories = [{folders}]")
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
    for segment, after in segments:
        lines = whole_lines(source, segment.index)
        while chunk := list(islice(lines, _CHUNK)):
            _insert(database, chunk, after)
    if segments:
        _add_domains(database)


def _add_domains(database: DuckDBPyConnection) -> None:
    import pyarrow

    hosts = [host for (host,) in database.execute("select distinct url_host_name from fresh").fetchall()]
    found = [(host, *_domain(host)) for host in hosts if host]
    if not found:
        return
    columns = zip(("host", "tld", "domain"), zip(*found, strict=True), strict=True)
    database.register("domains", pyarrow.table(dict(columns)))
    database.execute(
        "update fresh set url_host_tld = tld, url_host_registered_domain = domain "
        "from domains where url_host_name = host"
    )
    database.unregister("domains")


def _insert(database: DuckDBPyConnection, lines: list[bytes], after: int) -> None:
    """Taken apart by DuckDB, on as many cores as there are: 15 us a line."""
    import pyarrow

    split = (line.decode("utf-8", "replace").split(" ", 2) for line in lines)
    whole = [parts for parts in split if len(parts) == 3]
    columns = zip(*whole, strict=True) if whole else ((), (), ())
    named = dict(zip(("key", "stamp", "body"), columns, strict=True))
    database.register(
        "lines", pyarrow.table(named, schema=pyarrow.schema([(n, pyarrow.string()) for n in named]))
    )
    database.execute(_FROM_LINES, {"url": _URL, "after": after})
    database.unregister("lines")


def _add_pages(database: DuckDBPyConnection, has_parts: bool) -> None:
    union = "select * from parts union all select * from fresh" if has_parts else "select * from fresh"
    database.execute(f"create view pages as select *{_short('pages')} from ({union})")


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
