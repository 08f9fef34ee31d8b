"""Pages that resemble another: looked up and kept in the transaction that settles a page.

An *original* resembles no page that was known before it. Only originals are in the index
(`tables/near_index.py`): a template repeated a million times adds one entry, what a page resembles is never
itself a resemblance, and originals differ from each other in four bits or more.
"""

from __future__ import annotations

from collections.abc import Iterable

from skitter.frontier.rows import UrlRow
from skitter.frontier.tables.near_rows import (
    Original,
    add_original,
    close_in_rows,
    is_original,
    original_of,
    put_original,
    remove_original,
    stored_original_of,
    was_removed,
)
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.transaction import Transaction
from skitter.model import Fetched, Result
from skitter.schedule.near import distance, nearest


def prepare(tx: Transaction, results: Iterable[Result]) -> None:
    """Asks the filter for all pages of a batch at once, which is cheaper than one by one."""
    found = {r.simhash for r in results if isinstance(r, Fetched) and r.simhash is not None}
    asked = list(found)
    tx.suspects.update(zip(asked, tx.cache.near.suspects(asked), strict=True))


def remember(tx: Transaction, key: bytes, row: UrlRow, fingerprint: int | None) -> None:
    """The page now has this fingerprint, or none. An earlier one no longer counts: no page resembles itself."""
    if fingerprint == row.near.simhash:
        return
    if row.near.simhash is not None:
        _forget(tx, key, row, row.near.simhash)
    row.near.simhash = fingerprint
    if fingerprint is None:
        return
    found = look_up(tx, fingerprint)
    if found is None:
        add_original(tx, key, fingerprint)
        return
    original = original_of(tx, found)
    row.near.of, row.near.distance = original.key, distance(fingerprint, found)
    put_original(tx, found, Original(original.key, original.alike + 1))
    tx.tally.near += 1


def resembling(cache: RowCache, key: bytes, row: UrlRow) -> int:
    """How many pages were found to resemble this one."""
    if row.near.simhash is None or row.near.of:
        return 0
    original = stored_original_of(cache, row.near.simhash)
    return original.alike if original.key == key else 0


def look_up(tx: Transaction, fingerprint: int) -> int | None:
    """The nearest original's fingerprint, if it is near. The same text again costs one read."""
    suspects = tx.suspects.get(fingerprint)
    if suspects is None:
        (suspects,) = tx.cache.near.suspects([fingerprint])
    candidates = tx.cache.near.close_to(fingerprint, tx.originals) if tx.originals else []
    if suspects:
        if is_original(tx, suspects, fingerprint):
            return fingerprint
        candidates += close_in_rows(tx, suspects, fingerprint)
    if not candidates:
        return None
    return nearest(fingerprint, (one for one in candidates if not was_removed(tx, one)))


def _forget(tx: Transaction, key: bytes, row: UrlRow, fingerprint: int) -> None:
    tx.cache.near.load_filter()
    if row.near.of:
        _stop_resembling(tx, row)
    elif original_of(tx, fingerprint).key == key:
        # Those that resembled it keep saying so: they did when they were fetched.
        remove_original(tx, fingerprint)


def _stop_resembling(tx: Transaction, row: UrlRow) -> None:
    tx.tally.near -= 1
    above = tx.url(row.near.of)
    if above is not None and above.near.simhash is not None:
        original = original_of(tx, above.near.simhash)
        # The original may have changed since: then those that resembled what it said are no longer counted.
        if original.key == row.near.of and original.alike:
            put_original(tx, above.near.simhash, Original(original.key, original.alike - 1))
    row.near.of, row.near.distance = b"", 0
