"""PostgreSQL as a target: the rows of a part and its name in one transaction.

The table `skitter_parts` has a row for each part that was delivered. It is inserted first: of two sinks that
deliver the same part the second one waits for the first, and then leaves it. Tables and columns are added when
they are missing, and never changed otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skitter.errors import TargetFailed, TargetRefused, UsageError
from skitter.sinks.reading import ROW_ID, Delivery
from skitter.sinks.target import JSON_COLUMNS, without_secrets

if TYPE_CHECKING:
    import psycopg

PARTS = "skitter_parts"
_PART_ID = "part_id"
_MAKE_PARTS = f"""create table if not exists {PARTS} (
    part_id bigint generated always as identity, crawl text not null, part text not null, rows bigint not null,
    delivered_at timestamptz not null default now(), primary key (crawl, part))"""
# Neither a text nor JSON of PostgreSQL can hold the character 0.
_NUL_IN_JSON = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
_CONNECT_SECONDS = 10


class PostgresTarget:
    def __init__(self, url: str, crawl: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise UsageError(
                "PostgreSQL needs psycopg, which is not installed: pip install 'skitter[postgres]'"
            ) from None
        self._crawl = crawl
        self._columns: dict[str, set[str]] = {}
        try:
            with _words():
                self._connection: psycopg.Connection[tuple[Any, ...]] = psycopg.connect(
                    url, connect_timeout=_CONNECT_SECONDS, application_name="skitter sink"
                )
        except psycopg.ProgrammingError as error:
            raise UsageError(
                f"--to is no target of PostgreSQL ({without_secrets(str(error)).strip()})"
            ) from None
        with _words(), self._connection.transaction():
            self._connection.execute(_MAKE_PARTS)

    def delivered(self) -> set[str]:
        with _words(), self._connection.transaction():
            found = self._connection.execute(f"select part from {PARTS} where crawl = %s", (self._crawl,))
            return {row[0] for row in found}

    def deliver(self, delivery: Delivery) -> None:
        with _words(), self._connection.transaction():
            part_id = self._begin_part(delivery)
            if part_id is None:
                return
            self._make_table(delivery)
            for name in delivery.replaces:
                self._take_back(delivery.table, name)
            self._copy(delivery, part_id)

    def _begin_part(self, delivery: Delivery) -> int | None:
        inserted = self._connection.execute(
            f"insert into {PARTS} (crawl, part, rows) values (%s, %s, %s) "
            "on conflict do nothing returning part_id",
            (self._crawl, delivery.name, delivery.rows.num_rows),
        ).fetchone()
        return inserted[0] if inserted else None

    def _take_back(self, table: str, name: str) -> None:
        gone = self._connection.execute(
            f"delete from {PARTS} where crawl = %s and part = %s returning part_id", (self._crawl, name)
        ).fetchone()
        if gone:
            self._connection.execute(f'delete from "{table}" where {_PART_ID} = %s', gone)

    def _make_table(self, delivery: Delivery) -> None:
        table, columns = delivery.table, _types(delivery)
        if set(columns) <= self._columns.get(table, set()):
            return
        named = ", ".join(f'"{name}" {kind}' for name, kind in columns.items() if name != ROW_ID)
        self._connection.execute(
            f'create table if not exists "{table}" ({ROW_ID} text primary key, {_PART_ID} bigint, {named})'
        )
        for name, kind in columns.items():
            self._connection.execute(f'alter table "{table}" add column if not exists "{name}" {kind}')
        self._columns[table] = set(columns)

    def _copy(self, delivery: Delivery, part_id: int) -> None:
        """By way of a table that lives as long as the transaction: a row that is there already stays as it is."""
        types = _types(delivery)
        names = ", ".join(f'"{name}"' for name in types)
        connection, table = self._connection, delivery.table
        columns = ", ".join(f'"{name}" {kind}' for name, kind in types.items())
        connection.execute("drop table if exists pg_temp.skitter_rows")
        connection.execute(f"create temp table skitter_rows ({columns}) on commit drop")
        with connection.cursor() as cursor, cursor.copy(f"copy skitter_rows ({names}) from stdin") as copy:
            for row in _rows(delivery):
                copy.write_row(row)
        connection.execute(
            f'insert into "{table}" ({names}, {_PART_ID}) select {names}, {part_id} from skitter_rows '
            f"on conflict ({ROW_ID}) do nothing"
        )

    def close(self) -> None:
        self._connection.close()


def _types(delivery: Delivery) -> dict[str, str]:
    return {field.name: _type(delivery.table, field) for field in delivery.rows.schema}


def _type(table: str, field: pa.Field) -> str:
    kind = field.type
    if (table, field.name) in JSON_COLUMNS or pa.types.is_nested(kind):
        return "jsonb"
    if pa.types.is_timestamp(kind):
        return "timestamptz"
    return _SCALARS.get(str(kind), "text")


_SCALARS = {
    "bool": "boolean",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "uint64": "numeric(20)",
    "float": "real",
    "double": "double precision",
}


def _rows(delivery: Delivery) -> Iterator[Sequence[object]]:
    types = _types(delivery)
    columns = [_values(delivery.rows[name].to_pylist(), kind) for name, kind in types.items()]
    yield from zip(*columns, strict=True)


def _values(values: list[Any], kind: str) -> list[Any]:
    if kind == "jsonb":
        return [_json(value) for value in values]
    if kind == "text":
        return [value.replace("\0", "\ufffd") if value else value for value in values]
    return values


def _json(value: Any) -> str | None:
    import msgspec

    if value is None:
        return None
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return _NUL_IN_JSON.sub("\\1\ufffd", text.replace("\0", "\ufffd"))


@contextmanager
def _words() -> Iterator[None]:
    """PostgreSQL's faults become ours: what may pass, and what will not."""
    import psycopg

    try:
        yield
    except psycopg.OperationalError as error:
        raise TargetFailed(f"PostgreSQL: {_line(error)}") from error
    except (psycopg.InternalError, psycopg.errors.UniqueViolation) as error:
        raise TargetFailed(f"PostgreSQL: {_line(error)}") from error
    except psycopg.ProgrammingError as error:
        if error.sqlstate is None:
            raise
        raise TargetRefused(f"PostgreSQL does not take it: {_line(error)}") from error
    except psycopg.Error as error:
        raise TargetRefused(f"PostgreSQL does not take it: {_line(error)}") from error


def _line(error: Exception) -> str:
    return without_secrets(" ".join(str(error).split()))[:400]
