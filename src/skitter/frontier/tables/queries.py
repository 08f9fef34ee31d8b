"""Queries of the engine over the tables, by name: which hosts are ready, which URLs wait, which are due.

Between `engine/`, which knows rows but no key bytes, and the store. Queries see committed rows only, not the
changes of a transaction under way. They never write. Those named `consume_...` move a low-water mark in memory,
so that the next scan skips the tombstones of consumed entries. A `Cursor` is a place in a table to go on from;
only this module looks into one.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from typing import NamedTuple

from skitter.frontier.posts import WaitingPost
from skitter.frontier.rows import Errand, FetchRow, Held, HostRow, UrlRow, Walk
from skitter.frontier.tables.layout import (
    ABANDON,
    END_OF_KEYS,
    KEY,
    LOST,
    MARK,
    REJUDGE,
    RELEASE,
    REVISIT,
    SPENT,
    TABLES,
    WALK,
    after_host,
    decode_errand,
    decode_fetch,
    decode_held,
    decode_host,
    decode_mark,
    decode_url,
    decode_walk,
    end_of_segment,
    micros,
    place_of_post,
    post_key,
    reason_refused,
    refused_prefix,
    seconds,
    start_of_segment,
    taken_key,
)
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.slots import ERRAND_LANE, host_of_slot, lane_of
from skitter.model import Host, RecordAt, SegmentMark, UrlKey
from skitter.schedule.priority import LANES

Cursor = bytes
FROM_THE_START: Cursor = b""
_AFTER_HOST = b"\xff" * 9
_AFTER_KEY = b"\xff" * 9


class Waiting(NamedTuple):
    """A place in a host's queue, and the URL that waits there."""

    slot: bytes
    key: UrlKey


class WaitingErrand(NamedTuple):
    slot: bytes
    key: UrlKey
    errand: Errand


class Due(NamedTuple):
    """A URL and its entry in the table. The URL may have got another date since."""

    entry: bytes
    key: UrlKey

    def is_of(self, row: UrlRow) -> bool:
        """Whether this is the date that the URL's row names."""
        return micros(row.due) == self.entry[:8]


class Revisit(NamedTuple):
    """A page and its entry among those to be visited again. The page may have got another date since."""

    entry: bytes
    key: UrlKey
    at: float

    def is_of(self, row: UrlRow) -> bool:
        """Whether this is the date that the page's row names."""
        return micros(row.due) == self.entry[1:9]


class LeaseEnd(NamedTuple):
    entry: bytes
    ident: bytes
    at: float


class LedgerEntry(NamedTuple):
    key: UrlKey
    at: float
    row: FetchRow


class HeldFetch(NamedTuple):
    """A fetch whose segment is not stored elsewhere yet. `fetch` names it in the ledger too."""

    place: bytes
    fetch: bytes
    key: UrlKey
    held: Held


# -- hosts


def ready_hosts(cache: RowCache, tier: int, now: float) -> Iterator[bytes]:
    """Hosts with URLs of this tier that may be asked now, those that have waited longest first."""
    end = bytes((tier,)) + micros(now) + _AFTER_HOST
    for entry in cache.ready.walk(cache.store, tier, end):
        yield entry[9:]


def next_hosts(cache: RowCache, most: int) -> list[bytes]:
    """Up to `most` hosts that are not leased, by when they may be asked."""
    tiers = (cache.ready.next_up(cache.store, tier, most) for tier in range(LANES))
    entries = sorted(itertools.chain(*tiers), key=lambda entry: entry[1:])
    return list(dict.fromkeys(entry[9:] for entry in entries))[:most]


def first_ready_at(cache: RowCache) -> float | None:
    """When the next host may be asked."""
    firsts = (cache.ready.first(cache.store, tier) for tier in range(LANES))
    return min((seconds(entry[1:9]) for entry in firsts if entry), default=None)


def next_host_times(cache: RowCache, most: int) -> list[tuple[float, bytes]]:
    """The hosts that may be asked next, and when: up to `most` of each tier."""
    entries = (entry for tier in range(LANES) for entry in cache.ready.next_up(cache.store, tier, most))
    return sorted((seconds(entry[1:9]), entry[9:]) for entry in entries)


def hosts(cache: RowCache, start: Cursor, most: int) -> tuple[list[HostRow], Cursor | None]:
    """Up to `most` hosts in no order that matters, and where to go on."""
    found = cache.store.first("hosts", start, END_OF_KEYS, most + 1)
    return [decode_host(raw) for _, raw in found[:most]], found[-1][0] if len(found) > most else None


