"""The ledger: one entry per fetch, and what all of them come to. Written by the transaction that settles one,
read by `explain`; never decides anything.
"""

from __future__ import annotations

from skitter.frontier.engine.answers.redirects import REDIRECTS_TO
from skitter.frontier.rows import HostRow, UrlRow
from skitter.frontier.tables.transaction import Transaction
from skitter.model import (
    Failed,
    Fetched,
    NotModified,
    Outcome,
    RecordAt,
    Redirected,
    Rendered,
    Result,
    RobotsRead,
)

# As the ledger has them, made once and not for every fetch.
_KINDS = (Fetched, NotModified, Redirected, Failed, RobotsRead, Rendered)
_NAMES = {kind: kind.__name__.lower() for kind in _KINDS}
_CLASSES = [f"{first}xx" for first in range(10)]


def enter_in_ledger(tx: Transaction, host: HostRow, outcome: Outcome, unchanged: bool = False) -> None:
    """`unchanged` when the body is one that an earlier visit archived."""
    result, tally = outcome.result, tx.tally
    status, size = (304, 0) if isinstance(result, NotModified) else (result.status, result.size)
    sent_at, address = outcome.sent_at, outcome.address
    row = (
        outcome.ended_at - sent_at,
        "unchanged" if unchanged else _NAMES[type(result)],
        status,
        size,
        address,
        place_of(result.record),
        result.note if isinstance(result, Fetched) else _detail(outcome.key, result),
    )
    tx.put_fetch(outcome.key, sent_at - tx.cache.skew, row)
    tally.fetches += 1
    tally.received += size
    host.counts.received += size
    if address:
        host.pace.address = address
    if status:
        name = _CLASSES[status // 100] if 0 < status < 1_000 else f"{status // 100}xx"
        tally.statuses[name] = tally.statuses.get(name, 0) + 1


def place_of(record: RecordAt | None) -> tuple[str, int, int] | None:
    return None if record is None else (record.segment, record.offset, record.length)


def is_unchanged(row: UrlRow, result: Result) -> bool:
    """The body is the one that an earlier visit archived: its record stays the URL's."""
    return (
        isinstance(result, Fetched)
        and bool(result.size)
        and row.answer.digest == result.digest
        and row.answer.body_status == result.status
    )


def _detail(key: bytes, result: Result) -> str:
    if isinstance(result, Failed):
        return f"{result.kind}: {result.detail}"
    if isinstance(result, Redirected) and result.target.key == key:
        return REDIRECTS_TO + result.location
    return ""
