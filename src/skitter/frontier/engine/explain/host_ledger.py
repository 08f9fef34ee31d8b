"""What one host was asked, summed up from its ledger: for a webmaster who wants to know. Nothing here writes.

The ledger has the requests of a host by URL, not by time, so all of them are walked over, in slices; what is
kept of each is when it was sent (8 bytes).
"""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median

from skitter.frontier.base import DayOfHost, HostFetch, HostLedger, HostView
from skitter.frontier.engine.explain.host_report import MOST_SHOWN, fetch_fields, url_of_fetch
from skitter.frontier.rows import HostRow
from skitter.frontier.tables import queries
from skitter.frontier.tables.queries import LedgerEntry
from skitter.frontier.tables.row_cache import RowCache
from skitter.model import Host
from skitter.urls.canonical import host_id, host_of
from skitter.urls.keys import robots_key

_AT_ONCE = 2_000
_MOST_ADDRESSES = 20
_THROTTLED = 429


class HostLedgerWalk:
    """`go_on` until it says that all was seen, then `result`."""

    def __init__(self, cache: RowCache, row: HostRow, latest: int) -> None:
        self._cache, self._row, self._most = cache, row, latest
        self._host = Host(row.host)
        ident, prefix = host_id(self._host), cache.keys.prefix(self._host)
        # keys may fold hosts: then other hosts' fetches lie between, and the URL tells whose they are
        self._is_shared = ident != prefix
        self._prefixes = list(dict.fromkeys((ident, prefix)))
        self._robots = robots_key(self._host)
        self._start = queries.FROM_THE_START
        self._times = array("d")
        self._bytes, self._answering, self._robots_requests = 0, 0.0, 0
        self._results: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._addresses: dict[str, None] = {}
        self._days: dict[str, list[int]] = {}
        self._latest: list[tuple[float, bytes, LedgerEntry]] = []
        self._latest_errors: list[tuple[float, bytes, LedgerEntry]] = []

    def go_on(self) -> bool:
        if not self._prefixes:
            return True
        found, start = queries.ledger_slice(self._cache, self._prefixes[0], self._start, _AT_ONCE)
        for entry in found:
            if not self._is_shared or entry.key == self._robots or self._is_of_host(entry):
                self._add(entry)
        if start is None:
            self._prefixes.pop(0)
        self._start = start or queries.FROM_THE_START
        return not self._prefixes

    def _is_of_host(self, entry: LedgerEntry) -> bool:
        row = self._cache.url(entry.key)
        return row is not None and host_of(row.url) == self._host

    def _add(self, entry: LedgerEntry) -> None:
        row = entry.row
        error = _error_of(entry)
        self._times.append(entry.at)
        self._bytes += row.size
        self._answering += row.seconds
        self._robots_requests += entry.key == self._robots
        self._results[row.result] += 1
        if row.status:
            self._statuses[str(row.status)] += 1
        if error:
            self._errors[error] += 1
        if row.address and len(self._addresses) < _MOST_ADDRESSES:
            self._addresses[row.address] = None
        day = self._days.setdefault(datetime.fromtimestamp(entry.at, UTC).strftime("%Y-%m-%d"), [0, 0, 0])
        day[0], day[1], day[2] = day[0] + 1, day[1] + row.size, day[2] + bool(error)
        self._keep(self._latest, entry)
        if error:
            self._keep(self._latest_errors, entry)

    def _keep(self, kept: list[tuple[float, bytes, LedgerEntry]], entry: LedgerEntry) -> None:
        one = (entry.at, entry.key, entry)
        if len(kept) < self._most:
            heapq.heappush(kept, one)
        elif kept and one[:2] > kept[0][:2]:
            heapq.heapreplace(kept, one)

    def result(self, view: HostView, pace: str) -> HostLedger:
        row, cache = self._row, self._cache
        times = sorted(self._times)
        gaps = [later - sooner for sooner, later in pairwise(times)]
        body = cache.robots_body(host_id(self._host))
        return HostLedger(
            host=row.host,
            standing=view.standing,
            policy=row.policy,
            pace=pace,
            delay=view.delay,
            delay_why=view.delay_why,
            requests=len(times),
            robots_requests=self._robots_requests,
            bytes=self._bytes,
            first_at=times[0] if times else None,
            last_at=times[-1] if times else None,
            seconds_answering=self._answering,
            smallest_gap=min(gaps, default=None),
            required=row.pace.tightest.required if row.pace.tightest else None,
            median_gap=median(gaps) if gaps else None,
            busiest_minute=_busiest_minute(times),
            results=dict(self._results.most_common()),
            statuses=dict(sorted(self._statuses.items())),
            errors=dict(self._errors.most_common()),
            addresses=tuple(self._addresses),
            days=tuple(
                DayOfHost(day=day, requests=requests, bytes=size, errors=errors)
                for day, (requests, size, errors) in sorted(self._days.items())
            ),
            robots=view.robots,
            robots_at=cache.by_the_clock(row.robots.read_at) if row.robots.read_at else 0.0,
            robots_until=cache.by_the_clock(row.robots.until) if row.robots.until else 0.0,
            robots_size=len(body),
            robots_text=body[:MOST_SHOWN].decode("utf-8", "replace"),
            latest_errors=self._shown(self._latest_errors),
            latest=self._shown(self._latest),
        )

    def _shown(self, kept: list[tuple[float, bytes, LedgerEntry]]) -> tuple[HostFetch, ...]:
        newest = sorted(kept, key=lambda one: one[:2], reverse=True)
        return tuple(
            HostFetch(url=url_of_fetch(self._cache, entry.key, self._host), **fetch_fields(entry))
            for _, _, entry in newest
        )


def _error_of(entry: LedgerEntry) -> str:
    """What the host had to do with: an error that it answered, or a request that it could not answer."""
    status = entry.row.status
    if status >= 500 or status == _THROTTLED:
        return f"status {status}"
    if entry.row.result == "failed" and not status:
        return entry.row.detail.partition(":")[0]
    return ""


def _busiest_minute(times: list[float]) -> int:
    """The most requests in any sixty seconds."""
    most = start = 0
    for end, at in enumerate(times):
        while at - times[start] >= 60:
            start += 1
        most = max(most, end - start + 1)
    return most
