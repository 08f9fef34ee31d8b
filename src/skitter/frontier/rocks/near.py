"""Pages that resemble another: the index of fingerprints, looked up and kept in the turn that settles a page.

    near     0, fingerprint (8)                       -> UrlKey of the original, pages that resemble it (4)
    near     1 to 6, two parts of one half (4)        -> fingerprints of originals with these bits, 8 bytes each

An *original* resembles no page that was known before it. Only originals are in the index: a template repeated a
million times adds one entry, what a page resembles is never itself a resemblance, and originals differ from each
other in four bits or more. Nothing is kept in RAM.
"""

from __future__ import annotations

import struct

from skitter.frontier.rocks.book import Book, Turn
from skitter.frontier.rocks.rows import UrlRow
from skitter.schedule.near import distance, near_keys, nearest

_TABLE = "near"
_WHOSE = b"\0"
_KEY = 16
# A row that is full takes no more: its look-up must stay cheap. The other five may still find the page.
MOST_IN_ROW = 64
_WIDTH = 8


def remember(turn: Turn, key: bytes, row: UrlRow, fingerprint: int | None) -> None:
    """The page now has this fingerprint, or none. An earlier one no longer counts: no page resembles itself."""
    if fingerprint == row.simhash:
        return
    _forget(turn, key, row)
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
    original, count = _whose_is(book.store.get(_TABLE, _whose_key(row.simhash)) or b"")
    return count if original == key else 0


def _whose_key(fingerprint: int) -> bytes:
    return _WHOSE + fingerprint.to_bytes(_WIDTH, "big")


def _whose(turn: Turn, fingerprint: int) -> tuple[bytes, int]:
    return _whose_is(_get(turn, _whose_key(fingerprint)))


def _whose_is(raw: bytes) -> tuple[bytes, int]:
    return raw[:_KEY], int.from_bytes(raw[_KEY:], "big")


def look_up(turn: Turn, fingerprint: int) -> int | None:
    """The nearest original's, if it is near. The same text again costs one read, as each row has it."""
    own = fingerprint.to_bytes(_WIDTH, "big")
    rows = []
    for key in near_keys(fingerprint):
        if raw := _get(turn, key):
            if own in raw and fingerprint in _fingerprints(raw):
                return fingerprint
            rows.append(raw)
    # Where a row is full, it may be missing from all of them.
    if max(map(len, rows), default=0) >= MOST_IN_ROW * _WIDTH and _get(turn, _WHOSE + own):
        return fingerprint
    return nearest(fingerprint, (one for raw in rows for one in _fingerprints(raw)))


def _add(turn: Turn, key: bytes, fingerprint: int) -> None:
    own = fingerprint.to_bytes(_WIDTH, "big")
    _put(turn, _WHOSE + own, key + bytes(4))
    for name in near_keys(fingerprint):
        raw = _get(turn, name)
        if len(raw) < MOST_IN_ROW * _WIDTH:
            _put(turn, name, raw + own)


def _forget(turn: Turn, key: bytes, row: UrlRow) -> None:
    if row.simhash is None:
        return
    if row.near_of:
        _resembles_no_more(turn, row)
    elif _whose(turn, row.simhash)[0] == key:
        _remove(turn, row.simhash)


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
    for name in near_keys(fingerprint):
        left = [one for one in _fingerprints(_get(turn, name)) if one != fingerprint]
        _put(turn, name, struct.pack(f">{len(left)}Q", *left))


def _fingerprints(raw: bytes) -> tuple[int, ...]:
    return struct.unpack(f">{len(raw) // _WIDTH}Q", raw)


def _get(turn: Turn, key: bytes) -> bytes:
    """Empty when there is no such row; what this turn has written counts."""
    raw = turn.near.get(key)
    if raw is None:
        raw = turn.near[key] = turn.book.store.get(_TABLE, key) or b""
    return raw


def _put(turn: Turn, key: bytes, raw: bytes) -> None:
    turn.near[key] = raw
    if raw:
        turn.put(_TABLE, key, raw)
    else:
        turn.delete(_TABLE, key)
