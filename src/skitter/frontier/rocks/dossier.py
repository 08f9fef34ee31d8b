"""All that is known of one host, and who has leases: for an operator who looks at them, nothing here writes.

A host's requests lie together in the ledger, but by URL, not by time: the latest are picked from a bounded
number of them.
"""

from __future__ import annotations

import heapq
import itertools
from typing import Any

from skitter.frontier.base import HostExplanation, HostFetch, HostView, LeaseView
from skitter.frontier.rocks.book import Book
from skitter.frontier.rocks.rows import HostRow, decode_fetch, seconds
from skitter.model import Host
from skitter.urls.canonical import robots_url

_END = b"\xff" * 16
_KEY = 16
_STAMP = 8
# 0.9 us each, all at once: a host with more requests than that shows the latest among so many of them
_MOST_LOOKED_AT = 20_000
_MOST_SHOWN = 65_536


def dossier(book: Book, ident: bytes, row: HostRow, view: HostView, fetches: int) -> HostExplanation:
    robots = book.store.get("robots", ident) or b""
    lease = row.lease
    return HostExplanation(
        view=view,
        worker=lease.worker if lease is not None else "",
        lease_until=book.by_the_clock(lease.deadline) if lease is not None else None,
        last_failure=row.last_failure,
        robots_status=row.robots_status,
        robots_at=book.by_the_clock(row.robots_at) if row.robots_at else 0.0,
        robots_until=book.by_the_clock(row.robots_until) if row.robots_until else 0.0,
        robots_text=robots[:_MOST_SHOWN].decode("utf-8", "replace"),
        robots_size=len(robots),
        fetches=tuple(_latest(book, ident, Host(row.host), fetches)),
    )


def _latest(book: Book, ident: bytes, host: Host, most: int) -> list[HostFetch]:
    entries = itertools.islice(book.store.scan("ledger", ident, ident + _END), _MOST_LOOKED_AT)
    newest = heapq.nlargest(most, entries, key=lambda entry: entry[0][_KEY:])
    return [
        HostFetch(url=_url(book, entry[:_KEY], host), **fetch_fields(entry, raw)) for entry, raw in newest
    ]


def _url(book: Book, key: bytes, host: Host) -> str:
    row = book.url(key)
    if row is not None:
        return row.url
    robots = robots_url(host)
    return robots if key == book.keys.key_of(robots) else ""


def fetch_fields(entry: bytes, raw: bytes) -> dict[str, Any]:
    """What the ledger has of one fetch, named as in `FetchView`."""
    row = decode_fetch(raw)
    return {
        "at": seconds(entry[_KEY:]),
        "seconds": row.seconds,
        "result": row.result,
        "status": row.status,
        "size": row.size,
        "address": row.address,
        "record": f"{row.record[0]} at {row.record[1]}, {row.record[2]} bytes" if row.record else "",
        "detail": row.detail,
    }


def live_leases(book: Book, limit: int) -> list[LeaseView]:
    """Those that end first, first. By the timers, whose low-water mark spares the tombstones of past leases."""
    found = []
    for entry, _ in itertools.islice(book.store.scan("timers", book.timers_low, _END), limit):
        row = book.host(entry[_STAMP:])
        if row is not None and (lease := row.lease) is not None:
            deadline = book.by_the_clock(lease.deadline)
            found.append(
                LeaseView(host=row.host, worker=lease.worker, deadline=deadline, tasks=lease.outstanding())
            )
    return found
