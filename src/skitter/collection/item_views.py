"""The views of what users' code made: `items_all`, `items`, and one for each type of item.

    items_all   every row, also of faults, of earlier fetches and of earlier versions of an extractor; one without
                an item or a fault says that a newer version makes nothing of an answer any more
    items       of each answer and extractor what its newest run made; of items with one key, or of one URL and
                place, the newest
    TYPE        the items of one type, with a column for each of their fields: `select name, price from Product`

The columns of a type are those that its items have, so nothing has to be declared; to find them, all items are
read once when the tables are opened. A type that is called like another view has none.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_NEWEST_RUN = """
    create view items as
    select * exclude (is_newest_run) from (
        select *, made_at = max(made_at) over (partition by url, fetch_time, extractor) as is_newest_run
        from items_all
    )
    where is_newest_run and item is not null
    qualify row_number() over (
        partition by type, coalesce(key, url || ' ' || extractor || ' ' || n)
        order by fetch_time desc, made_at desc
    ) = 1
"""
# What every row says of itself, in the views of types; a field of the same name stands for itself.
_OWN = ("url", "fetch_time", "extractor")


def add_item_views(database: DuckDBPyConnection, reading: str) -> None:
    """`reading` is the select over the table's parts."""
    database.execute(f"create view items_all as {reading}")
    database.execute(_NEWEST_RUN)
    taken = {row[0].lower() for row in database.execute("show tables").fetchall()} | {
        "pages",
        "links",
        "text",
        "changes",
    }
    shapes = "select type, json_group_structure(item::json) from items_all where item is not null group by 1"
    for name, shape in sorted(database.execute(shapes).fetchall(), key=lambda row: str(row[0])):
        fields = json.loads(shape) if shape else None
        if name and isinstance(fields, dict) and fields and name.lower() not in taken:
            taken.add(name.lower())
            _add_type(database, name, fields)


def _add_type(database: DuckDBPyConnection, name: str, fields: dict[str, Any]) -> None:
    """A field that is a list or an object keeps its shape."""
    chosen, seen = [], set()
    for field in fields:
        if field and field.lower() not in seen:
            seen.add(field.lower())
            chosen.append(f"made.{_quoted(field)}")
    own = [column for column in _OWN if column not in seen]
    shape = json.dumps(fields).replace("'", "''")
    database.execute(
        f"create view {_quoted(name)} as select {', '.join([*chosen, *own])} from ("
        f"select from_json(item::json, '{shape}') as made, * from items where type = '{_escaped(name)}')"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _escaped(text: str) -> str:
    return text.replace("'", "''")
