"""Lists for the operator: which hosts are next and why not sooner, and URLs by state.

Nothing here writes. Each looks at a bounded number of rows: a crawl may have millions of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from skitter.frontier.base import HostOutlook, UrlView
from skitter.frontier.engine.load_limits import is_closed
from skitter.frontier.rows import HostRow, UrlRow
from skitter.frontier.tables import queries
from skitter.frontier.tables.queries import Cursor
from skitter.frontier.tables.row_cache import RowCache
from skitter.model import Host, UrlState
from skitter.urls.canonical import host_of

_AT_ONCE = 2_000


def outlook(cache: RowCache, limit: int, delay_why: Callable[[HostRow], str]) -> list[HostOutlook]:
    leased = [ending.ident for ending in itertools.islice(queries.lease_ends(cache), limit)]
    found = []
    for ident in (*leased, *queries.next_hosts(cache, limit)):
        row = cache.host(ident)
        if row is not None:
            found.append(_outlook(cache, row, delay_why(row)))
    return found


def _outlook(cache: RowCache, row: HostRow, delay_why: str) -> HostOutlook:
    pace, health, robots = row.pace, row.health, row.robots
    fails = bool(health.failures)
    return HostOutlook(
        host=row.host,
        is_leased=row.lease is not None,
        queued=sum(row.queue.lengths),
        next_start=cache.by_the_clock(cache.earliest_start(row)),
        delay=cache.delay_of(row),
        delay_why=delay_why,
        failure=health.last_failure if fails else "",
        is_of_robots=fails and (bool(robots.failing_since) or not robots.read_at),
        is_crowded=bool(pace.crowded_until) and pace.crowded_until == pace.not_before,
        closed=pace.closed_why if is_closed(row) else "",
    )


def some_urls(
    cache: RowCache,
    state_of: Callable[[bytes, UrlRow], UrlState],
    start: Cursor,
    most: int,
    *,
    state: UrlState | None,
    why: str,
    host: Host | None,
) -> tuple[list[UrlView], Cursor | None]:
    """Up to `most` URLs of the next slice that are so, and where to go on."""
    found: list[UrlView] = []
    for looked, key in enumerate(queries.urls(cache, host, start)):
        if looked >= _AT_ONCE or len(found) >= most:
            return found, key
        row = cache.url(key)
        if row is None or (host is not None and host_of(row.url) != host):
            continue
        if why and why not in (row.reason, row.answer.failure):
            continue
        now = state_of(key, row)
        if state is None or now is state:
            found.append(_view(cache, row, now))
    return found, None


def _view(cache: RowCache, row: UrlRow, state: UrlState) -> UrlView:
    is_final = state in (UrlState.COMPLETED, UrlState.GONE)
    return UrlView(
        url=row.url,
        state=state.name.lower(),
        why=row.answer.failure or row.reason,
        detail=row.rule,
        status=row.answer.status,
        title=row.answer.title,
        at=row.answer.at,
        next_crawl_at=cache.by_the_clock(row.due) if is_final and row.due else None,
    )
