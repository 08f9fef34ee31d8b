"""The table `urls` of `skitter query`: every URL that the frontier knows, with the date of its next visit.

Made when a statement names it, from the frontier as it is at that moment, also while the crawl runs; not stored.
Reads, and writes nothing to the crawl's folder.
"""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from skitter.frontier.base import UrlView

NAME = "urls"
_NAMED = re.compile(rf"\b{NAME}\b", re.IGNORECASE)
_AT_ONCE = 2_000
_MICROS = 1_000_000
_TEXTS = ("url", "state", "why", "detail", "title")
_TIMES = ("fetch_time", "next_crawl_at")


def is_named(sql: str) -> bool:
    return _NAMED.search(sql) is not None


def read_urls(place: Path | str) -> Any:
    """As an Arrow table; None where the folder has no frontier, as an archive of somebody else's."""
    from skitter.folder import CrawlFolder

    folder = CrawlFolder(Path(place))
    if folder.is_new or not folder.frontier.is_dir():
        return None
    return asyncio.run(_read(folder))


async def _read(folder: Any) -> Any:
    import pyarrow

    from skitter.settings.load import load
    from skitter.wiring import open_frontier

    settings = load(crawl_file=folder.settings_file, config_file=None, environ=os.environ, flags={}).settings
    batches = []
    async with open_frontier(folder, settings, read_only=True) as frontier:
        after = ""
        while True:
            found = await frontier.urls(limit=_AT_ONCE, after=after)
            batches.append(pyarrow.RecordBatch.from_pylist([_row(view) for view in found.urls], _schema()))
            after = found.after
            if not after:
                break
    return pyarrow.Table.from_batches(batches, _schema())


def _schema() -> Any:
    import pyarrow

    texts = [(name, pyarrow.string()) for name in _TEXTS]
    times = [(name, pyarrow.timestamp("us")) for name in _TIMES]
    return pyarrow.schema([*texts, ("status", pyarrow.int32()), *times])


def _row(view: UrlView) -> dict[str, object]:
    return {
        **{name: getattr(view, name) for name in _TEXTS},
        "status": view.status or None,
        "fetch_time": round(view.at * _MICROS) if view.at else None,
        "next_crawl_at": None if view.next_crawl_at is None else round(view.next_crawl_at * _MICROS),
    }


def add_urls(database: DuckDBPyConnection, table: Any) -> None:
    database.register(NAME, table)