def hosts_to_empty(cache: RowCache, start: Cursor = FROM_THE_START) -> Iterator[tuple[Cursor, bytes]]:
    """Hosts that are given up or blocked and whose queue is not empty yet."""
    for entry, _ in cache.store.scan("meta", start or ABANDON, ABANDON + _AFTER_HOST):
        yield entry, entry[len(ABANDON) :]


def hosts_to_rejudge(cache: RowCache) -> Iterator[tuple[bytes, Cursor]]:
    """Hosts whose robots.txt changed, and how far the walk over their denied URLs has come."""
    for entry, cursor in cache.store.scan("meta", REJUDGE, REJUDGE + _AFTER_HOST):
        yield entry[len(REJUDGE) :], cursor


def lease_ends(cache: RowCache, until: float | None = None) -> Iterator[LeaseEnd]:
    """Leases by when they end, those that end first first; all of them, or those that end by `until`."""
    end = END_OF_KEYS if until is None else micros(until) + _AFTER_HOST
    for entry, _ in cache.store.scan("timers", cache.timers_low, end):
        yield LeaseEnd(entry, entry[8:], seconds(entry[:8]))


def consume_lease_ends(cache: RowCache, until: float | None) -> Iterator[LeaseEnd]:
    """The same, for a caller that ends them all: the next scan begins behind them."""
    low = END_OF_KEYS if until is None else micros(until) + _AFTER_HOST
    for ending in lease_ends(cache, until):
        low = min(low, ending.entry)
        yield ending
    cache.timers_low = low


# -- the post


def waiting_posts(cache: RowCache, part: int, after: int, most: int) -> list[WaitingPost]:
    """For one partition, in their order, from the one after this number on."""
    rows = cache.store.first("meta", post_key(part, after + 1), post_key(part + 1, 0), most)
    return [WaitingPost(*place_of_post(key), body) for key, body in rows]


def parts_with_posts(cache: RowCache, parts: int) -> list[int]:
    found: list[int] = []
    at = 0
    while rows := cache.store.first("meta", post_key(at, 0), post_key(parts, 0), 1):
        found.append(place_of_post(rows[0][0])[0])
        at = found[-1] + 1
    return found


def last_taken(cache: RowCache, source: int) -> int:
    return int.from_bytes(cache.store.get("meta", taken_key(source)) or b"", "big")


# -- queues


def waiting(cache: RowCache, ident: bytes, host: HostRow, tier: int) -> Iterator[Waiting]:
    """The queue of one tier of a host: urgent URLs first, then old ones."""
    start = ident + bytes((tier + 1,)) + host.queue.lows[tier]
    for slot, key in cache.store.scan("queue", start, ident + bytes((tier + 2,))):
        yield Waiting(slot, UrlKey(key))


def errands(cache: RowCache, ident: bytes) -> Iterator[WaitingErrand]:
    """robots.txt files that a host is to be asked for on behalf of others."""
    for slot, raw in cache.store.scan("queue", ident + bytes((ERRAND_LANE,)), ident + bytes((1,))):
        yield WaitingErrand(slot, UrlKey(ident + slot[10:]), decode_errand(raw))


def errands_for(cache: RowCache, host: Host) -> list[WaitingErrand]:
    """robots.txt files that other hosts are to be asked for on behalf of this one: a full scan."""
    found = []
    for slot, raw in cache.store.scan("queue", b"", END_OF_KEYS * 2):
        if lane_of(slot) == ERRAND_LANE and (errand := decode_errand(raw)).behalf == host:
            found.append(WaitingErrand(slot, UrlKey(slot[:8] + slot[10:]), errand))
    return found


def errand_at(cache: RowCache, slot: bytes) -> Errand | None:
    raw = cache.store.get("queue", slot)
    return None if raw is None else decode_errand(raw)


def count_before(cache: RowCache, row: UrlRow, most: int) -> int:
    """How many URLs of its host go before this one, counted up to `most`."""
    before = cache.store.scan("queue", host_of_slot(row.slot), row.slot)
    return sum(1 for _ in itertools.islice(before, most))


# -- URLs


def consume_due(cache: RowCache, now: float, most: int) -> Iterator[Due]:
    """Up to `most` URLs whose date has come, for a caller that takes them all: the next scan begins after
    them."""
    end = micros(now) + _AFTER_KEY * 2
    low = end
    for number, (entry, _) in enumerate(cache.store.scan("due", cache.due_low, end)):
        if number >= most:
            low = entry
            break
        yield Due(entry, UrlKey(entry[8:]))
    cache.due_low = low


def due_of(key: UrlKey, row: UrlRow) -> Due:
    """The date that a URL's row names."""
    return Due(micros(row.due) + key, key)


