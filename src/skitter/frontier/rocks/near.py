"""Pages that resemble another: looked up and kept in the turn that settles a page.

An *original* resembles no page that was known before it. Only originals are in the index (`near_index.py`): a
template repeated a million times adds one entry, what a page resembles is never itself a resemblance, and
originals differ from each other in four bits or more. What a turn adds and removes counts at once in that turn.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from skitter.frontier.rocks.book import Book
from skitter.frontier.rocks.near_index import MOST_ALIKE, TABLE, WHOSE, rows_of
from skitter.frontier.rocks.rows import UrlRow
from skitter.frontier.rocks.turn import Turn
from skitter.model import Fetched, Result
from skitter.schedule.near import distance, nearest

_KEY = 16
_WIDTH = 8


def prepare(turn: Turn, results: Iterable[Result]) -> None:
    """Ask the filter for all pages of a turn at once: without its kernel 2 us each, 15 for one by one."""
    found = {r.simhash for r in results if isinstance(r, Fetched) and r.simhash is not None}
    asked = list(found)
    turn.suspects.update(zip(asked, turn.book.near.suspects(asked), strict=True))


def remember(turn: Turn, key: bytes, row: UrlRow, fingerprint: int | None) -> None:
    """The page now has this fingerprint, or none. An earlier one no longer counts: no page resembles itself."""
    if fingerprint == row.simhash:
        return
    if row.simhash is not None:
        _forget(turn, key, row, row.simhash)
    row.simhash = fingerprint
    if fingerprint is None:
        return
    found = look_up(turn, fingerprint)
    if found is None:
        _add(turn, key, fingerprint)
        return
    original, count = _whose(turn, found)
    row.near_of, row.distance = original, distance(fingerprint, found)
    _put(turn, _whose_key(found), original + (count + 1).to_bytes(4, "big"))
    turn.tally.near += 1


def resembling(book: Book, key: bytes, row: UrlRow) -> int:
    """How many pages were found to resemble this one."""
    if row.simhash is None or row.near_of:
        return 0
    original, count = _whose_is(book.store.get(TABLE, _whose_key(row.simhash)) or b"")
    return count if original == key else 0


def _whose_key(fingerprint: int) -> bytes:
    return WHOSE + fingerprint.to_bytes(_WIDTH, "big")


def _whose(turn: Turn, fingerprint: int) -> tuple[bytes, int]:
    return _whose_is(_get(turn, _whose_key(fingerprint)))


def _whose_is(raw: bytes) -> tuple[bytes, int]:
    return raw[:_KEY], int.from_bytes(raw[_KEY:], "big")


def look_up(turn: Turn, fingerprint: int) -> int | None:
    """The nearest original's, if it is near. The same text again costs one read."""
    suspects = turn.suspects.get(fingerprint)
    if suspects is None:
        (suspects,) = turn.book.near.suspects([fingerprint])
    candidates = turn.book.near.close_to(fingerprint, turn.originals) if turn.originals else []
    if suspects:
        if _may_be_there(suspects, fingerprint) and _get(turn, _whose_key(fingerprint)):
            return fingerprint
        candidates += turn.book.near.close_in(fingerprint, b"".join([_get(turn, name) for name in suspects]))
    if not candidates:
        return None
    # what was added in this turn may have been removed in it
    return nearest(fingerprint, (one for one in candidates if turn.near.get(_whose_key(one)) != b""))


def _may_be_there(suspects: tuple[bytes, ...], fingerprint: int) -> bool:
    """Of the very same both halves are. Read for every suspect, it was half of all reads at ten million."""
    upper, lower = rows_of(fingerprint)
    return upper in suspects and lower in suspects


def _add(turn: Turn, key: bytes, fingerprint: int) -> None:
    """What was looked up in this turn and resembles nothing."""
    own = fingerprint.to_bytes(_WIDTH, "big")
    rows = {WHOSE + own: key + bytes(4)}
    for name in rows_of(fingerprint):
        # the look-up before has read it, unless the filter knows that it is not there
        raw = turn.near.get(name) or b""
        if len(raw) < MOST_ALIKE * _WIDTH:
            rows[name] = raw + own
    turn.near.update(rows)
    turn.put_all(TABLE, rows.items())
    turn.originals.append(fingerprint)


def _forget(turn: Turn, key: bytes, row: UrlRow, fingerprint: int) -> None:
    turn.book.near.wake()
    if row.near_of:
        _resembles_no_more(turn, row)
    elif _whose(turn, fingerprint)[0] == key:
        _remove(turn, fingerprint)


def _resembles_no_more(turn: Turn, row: UrlRow) -> None:
    turn.tally.near -= 1
    above = turn.url(row.near_of)
    if above is not None and above.simhash is not None:
        original, count = _whose(turn, above.simhash)
        # The original may have changed since: then those that resembled what it said are no longer counted.
        if original == row.near_of and count:
            _put(turn, _whose_key(above.simhash), original + (count - 1).to_bytes(4, "big"))
    row.near_of, row.distance = b"", 0


def _remove(turn: Turn, fingerprint: int) -> None:
    """Those that resembled it keep saying so: they did when they were fetched."""
    _put(turn, _whose_key(fingerprint), b"")
    for name in rows_of(fingerprint):
        left = [one for one in _fingerprints(_get(turn, name)) if one != fingerprint]
        _put(turn, name, struct.pack(f">{len(left)}Q", *left))


def _fingerprints(raw: bytes) -> tuple[int, ...]:
    return struct.unpack(f">{len(raw) // _WIDTH}Q", raw)


def _get(turn: Turn, key: bytes) -> bytes:
    """Empty when there is no such row; what this turn has written counts."""
    raw = turn.near.get(key)
    if raw is None:
        raw = turn.near[key] = turn.book.store.get(TABLE, key) or b""
    return raw


def _put(turn: Turn, key: bytes, raw: bytes) -> None:
    turn.near[key] = raw
    if raw:
        turn.put(TABLE, key, raw)
    else:
        turn.delete(TABLE, key)
