"""What an archive holds and lacks, by reading it: sizes by type, errors by host, what was cut off, what pages
need and is not there, what changed.

Over the tables and, for what pages need, over the pages themselves. Lists are bounded, and say how long they are.
Never writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from skitter.collection.collection import Collection
from skitter.collection.tables import select_only
from skitter.errors import ArchiveFailed
from skitter.parse.media import HTML, XHTML
from skitter.parse.page import read_page
from skitter.settings import AboutSettings
from skitter.urls.canonical import normalise

MOST_LISTED = 200
_HTML_PAGES = f"kind = 'page' and status = 200 and mime in ('{HTML}', '{XHTML}')"
Row = tuple[Any, ...]


class Listing(msgspec.Struct, frozen=True):
    """The first rows of a list, and how many there are in all."""

    total: int
    rows: list[Row]


class ArchiveFigures(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    about: AboutSettings
    first: str
    last: str
    answers: int
    pages: int
    hosts: int
    bytes: int
    types: list[Row]
    """Media type, answers, bytes of their bodies."""
    errors: Listing
    """Host, status, answers."""
    truncated: Listing
    """URL, size, why."""
    missing: Listing
    """What pages need and the archive lacks: URL, pages that need it, what came instead (0: never asked)."""
    changes: Listing
    """Change, URL, when it was seen."""
    unreadable: int = 0
    """Pages whose records cannot be read."""


def read_figures(collection: Collection, advance: Callable[[int], None] = lambda _: None) -> ArchiveFigures:
    with collection.duckdb(locked=True) as database:

        def rows(sql: str) -> list[Row]:
            return [tuple(row) for row in select_only(database, sql).fetchall()]

        [(answers, pages, hosts, size, first, last)] = rows(
            "select count(*), count(distinct url) filter (kind = 'page' and status = 200), "
            "count(distinct host), "
            "coalesce(sum(size) filter (revisit_of is null), 0), "
            "coalesce(strftime(min(fetch_time), '%Y-%m-%d %H:%M:%S'), ''), "
            "coalesce(strftime(max(fetch_time), '%Y-%m-%d %H:%M:%S'), '') from pages"
        )
        types = rows(
            "select coalesce(mime, ''), count(*), coalesce(sum(size) filter (revisit_of is null), 0) b "
            "from pages where status = 200 group by 1 order by b desc, 1"
        )
        errors = rows(
            "select host, status, count(*) n from pages where status >= 400 group by all order by n desc, 1, 2"
        )
        truncated = rows(
            "select url, size, truncated from pages where truncated is not null order by size desc, url"
        )
        changes = rows(
            "select change, url, strftime(fetch_time, '%Y-%m-%d %H:%M:%S') t from changes "
            "where previous_time is not null or change = 'gone' order by fetch_time desc, url"
        )
        statuses: dict[str, int] = dict(
            rows("select url, arg_max(status, fetch_time) from pages group by url")
        )
    needed, unreadable = _needed(collection, advance)
    missing = [
        (url, count, statuses.get(url, 0))
        for url, count in needed.items()
        if statuses.get(url, 0) not in _THERE
    ]
    missing.sort(key=lambda row: (-row[1], row[0]))
    return ArchiveFigures(
        name=collection.name,
        about=collection.about,
        first=first,
        last=last,
        answers=answers,
        pages=pages,
        hosts=hosts,
        bytes=size,
        types=types,
        errors=_listing(errors),
        truncated=_listing(truncated),
        missing=_listing(missing),
        changes=_listing(changes),
        unreadable=unreadable,
    )


# What a player can show: the file, or where it is to be found.
_THERE = frozenset((200, 203, 204, 206, 301, 302, 303, 304, 307, 308))


def _listing(rows: Sequence[Row]) -> Listing:
    return Listing(len(rows), list(rows[:MOST_LISTED]))


def _needed(collection: Collection, advance: Callable[[int], None]) -> tuple[dict[str, int], int]:
    """Of the newest answer of each page, the files that it needs to look as it does, and by how many pages."""
    needed: dict[str, int] = {}
    unreadable = 0
    for page in collection.pages(_HTML_PAGES, newest=True):
        advance(1)
        try:
            whole = collection.whole(collection.record(page.record))
        except ArchiveFailed:
            unreadable += 1
            continue
        content = read_page(
            whole.decoded(),
            url=page.url,
            content_type=whole.header("content-type"),
            with_requisites=True,
        )
        found = {normalise(href, content.base) for href in content.requisites}
        for url in found - {None}:
            needed[str(url)] = needed.get(str(url), 0) + 1
    return needed, unreadable