def first_due_at(cache: RowCache) -> float | None:
    for entry, _ in cache.store.scan("due", cache.due_low, REVISIT[True]):
        return seconds(entry[:8])
    return None


def next_due(cache: RowCache, most: int) -> Iterator[tuple[float, UrlKey]]:
    """The URLs that are tried again next, and when. One may have got another date since."""
    for entry, _ in itertools.islice(cache.store.scan("due", cache.due_low, REVISIT[True]), most):
        yield seconds(entry[:8]), UrlKey(entry[8:])


def revisits(cache: RowCache, prompt: bool, most: int) -> Iterator[Revisit]:
    """Pages that are to be visited again, those that are due first first: those that must be on time, or those
    that the budget decides of."""
    start, end = cache.revisit_lows[prompt] or REVISIT[prompt], REVISIT[prompt] + _AFTER_KEY * 3
    for number, (entry, _) in enumerate(itertools.islice(cache.store.scan("due", start, end), most)):
        if not number:
            # nothing alive is before it: the next scan skips the tombstones
            cache.revisit_lows[prompt] = entry
        yield Revisit(entry, UrlKey(entry[9:]), seconds(entry[1:9]))


def first_revisit_at(cache: RowCache) -> float | None:
    firsts = itertools.chain(revisits(cache, True, 1), revisits(cache, False, 1))
    return min((revisit.at for revisit in firsts), default=None)


def urls(cache: RowCache, host: Host | None = None, start: Cursor = FROM_THE_START) -> Iterator[UrlKey]:
    """URLs of a host, or all of them."""
    return _keys(cache, "urls", host, start)


def anchors(cache: RowCache, kind: str, most: int) -> list[str]:
    """Up to `most` of what seeds brought into scope, of one kind (host, domain, prefix)."""
    start = f"{kind} ".encode()
    found = cache.store.first("anchors", start, start + END_OF_KEYS, most)
    return [key[len(start) :].decode("utf-8", "replace") for key, _ in found]


def dead_letters(
    cache: RowCache, host: Host | None = None, start: Cursor = FROM_THE_START
) -> Iterator[UrlKey]:
    return _keys(cache, "dead", host, start)


def denied(cache: RowCache, host: Host, start: Cursor = FROM_THE_START) -> Iterator[UrlKey]:
    """URLs that robots.txt denied when they were about to be leased."""
    return _keys(cache, "denied", host, start)


def _keys(cache: RowCache, table: str, host: Host | None, start: Cursor) -> Iterator[UrlKey]:
    """Where keys fold hosts (`[keys] www`), other hosts' keys lie in between: the caller checks the row."""
    prefix = cache.keys.prefix(host) if host else b""
    for key, _ in cache.store.scan(table, start or prefix, prefix + END_OF_KEYS):
        yield UrlKey(key)


def url_rows(cache: RowCache, host: Host, most: int) -> Iterator[tuple[UrlKey, UrlRow]]:
    prefix = cache.keys.prefix(host)
    for key, raw in itertools.islice(cache.store.scan("urls", prefix, after_host(prefix)), most):
        yield UrlKey(key), decode_url(raw)


def refused(
    cache: RowCache, reasons: Collection[str], host: Host | None, start: Cursor, most: int
) -> tuple[dict[bytes, bytes], int, Cursor | None]:
    """Of the next `most` URLs (of a host, or of all) the rows of those that are refused for one of these reasons,
    still encoded; how many URLs were looked at, and where to go on."""
    prefix = cache.keys.prefix(host) if host else b""
    rows = cache.store.first("urls", start or prefix, prefix + END_OF_KEYS, most + 1)
    found = {key: row for key, row in rows[:most] if reason_refused(row) in reasons}
    return found, min(most, len(rows)), rows[-1][0] if len(rows) > most else None


def walks(cache: RowCache, most: int) -> list[tuple[bytes, Walk]]:
    """Walks over refused URLs that have not ended: those of hosts first, and up to `most` of them."""
    found = cache.store.first("meta", WALK + b"\0", WALK + _AFTER_HOST, most)
    walks = [(entry[len(WALK) :], decode_walk(raw)) for entry, raw in found]
    whole = walk_of(cache, b"")
    return walks if whole is None else [*walks, (b"", whole)]


def walk_of(cache: RowCache, ident: bytes) -> Walk | None:
    """The walk over refused URLs of a host; without a host, that over all of them."""
    raw = cache.store.get("meta", WALK + ident)
    return None if raw is None else decode_walk(raw)


def refused_by_verdict(cache: RowCache, number: int) -> Iterator[UrlKey]:
    start = refused_prefix(number)
    for place, _ in cache.store.scan("traps", start, start + _AFTER_KEY * 2):
        yield UrlKey(place[len(start) :])


