"""The rows of the near index in a transaction, which sees its own changes at once.

    near     0, fingerprint (8)      -> UrlKey of the original, pages that resemble it (4)
    near     7, upper half (4)       -> fingerprints of originals with this half, 8 bytes each
    near     8, lower half (4)       -> the same

Between `engine/answers/near_duplicates.py`, which decides what is near, and `near_index.py`, whose filter saves
reads. In memory an empty value stands for a row that does not exist.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from skitter.frontier.tables.near_index import MOST_ALIKE, TABLE, WHOSE, rows_of
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.transaction import Transaction

_KEY = 16
_WIDTH = 8


class Original(NamedTuple):
    """The page that a fingerprint stands for, and how many pages resemble it. No page: an empty key."""

    key: bytes
    alike: int


def original_of(tx: Transaction, fingerprint: int) -> Original:
    return _original(_get(tx, _owner_row(fingerprint)))


def stored_original_of(cache: RowCache, fingerprint: int) -> Original:
    return _original(cache.store.get(TABLE, _owner_row(fingerprint)) or b"")


def put_original(tx: Transaction, fingerprint: int, original: Original) -> None:
    _put(tx, _owner_row(fingerprint), original.key + original.alike.to_bytes(4, "big"))


def add_original(tx: Transaction, key: bytes, fingerprint: int) -> None:
    """Add a page that was looked up in this transaction and resembles nothing."""
    own = fingerprint.to_bytes(_WIDTH, "big")
    rows = {WHOSE + own: key + bytes(4)}
    for name in rows_of(fingerprint):
        # the look-up has read it, unless the filter said that it does not exist
        raw = tx.near.get(name) or b""
        if len(raw) < MOST_ALIKE * _WIDTH:
            rows[name] = raw + own
    tx.near.update(rows)
    tx.put_all(TABLE, rows.items())
    tx.originals.append(fingerprint)


def remove_original(tx: Transaction, fingerprint: int) -> None:
    _put(tx, _owner_row(fingerprint), b"")
    for name in rows_of(fingerprint):
        left = [one for one in _fingerprints(_get(tx, name)) if one != fingerprint]
        _put(tx, name, struct.pack(f">{len(left)}Q", *left))


def is_original(tx: Transaction, suspects: tuple[bytes, ...], fingerprint: int) -> bool:
    """Whether exactly this fingerprint is in the index. Read only if both halves are suspected: otherwise it
    would be half of all reads at ten million pages."""
    upper, lower = rows_of(fingerprint)
    return upper in suspects and lower in suspects and bool(_get(tx, _owner_row(fingerprint)))


def close_in_rows(tx: Transaction, suspects: tuple[bytes, ...], fingerprint: int) -> list[int]:
    """Fingerprints near this one, in the rows that the filter suspects."""
    return tx.cache.near.close_in(fingerprint, b"".join([_get(tx, name) for name in suspects]))


def was_removed(tx: Transaction, fingerprint: int) -> bool:
    """Whether this transaction removed it."""
    return tx.near.get(_owner_row(fingerprint)) == b""


def _owner_row(fingerprint: int) -> bytes:
    return WHOSE + fingerprint.to_bytes(_WIDTH, "big")


def _original(raw: bytes) -> Original:
    return Original(raw[:_KEY], int.from_bytes(raw[_KEY:], "big"))


def _fingerprints(raw: bytes) -> tuple[int, ...]:
    return struct.unpack(f">{len(raw) // _WIDTH}Q", raw)


def _get(tx: Transaction, name: bytes) -> bytes:
    raw = tx.near.get(name)
    if raw is None:
        raw = tx.near[name] = tx.cache.store.get(TABLE, name) or b""
    return raw


def _put(tx: Transaction, name: bytes, raw: bytes) -> None:
    tx.near[name] = raw
    if raw:
        tx.put(TABLE, name, raw)
    else:
        tx.delete(TABLE, name)
