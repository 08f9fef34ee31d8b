"""URLs that come to their end while hosts are leased, without a request: denied by robots.txt, refused by a list
or for their host's address, stopped by a verdict.

Each leaves its queue, and the counts of its host and of its tier with it. Never decides: `leasing.py` does.
"""

from __future__ import annotations

from skitter.frontier.rocks.rows import HostRow, UrlRow
from skitter.frontier.rocks.traps import Stopped
from skitter.frontier.rocks.turn import Turn
from skitter.frontier.rocks.verdicts import refuse as refuse_by_verdict
from skitter.model import UrlKey, UrlState


def refuse(turn: Turn, key: UrlKey, row: UrlRow, host: HostRow, tier: int, reason: str, rule: str) -> None:
    """The host is at an address that must not be dialled, or on a list: what a request would come to, without a
    request."""
    turn.dequeue(row)
    row.state = UrlState.REFUSED
    row.reason, row.rule = reason, rule
    turn.put_url(key, row)
    host.queued[tier] -= 1
    turn.tally.tiers[tier] -= 1
    turn.tally.refusals[row.reason] = turn.tally.refusals.get(row.reason, 0) + 1
    turn.count(UrlState.QUEUED, -1)
    turn.count(UrlState.REFUSED, 1)


def stop(turn: Turn, key: UrlKey, row: UrlRow, host: HostRow, tier: int, stopped: Stopped) -> None:
    turn.dequeue(row)
    host.queued[tier] -= 1
    turn.tally.tiers[tier] -= 1
    turn.count(UrlState.QUEUED, -1)
    refuse_by_verdict(turn, key, row, *stopped)


def deny(turn: Turn, key: UrlKey, row: UrlRow, host: HostRow, tier: int, rule: str) -> None:
    turn.dequeue(row)
    row.state = UrlState.DENIED
    row.reason, row.rule = "robots", rule
    turn.put_url(key, row)
    turn.put("denied", key, b"")
    host.queued[tier] -= 1
    host.denied += 1
    turn.tally.tiers[tier] -= 1
    turn.count(UrlState.QUEUED, -1)
    turn.count(UrlState.DENIED, 1)
