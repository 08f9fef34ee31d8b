"""DuckDB over an archive: a view of every table, on the Parquet parts where they lie.

Tables of ours have the columns of `archive/schema.py`; an older archive that lacks one has nulls there. Any other
table has the columns of its parts.

Rows of `pages` that are not in a part yet (the end of a growing segment, an archive without tables) are made
from the CDXJ lines, so that nothing committed is missing; what the index does not say is null there. A
`locked` database reads the archive and nothing else: no other file, no network, no extension, no setting, no
write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from skitter.archive.schema import ITEMS, PAGES, TABLES, Column, Kind, Table
from skitter.archive.tables.url_parts import domain_parts
from skitter.collection.captures import whole_lines
from skitter.collection.changes import select_changes
from skitter.collection.item_views import add_item_views
from skitter.collection.layout import Layout, SegmentAt
from skitter.collection.source import Source
from skitter.errors import ArchiveFailed, UsageError
from skitter.extras import need

if TYPE_CHECKING:
    import pyarrow
    from duckdb import DuckDBPyConnection, StatementType

_CONFIG = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    # Else a large sort would write a folder of its own beside the caller.
    "temp_directory": "",
}
_CHUNK = 50_000
# What a select is made of. Others of this ending insert, delete, copy to a file.
_READING_NODES = frozenset(("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"))
# Functions that run a text as SQL, or change what is logged and where.
_ACTING_FUNCTIONS = frozenset(
    """query json_execute_serialized_sql copy_database enable_logging disable_logging write_log
    truncate_duckdb_logs enable_profile disable_profile""".split()
)
_EXPLAIN = re.compile(r"\s*explain\b(?:\s+analyze\b)?(?:\s*\([^()]*\))?", re.IGNORECASE)
_KNOWN = {table.name: table for table in (*TABLES, ITEMS)}
_SQL_TYPES = {
    Kind.TEXT: "VARCHAR",
    Kind.EXACT: "VARCHAR",
    Kind.LONG: "VARCHAR",
    Kind.TIME: "TIMESTAMP",
    Kind.BOOL: "BOOLEAN",
    Kind.INT16: "SMALLINT",
    Kind.INT32: "INTEGER",
    Kind.INT64: "BIGINT",
    Kind.UINT64: "UBIGINT",
    Kind.FLOAT32: "FLOAT",
    Kind.FLOAT64: "DOUBLE",
}
_URL = r"^(https?)://(?:[^/?#@]*@)?(\[[^\]/?#]*\]|[^/?#:]*)(?::(\d+))?([^?#]*)(?:\?([^#]*))?"
_FROM_LINES = """
    insert into pages_in_index by name
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
        from index_lines where json_valid(body)
    ) where place > $after
