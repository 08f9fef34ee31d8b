"""Tables of renderings: their rows, the queue, whose answers they await, and what was learnt of their kinds.

    meta  render, UrlKey                            -> RenderRow
    meta  render-queue, urgency (1), seq (8)        -> the key of a page that is to be rendered
    meta  render-timer, microseconds (8), UrlKey    -> nothing; leases and waits by when they end
    meta  render-await, UrlKey, UrlKey of a page    -> in which round (1) the page awaits the answer of the first
    meta  render-kind, 16 bytes                     -> what renderings of a pattern or host have brought

In `meta`, because a crawl of an earlier version has no table of this name, and is looked at without being written
to. What a transaction changed it sees itself. Never decides anything.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec

from skitter.frontier.rows import RenderRow, RenderTally
from skitter.frontier.tables.layout import END_OF_KEYS, KEY, RENDER_KIND, encode, micros, seconds
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.transaction import Transaction
from skitter.model import UrlKey
from skitter.schedule.rendering import Evidence

_ROW, _QUEUE, _TIMER = b"render ", b"render-queue ", b"render-timer "
_AWAIT = b"render-await "
_SEQ = 8
_decode_row = msgspec.msgpack.Decoder(RenderRow).decode
_decode_evidence = msgspec.msgpack.Decoder(Evidence).decode


def tally_of(tx: Transaction) -> RenderTally:
    if tx.tally.renders is None:
        tx.tally.renders = RenderTally()
    return tx.tally.renders


def stored_rendering(cache: RowCache, key: bytes) -> RenderRow | None:
    raw = cache.store.get("meta", _ROW + key)
    return None if raw is None else _decode_row(raw)


def rendering(tx: Transaction, key: bytes) -> RenderRow | None:
    """To be changed, and put back."""
    found = tx.renderings.get(key)
    return stored_rendering(tx.cache, key) if found is None else found


def put_rendering(tx: Transaction, key: bytes, row: RenderRow) -> None:
    tx.renderings[key] = row
    tx.put("meta", _ROW + key, encode(row))


def drop_rendering(tx: Transaction, key: bytes) -> None:
    tx.renderings.pop(key, None)
    tx.delete("meta", _ROW + key)


def all_renderings(cache: RowCache) -> Iterator[tuple[UrlKey, RenderRow]]:
    for key, raw in cache.store.scan("meta", _ROW, _ROW + END_OF_KEYS):
        yield UrlKey(key[len(_ROW) :]), _decode_row(raw)


# -- the queue


def new_slot(tx: Transaction, priority: int) -> bytes:
    tx.tally.seq += 1
    return bytes((255 - priority,)) + tx.tally.seq.to_bytes(_SEQ, "big")


def put_slot(tx: Transaction, slot: bytes, key: bytes) -> None:
    tx.put("meta", _QUEUE + slot, key)


def drop_slot(tx: Transaction, slot: bytes) -> None:
    tx.delete("meta", _QUEUE + slot)


def queued(cache: RowCache, most: int) -> list[tuple[bytes, UrlKey]]:
    """The most urgent first, then the oldest."""
    found = cache.store.first("meta", _QUEUE, _QUEUE + END_OF_KEYS, most)
    return [(entry[len(_QUEUE) :], UrlKey(key)) for entry, key in found]


# -- times


def set_timer(tx: Transaction, at: float, key: bytes) -> None:
    tx.put("meta", _TIMER + micros(at) + key, b"")


def drop_timer(tx: Transaction, at: float, key: bytes) -> None:
    tx.delete("meta", _TIMER + micros(at) + key)


def timers(cache: RowCache, until: float | None, most: int) -> list[tuple[float, UrlKey]]:
    """Those that are over by then, or all."""
    end = _TIMER + (END_OF_KEYS if until is None else micros(until) + END_OF_KEYS)
    start = len(_TIMER)
    return [
        (seconds(entry[start : start + 8]), UrlKey(entry[start + 8 :]))
        for entry, _ in cache.store.first("meta", _TIMER, end, most)
    ]


# -- what is awaited


def await_answer(tx: Transaction, asked: bytes, page: bytes, number: int) -> None:
    """In that round of the page's rendering."""
    tx.awaiting.setdefault(asked, {})[page] = number
    tx.put("meta", _AWAIT + asked + page, bytes((number,)))


def await_no_more(tx: Transaction, asked: bytes, page: bytes) -> None:
    tx.awaiting.setdefault(asked, {})[page] = 0
    tx.delete("meta", _AWAIT + asked + page)


def who_awaits(tx: Transaction, asked: bytes) -> list[tuple[UrlKey, int]]:
    """The pages whose renderings wait for this URL, or once did, and in which round."""
    start = _AWAIT + asked
    stored = tx.cache.store.scan("meta", start, start + END_OF_KEYS)
    pages = {entry[len(start) :]: value[0] for entry, value in stored} | tx.awaiting.get(asked, {})
    return [(UrlKey(page), number) for page, number in pages.items() if number]


def all_awaited(cache: RowCache) -> Iterator[tuple[UrlKey, UrlKey, int]]:
    """Every URL that is waited for, by which page, and in which round."""
    start = len(_AWAIT)
    for entry, value in cache.store.scan("meta", _AWAIT, _AWAIT + END_OF_KEYS * 2):
        yield UrlKey(entry[start : start + KEY]), UrlKey(entry[start + KEY :]), value[0]


def awaited_hosts(cache: RowCache, most: int) -> set[bytes]:
    """The beginnings of the keys of some URLs that are waited for: ids of their hosts."""
    entries = cache.store.scan("meta", _AWAIT, _AWAIT + END_OF_KEYS * 2)
    return {entry[len(_AWAIT) : len(_AWAIT) + 8] for entry, _ in itertools.islice(entries, most)}


def drop_awaited(tx: Transaction, asked: bytes) -> None:
    start = _AWAIT + asked
    tx.delete_range("meta", start, start + b"\xff" * (KEY + 1))


# -- what was learnt


def evidence_on(tx: Transaction, key: bytes) -> Evidence:
    """On a pattern or host, to be changed and put back."""
    found = tx.render_evidence.get(key)
    if found is None:
        found = tx.render_evidence[key] = stored_evidence(tx.cache, key)
    return found


def stored_evidence(cache: RowCache, key: bytes) -> Evidence:
    raw = cache.store.get("meta", RENDER_KIND + key)
    return Evidence() if raw is None else _decode_evidence(raw)


def put_evidence(tx: Transaction, key: bytes, evidence: Evidence) -> None:
    tx.render_evidence[key] = evidence
    tx.put("meta", RENDER_KIND + key, encode(evidence))