def ended_verdict(cache: RowCache, number: int | None = None) -> int | None:
    """An ended verdict whose URLs are not all requeued yet: this one, or the first there is."""
    first = RELEASE if number is None else RELEASE + number.to_bytes(4, "big")
    for entry, _ in cache.store.scan("meta", first, first + b"\xff" * 5):
        return int.from_bytes(entry[len(RELEASE) :], "big")
    return None


# -- fetches and what they brought


def fetches_of(cache: RowCache, key: UrlKey) -> Iterator[LedgerEntry]:
    """Oldest first."""
    for entry, raw in cache.store.scan("ledger", key, key + _AFTER_KEY):
        yield LedgerEntry(key, seconds(entry[KEY:]), decode_fetch(raw))


def fetches_of_host(cache: RowCache, ident: bytes, most: int) -> list[tuple[bytes, bytes]]:
    """Up to `most` fetches of a host, in no order of time, as (time, entry): `ledger_entry` reads one. Most are
    compared by their time and never read."""
    entries = cache.store.scan("ledger", ident, after_host(ident) + _AFTER_KEY)
    return [(entry[KEY:], entry) for entry, _ in itertools.islice(entries, most)]


def fetches_under(cache: RowCache, ident: bytes) -> Iterator[LedgerEntry]:
    """All fetches whose keys begin with a host's id."""
    for entry, raw in cache.store.scan("ledger", ident, after_host(ident) + _AFTER_KEY):
        yield LedgerEntry(UrlKey(entry[:KEY]), seconds(entry[KEY:]), decode_fetch(raw))


def ledger_slice(
    cache: RowCache, prefix: bytes, start: Cursor, most: int
) -> tuple[list[LedgerEntry], Cursor | None]:
    """Up to `most` fetches whose keys begin so, in no order of time, and where to go on."""
    rows = cache.store.first("ledger", start or prefix, after_host(prefix) + _AFTER_KEY, most + 1)
    found = [
        LedgerEntry(UrlKey(entry[:KEY]), seconds(entry[KEY:]), decode_fetch(raw))
        for entry, raw in rows[:most]
    ]
    return found, rows[-1][0] if len(rows) > most else None


def ledger_entry(cache: RowCache, entry: bytes) -> LedgerEntry | None:
    raw = cache.store.get("ledger", entry)
    return None if raw is None else LedgerEntry(UrlKey(entry[:KEY]), seconds(entry[KEY:]), decode_fetch(raw))


def last_fetch(cache: RowCache, key: UrlKey) -> bytes:
    """The name of a URL's latest fetch, as `HeldFetch.fetch` has it."""
    return max((entry for entry, _ in cache.store.scan("ledger", key, key + _AFTER_KEY)), default=b"")


def place_of_copy(cache: RowCache, digest: bytes) -> RecordAt | None:
    """Where the first copy of a body lies, by the fetch that brought it."""
    copy = cache.copy_of(digest)
    if copy is None:
        return None
    at = micros(copy.fetched_at)
    raw = cache.store.get("ledger", cache.keys.key_of(copy.url) + at)
    record = None if raw is None else decode_fetch(raw).record
    return None if record is None else RecordAt(*record)


def held_in(cache: RowCache, segment: str, most: int) -> list[HeldFetch]:
    """Up to `most` fetches that lie in a segment which is not stored elsewhere."""
    start = start_of_segment(segment)
    found = cache.store.first("unstored", start, end_of_segment(segment), most)
    places = [(place, place[len(start) :], raw) for place, raw in found]
    return [HeldFetch(place, fetch, UrlKey(fetch[:KEY]), decode_held(raw)) for place, fetch, raw in places]


def spent_segments(cache: RowCache) -> list[str]:
    """Segments that were rewritten, and whose files are to go."""
    return [key[len(SPENT) :].decode() for key, _ in cache.store.scan("meta", SPENT, SPENT + b"\xff")]


def everything(cache: RowCache) -> Iterator[bytes]:
    """Every key and value of every table, joined."""
    for table in TABLES:
        for key, value in cache.store.scan(table, b"", END_OF_KEYS * 4):
            yield key + b" " + value


def lost_segments(cache: RowCache) -> list[str]:
    """Those that were lost before they were stored."""
    return [entry[len(LOST) :].decode() for entry, _ in cache.store.scan("meta", LOST, LOST + b"\xff")]


def marks(cache: RowCache) -> Iterator[SegmentMark]:
    for _, raw in cache.store.scan("meta", MARK, MARK + b"\xff"):
        yield decode_mark(raw)