"""


def open_tables(
    source: Source, layout: Layout, *, locked: bool, file: str = ":memory:"
) -> DuckDBPyConnection:
    """In memory, or in a `file` that keeps the views."""
    database = _connect(file)
    for name, parts in layout.parts.items():
        if name == ITEMS.name:
            add_item_views(database, _reading(database, source, ITEMS.columns, parts))
        elif name != PAGES.name:
            _add_view(database, source, name, parts)
    covered = _add_pages_in_parts(database, source, layout.parts[PAGES.name])
    _add_pages_in_index(database, source, _uncovered(layout, covered))
    _add_pages(database)
    if locked:
        _lock(database, source)
    return database


def open_parts(source: Source) -> DuckDBPyConnection:
    """Locked and without views, for `select_parts`: parts that come later can be read too."""
    database = _connect()
    _lock(database, source)
    return database


def select_parts(database: DuckDBPyConnection, source: Source, table: str, parts: Sequence[str]) -> str:
    """A select of some parts of a table, with the columns that the table promises."""
    known = _KNOWN.get(table)
    return _reading(database, source, known.columns if known else (), tuple(parts))


def with_further_names(table: str, reading: str) -> str:
    return f"select *{_further_names(_KNOWN.get(table))} from ({reading})"


def _connect(file: str = ":memory:") -> DuckDBPyConnection:
    need("duckdb")
    import duckdb

    database = duckdb.connect(file, config=dict(_CONFIG))
    database.execute("set TimeZone = 'UTC'")
    return database


def _lock(database: DuckDBPyConnection, source: Source) -> None:
    folders = ", ".join(map(_quoted, source.folders()))
    database.execute(f"set allowed_directories = [{folders}]")
    database.execute("set enable_external_access = false")
    database.execute("set lock_configuration = true")


def select_only(database: DuckDBPyConnection, sql: str) -> DuckDBPyConnection:
    """Run one select. What DuckDB says of a wrong one is told in a line."""
    import duckdb

    try:
        _check_select(database, sql)
        return database.execute(sql)
    except duckdb.Error as error:
        raise sql_fault(error) from error


def select_arrow(database: DuckDBPyConnection, sql: str) -> pyarrow.Table:
    """The rows of one select, in memory."""
    import duckdb

    try:
        _check_select(database, sql)
        return database.sql(sql).to_arrow_table()
    except duckdb.IOException as error:
        raise ArchiveFailed(f"cannot read a table ({str(error).splitlines()[0][:200]})") from error
    except duckdb.Error as error:
        raise sql_fault(error) from error


def _check_select(database: DuckDBPyConnection, sql: str) -> None:
    import duckdb

    statements = duckdb.extract_statements(sql)
    if len(statements) != 1:
        raise UsageError(f"one select statement at a time, not {len(statements)}")
    if not _only_reads(database, sql, statements[0].type):
        raise UsageError("only select: an archive is read, never changed")


def _only_reads(database: DuckDBPyConnection, sql: str, kind: StatementType) -> bool:
    """A select, or the plan of one. The kind alone says little: `explain analyze` carries out what it explains,
    and a select may begin `with x as (copy ... to 'file')`. So every part of the parsed statement is looked
    at."""
    import duckdb

    if kind not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        return False
    if kind == duckdb.StatementType.EXPLAIN:
        sql = _EXPLAIN.sub("", sql, count=1)
    found = database.cursor().execute("select json_serialize_sql(?::varchar)", [sql]).fetchone()
    parsed = json.loads(found[0]) if found else {"error": True}
    return not parsed["error"] and all(map(_reads, _parts(parsed)))


def _parts(parsed: Any) -> Iterator[dict[str, Any]]:
    """Every object in a parsed statement. Not by recursion: a statement may be nested deeply."""
    left = [parsed]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            yield part
            left += part.values()
        elif isinstance(part, list):
            left += part


def _reads(part: dict[str, Any]) -> bool:
    kind, function = part.get("type"), part.get("function_name")
    if isinstance(kind, str) and kind.endswith("_NODE") and kind not in _READING_NODES:
        return False
    return not isinstance(function, str) or function.lower() not in _ACTING_FUNCTIONS


def sql_fault(error: Exception) -> UsageError:
    said = [line.strip() for line in str(error).splitlines() if line.strip()]
    words = " ".join(line for line in said if not line.startswith(("LINE ", "^")))
    return UsageError(f"{words[:400]} (show tables lists the tables, describe pages its columns)")


def columns_of(database: DuckDBPyConnection, table: str) -> list[str]:
    """Those that the archive promises or holds, without the further names of the view."""
    if table in _KNOWN:
        return [column.name for column in _KNOWN[table].columns]
    return [row[0] for row in database.execute(f'describe "{table}"').fetchall()]


def _add_view(database: DuckDBPyConnection, source: Source, name: str, parts: tuple[str, ...]) -> None:
    table = _KNOWN.get(name)
    inner = _reading(database, source, table.columns if table else (), parts)
    database.execute(f'create view "{name}" as select *{_further_names(table)} from ({inner})')


def _add_pages_in_parts(
    database: DuckDBPyConnection, source: Source, parts: tuple[str, ...]
) -> dict[str, int]:
    """Returns how far each segment is covered by parts."""
    inner = _reading(database, source, PAGES.columns, parts)
    names = ", ".join(f'"{column.name}"' for column in PAGES.columns)
    database.execute(f"create view pages_in_parts as select {names} from ({inner})")
    ends = "select warc_filename, max(warc_record_offset) from pages_in_parts group by 1"
    return {name: offset for name, offset in database.execute(ends).fetchall() if name}


def _reading(
    database: DuckDBPyConnection, source: Source, columns: tuple[Column, ...], parts: tuple[str, ...]
) -> str:
    """A select of the promised columns, and of what else the parts hold."""
    if not parts:
        empty = ", ".join(f'null::{sql_type(column)} as "{column.name}"' for column in columns)
        return f"select {empty} limit 0"
    files = ", ".join(_quoted(source.location(name)) for name in parts)
    # Parts of an earlier version may lack a column that later ones have.
    reading = f"read_parquet([{files}], union_by_name = true)"
    described = database.execute(f"describe select * from {reading}").fetchall()
    present = {row[0]: row[1] for row in described}
    promised = [_chosen(column.name, present) or _absent(column) for column in columns]
    known = {column.name for column in columns}
    others = [_chosen(name, present) for name in present if name not in known]
    return f"select {', '.join(promised + others)} from {reading}"


def _chosen(name: str, present: dict[str, str]) -> str:
    if name not in present:
        return ""
    # UTC without a zone: DuckDB needs another library to hand zoned times to Python.
    return f'"{name}"::TIMESTAMP as "{name}"' if present[name].startswith("TIMESTAMP") else f'"{name}"'


def _absent(column: Column) -> str:
    return f'null::{sql_type(column)} as "{column.name}"'


def _further_names(table: Table | None) -> str:
    if table is None:
        return ""
    short = [(column.short, f'"{column.name}"') for column in table.columns if column.short]
    return "".join(f', {expression} as "{name}"' for name, expression in (*short, *table.also))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def sql_type(column: Column) -> str:
    if column.kind is Kind.STRUCTS:
        return "STRUCT(" + ", ".join(f'"{field}" VARCHAR' for field in column.fields) + ")[]"
    return _SQL_TYPES[column.kind]


def _uncovered(layout: Layout, covered: dict[str, int]) -> list[tuple[SegmentAt, int]]:
    """The segments with rows that no part holds yet, and the offset after which they begin."""
    return [
        (segment, covered.get(segment.name, -1))
        for segment in layout.segments
        if segment.index and (segment.is_growing or segment.name not in covered)
    ]


def _add_pages_in_index(
    database: DuckDBPyConnection, source: Source, segments: list[tuple[SegmentAt, int]]
) -> None:
    columns = ", ".join(f'"{column.name}" {sql_type(column)}' for column in PAGES.columns)
    database.execute(f"create table pages_in_index ({columns})")
    for segment, after in segments:
        lines = whole_lines(source, segment.index)
        while chunk := list(islice(lines, _CHUNK)):
            _insert(database, chunk, after)
    if segments:
        _add_domains(database)


def _add_domains(database: DuckDBPyConnection) -> None:
    import pyarrow

    hosts = database.execute("select distinct url_host_name from pages_in_index").fetchall()
    found = [(host, *domain_parts(host)) for (host,) in hosts if host]
    if not found:
        return
    columns = zip(("host", "tld", "domain"), map(_text_array, zip(*found, strict=True)), strict=True)
    database.register("index_domains", pyarrow.table(dict(columns)))
    database.execute(
        "update pages_in_index set url_host_tld = tld, url_host_registered_domain = domain "
        "from index_domains where url_host_name = host"
    )
    database.unregister("index_domains")


def _text_array(values: Iterable[str | None]) -> Any:
    import pyarrow

    return pyarrow.array(values, pyarrow.string())


def _insert(database: DuckDBPyConnection, lines: list[bytes], after: int) -> None:
    """Taken apart by DuckDB, on as many cores as there are."""
    import pyarrow

    split = (line.decode("utf-8", "replace").split(" ", 2) for line in lines)
    whole = [parts for parts in split if len(parts) == 3]
    columns = zip(*whole, strict=True) if whole else ((), (), ())
    named = dict(zip(("key", "stamp", "body"), columns, strict=True))
    database.register(
        "index_lines", pyarrow.table(named, schema=pyarrow.schema([(n, pyarrow.string()) for n in named]))
    )
    database.execute(_FROM_LINES, {"url": _URL, "after": after})
    database.unregister("index_lines")


def _add_pages(database: DuckDBPyConnection) -> None:
    union = "select * from pages_in_parts union all select * from pages_in_index"
    database.execute(f"create view pages as select *{_further_names(PAGES)} from ({union})")
    database.execute(f"create view changes as {select_changes('pages')}")
