"""URLs that come to their end while hosts are leased, without a request: denied by robots.txt, refused by a list,
by rules that have changed or for their host's address, stopped by a verdict, or given up because they may have
been sent already.

Each leaves its queue, and the counts of its host and of its tier with it. Never decides: `leasing.py` does.
"""

from __future__ import annotations

from skitter.frontier.engine.traps.rules import Stopped
from skitter.frontier.engine.traps.verdicts import refuse as refuse_by_verdict
from skitter.frontier.rows import HostRow, UrlRow
from skitter.frontier.tables.transaction import Transaction
from skitter.model import FailureKind, UrlKey, UrlState


def refuse(
    tx: Transaction, key: UrlKey, row: UrlRow, host: HostRow, tier: int, reason: str, rule: str
) -> None:
    """The host is at an address that must not be dialled, or on a list, or a rule forbids the URL: what a request
    would come to, without a request."""
    tx.dequeue(row)
    row.state = UrlState.REFUSED
    row.reason, row.rule = reason, rule
    tx.put_url(key, row)
    host.queue.lengths[tier] -= 1
    host.queue.admitted -= 1
    tx.tally.tiers[tier] -= 1
    tx.tally.refusals[row.reason] = tx.tally.refusals.get(row.reason, 0) + 1
    tx.count(UrlState.QUEUED, -1)
    tx.count(UrlState.REFUSED, 1)


def stop(tx: Transaction, key: UrlKey, row: UrlRow, host: HostRow, tier: int, stopped: Stopped) -> None:
    tx.dequeue(row)
    host.queue.lengths[tier] -= 1
    tx.tally.tiers[tier] -= 1
    tx.count(UrlState.QUEUED, -1)
    refuse_by_verdict(tx, key, row, *stopped)


def deny(tx: Transaction, key: UrlKey, row: UrlRow, host: HostRow, tier: int, rule: str) -> None:
    tx.dequeue(row)
    row.state = UrlState.DENIED
    row.reason, row.rule = "robots", rule
    tx.put_url(key, row)
    tx.add_denied(key)
    host.queue.lengths[tier] -= 1
    host.counts.denied += 1
    tx.tally.tiers[tier] -= 1
    tx.count(UrlState.QUEUED, -1)
    tx.count(UrlState.DENIED, 1)


def give_up(tx: Transaction, key: UrlKey, row: UrlRow, host: HostRow, tier: int) -> None:
    """Its lease ended without an outcome, and it is not to be sent twice."""
    tx.dequeue(row)
    row.state = UrlState.DEAD_LETTER
    row.reason = row.answer.failure = FailureKind.OUTCOME_UNKNOWN
    row.rule = "it may have been sent: whoever had it did not come back (skitter dead --retry sends it again)"
    tx.put_url(key, row)
    tx.add_dead(key)
    host.queue.lengths[tier] -= 1
    tx.tally.tiers[tier] -= 1
    tx.count(UrlState.QUEUED, -1)
    tx.count(UrlState.DEAD_LETTER, 1)
