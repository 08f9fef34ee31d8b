"""A segment that is gone before it was stored: what lay in it is fetched again, once.

The other end of `holding`. The hosts were asked, so the ledger keeps these fetches, as lost; everything else is
put back to where it was before them. Never touches a URL whose last answer lies elsewhere.
"""

from __future__ import annotations

import itertools

from skitter.frontier.rocks.holding import count_no_more, end_of, start_of
from skitter.frontier.rocks.returning import back_from_the_archive
from skitter.frontier.rocks.rows import Held, decode_copy, decode_fetch, decode_held, encode
from skitter.frontier.rocks.turn import Turn
from skitter.model import Host, UrlKey

LOST = "lost"
_MOST = 2_000
_STAMP = 8


def give_back_some(turn: Turn, segment: str) -> tuple[int, bool]:
    """Fetches of a segment that is lost, a bounded number: how many, and whether those were all."""
    store = turn.book.store
    found = list(itertools.islice(store.scan("unstored", start_of(segment), end_of(segment)), _MOST + 1))
    counts = turn.tally.held[segment]
    for place, raw in found[:_MOST]:
        held, fetch = decode_held(raw), place[len(start_of(segment)) :]
        counts[0] -= 1
        counts[1] -= held.is_page
        turn.delete("unstored", place)
        _forget_record(turn, fetch)
        _forget_copy(turn, held.copied, segment)
        _ask_again(turn, fetch, held, segment)
    done = len(found) <= _MOST
    if done:
        del turn.tally.held[segment]
    return min(len(found), _MOST), done


def _forget_record(turn: Turn, fetch: bytes) -> None:
    """The host was asked, so the ledger keeps the fetch; what it brought is gone."""
    raw = turn.book.store.get("ledger", fetch)
    if raw is not None:
        row = decode_fetch(raw)
        row.detail = f"{row.result} with {row.record[0] if row.record else 'its record'}, which is lost"
        row.result, row.record = LOST, None
        turn.put("ledger", fetch, encode(row))
        turn.tally.lost += 1


def _forget_copy(turn: Turn, digest: bytes, segment: str) -> None:
    """Unless another copy was made since: no later record may refer to one that is gone."""
    raw = turn.book.store.get("copies", digest) if digest else None
    if raw is not None and decode_copy(raw).segment == segment:
        turn.delete("copies", digest)


def _ask_again(turn: Turn, fetch: bytes, held: Held, segment: str) -> None:
    if held.behalf:
        _, host = turn.host(Host(held.behalf))
        # The rules stay in force until the file is read again, in the host's next turn.
        host.robots_until = 0.0
        host.robots_etag = host.robots_last_modified = ""
        host.robots_digest = b""
        return
    key = UrlKey(fetch[:-_STAMP])
    row = turn.url(key)
    if row is None:
        return
    has_lost_body = row.record is not None and row.record[0] == segment
    # Of a fetch that others followed only its place in the ledger is left to put right.
    if not has_lost_body and fetch != _last_fetch(turn, key):
        return
    if has_lost_body:
        row.record, row.digest, row.body_status, row.size = None, b"", 0, 0
        row.etag = row.last_modified = ""
    if row.waiting and not row.waiting.startswith(start_of(segment)):
        count_no_more(turn, key, row)
    row.waiting = b""
    if not back_from_the_archive(turn, key, row):
        turn.put_url(key, row)


def _last_fetch(turn: Turn, key: bytes) -> bytes:
    fetches = turn.book.store.scan("ledger", key, key + b"\xff" * (_STAMP + 1))
    return max((fetch for fetch, _ in fetches), default=b"")
