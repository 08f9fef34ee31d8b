"""From an answer to its rows: a message of msgpack, made where the page was read.

Between the facts of an answer and its parcel. A row has a value for each column of its table but the parts of the
URL, and those that say where the record lies. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from skitter.archive.facts import Answer, Item
from skitter.archive.schema import ITEM, PLACE, URL_PART, Column, Kind, Table

Row = Sequence[object]
_encode = msgspec.msgpack.Encoder().encode
_TYPES: dict[Kind, type | tuple[type, ...]] = {
    Kind.TEXT: str,
    Kind.EXACT: str,
    Kind.LONG: str,
    Kind.BOOL: bool,
    Kind.FLOAT32: (int, float),
    Kind.FLOAT64: (int, float),
}


def pack_rows(tables: Sequence[Table]) -> Callable[[Answer], bytes]:
    """Makes the rows of an answer, of those tables that it has any of."""
    makers = [(table.name, _rows_of(table)) for table in tables]

    def pack(answer: Answer) -> bytes:
        rows = {name: found for name, make in makers if (found := make(answer))}
        try:
            return _encode(rows)
        except UnicodeEncodeError:
            return _encode(_without_surrogates(rows))

    return pack


def stored_columns(table: Table) -> list[Column]:
    """Those that a row has a value for."""
    return [column for column in table.columns if not column.source.startswith((PLACE, URL_PART))]


def _rows_of(table: Table) -> Callable[[Answer], Sequence[Row]]:
    if table.has_items:
        return _rows_of_items(table)
    values: Callable[[Answer], Row] = attrgetter(*(column.source for column in stored_columns(table)))
    if not table.when:
        return lambda answer: (values(answer),)
    when = attrgetter(table.when)
    return lambda answer: (values(answer),) if when(answer) else ()


def _rows_of_items(table: Table) -> Callable[[Answer], Sequence[Row]]:
    sources = [
        _checked_item(table, column) if column.source == ITEM else _of_answer(column.source)
        for column in stored_columns(table)
    ]

    def rows(answer: Answer) -> Sequence[Row]:
        items = (answer.facts.items or {}).get(table.name, ())
        return [[source(answer, item) for source in sources] for item in items]

    return rows


def _of_answer(source: str) -> Callable[[Answer, Item], object]:
    value = attrgetter(source)
    return lambda answer, _: value(answer)


def _checked_item(table: Table, column: Column) -> Callable[[Answer, Item], object]:
    """What somebody else's code gave is of the column's type, or is refused before it is in any file."""
    wanted, name = _TYPES.get(column.kind, int), column.name

    def value(_: Answer, item: Item) -> object:
        given = item.get(name)
        if given is not None and (
            not isinstance(given, wanted) or (isinstance(given, bool) and wanted is not bool)
        ):
            raise TypeError(f"{table.name}.{name} is of type {column.kind}, not {type(given).__name__}")
        return given

    return value


def _without_surrogates(value: Any) -> Any:
    """Some texts in strange encodings consist of them, and no encoding can write them."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {name: _without_surrogates(each) for name, each in value.items()}
    return [_without_surrogates(each) for each in value] if isinstance(value, list | tuple) else value
