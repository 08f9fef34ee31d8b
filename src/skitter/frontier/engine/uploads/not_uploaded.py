"""What lies in segments that are not safe in their object store yet: which fetches, and which of them are pages.

With an object store a fetch is held, by its segment, from the commit that settles it until the one that says
that the segment is stored; if the segment is lost before, its URLs go back to their queues. Never asks where a
segment is: that is the archive's to say.
"""

from __future__ import annotations

from skitter.frontier.rows import Held, UrlRow
from skitter.frontier.tables.transaction import Transaction
from skitter.model import Fetched, Outcome, RobotsRead, UrlKey


def hold(
    tx: Transaction, outcome: Outcome, row: UrlRow | None, *, is_page: bool = False, behalf: str = ""
) -> None:
    """The fetch that was entered in the ledger in this transaction. `behalf` is whose robots.txt it was."""
    result = outcome.result
    if result.record is None:
        return
    made_copy = isinstance(result, Fetched | RobotsRead) and result.copy is not None
    held = Held(is_page, result.digest if made_copy else b"", behalf)  # type: ignore[union-attr]
    waiting = tx.hold(result.record, outcome.key, tx.cache.by_the_clock(outcome.sent_at), held)
    counts = tx.tally.held.setdefault(result.record.segment, [0, 0])
    counts[0] += 1
    counts[1] += is_page
    if row is not None:
        row.waiting = waiting if is_page else b""


def stop_counting(tx: Transaction, key: UrlKey, row: UrlRow) -> None:
    """The URL is looked at again and is no page until then: its fetch stays held, but not as a page."""
    counts = tx.tally.held.get(tx.held_segment(row))
    if counts is not None:
        counts[1] -= tx.hold_as_no_page(key, row) or 0
    row.waiting = b""


def let_go(tx: Transaction, segment: str) -> None:
    """The segment is stored: whatever becomes of its local files, nothing of it is fetched again."""
    tx.drop_all_held(segment)
    tx.tally.held.pop(segment, None)
