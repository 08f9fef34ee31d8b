"""Reports for the operator: all that is known of one host, and the live leases. Nothing here writes.

The ledger has the requests of a host ordered by URL, not by time: the latest are picked from a bounded number.
"""

from __future__ import annotations

import heapq
import itertools
from typing import Any

from skitter.frontier.base import HostExplanation, HostFetch, HostView, LeaseView
from skitter.frontier.rows import HostRow
from skitter.frontier.tables import queries
from skitter.frontier.tables.queries import LedgerEntry
from skitter.frontier.tables.row_cache import RowCache
from skitter.model import Host, UrlKey
from skitter.urls.canonical import robots_url

# Of a host with more requests, the latest among so many are shown.
_MOST_LOOKED_AT = 20_000
MOST_SHOWN = 65_536


def host_report(
    cache: RowCache, ident: bytes, row: HostRow, view: HostView, pace: str, fetches: int
) -> HostExplanation:
    robots = cache.robots_body(ident)
    lease = row.lease
    return HostExplanation(
        view=view,
        pace=pace,
        worker=lease.worker if lease is not None else "",
        lease_until=cache.by_the_clock(lease.deadline) if lease is not None else None,
        last_failure=row.health.last_failure,
        robots_status=row.robots.status,
        robots_at=cache.by_the_clock(row.robots.read_at) if row.robots.read_at else 0.0,
        robots_until=cache.by_the_clock(row.robots.until) if row.robots.until else 0.0,
        robots_text=robots[:MOST_SHOWN].decode("utf-8", "replace"),
        robots_size=len(robots),
        fetches=tuple(_latest(cache, ident, Host(row.host), fetches)),
    )


def _latest(cache: RowCache, ident: bytes, host: Host, most: int) -> list[HostFetch]:
    newest = heapq.nlargest(most, queries.fetches_of_host(cache, ident, _MOST_LOOKED_AT))
    found = (queries.ledger_entry(cache, entry) for _, entry in newest)
    return [
        HostFetch(url=url_of_fetch(cache, fetch.key, host), **fetch_fields(fetch)) for fetch in found if fetch
    ]


def url_of_fetch(cache: RowCache, key: UrlKey, host: Host) -> str:
    row = cache.url(key)
    if row is not None:
        return row.url
    robots = robots_url(host)
    return robots if key == cache.keys.key_of(robots) else ""


def fetch_fields(fetch: LedgerEntry) -> dict[str, Any]:
    """The fields of a `FetchView`, from the ledger."""
    row = fetch.row
    return {
        "at": fetch.at,
        "seconds": row.seconds,
        "result": row.result,
        "status": row.status,
        "size": row.size,
        "address": row.address,
        "record": f"{row.record[0]} at {row.record[1]}, {row.record[2]} bytes" if row.record else "",
        "detail": row.detail,
    }


def live_leases(cache: RowCache, limit: int) -> list[LeaseView]:
    """Ordered by when they end."""
    found = []
    for ending in itertools.islice(queries.lease_ends(cache), limit):
        row = cache.host(ending.ident)
        if row is not None and (lease := row.lease) is not None:
            deadline = cache.by_the_clock(lease.deadline)
            found.append(
                LeaseView(host=row.host, worker=lease.worker, deadline=deadline, tasks=lease.outstanding())
            )
    return found
