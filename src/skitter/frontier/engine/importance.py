"""Importance of hosts as the link graph grows: votes of pages, kept in memory until their host's row is written.

Inside the transaction that settles a page. What hosts were given lies in their rows; votes for hosts whose rows
are not at hand wait in a table of bounded size, and what does not fit there, or waits when the process dies,
counted for nothing. Never decides what is let in.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from skitter.frontier.engine.changed_rules.walks import begin_walk
from skitter.frontier.rows import HostRank, HostRow
from skitter.frontier.tables.transaction import Transaction
from skitter.model import Discovered, Host, LinkBatch, Refusal
from skitter.schedule.importance import heard, points, points_by_word, worth_of_page
from skitter.schedule.priority import SEED_PRIORITY
from skitter.urls.canonical import target_of
from skitter.urls.keys import host_part

_KEY, _HOST = 16, 8
MOST_WAITING = 200_000
# Parts of one host that were spoken of: the latest.
_MOST_PATHS = 20


class Importance:
    """`waiting` has votes by the first bytes of the keys of a host's URLs."""

    def __init__(self, enabled: bool, most_waiting: int = MOST_WAITING) -> None:
        self.enabled = enabled
        self._waiting: dict[bytes, float] = {}
        self._most = most_waiting

    def vote(self, tx: Transaction, prefix: bytes, host: HostRow, link_batches: Sequence[LinkBatch]) -> None:
        """A page of a host was read for the first time, and leads there."""
        rank = host.rank
        if rank is None:
            rank = host.rank = HostRank()
        waiting = self._waiting
        rank.score += waiting.pop(prefix, 0.0)
        linked = {
            link_batch.keys[at : at + _HOST]
            for link_batch in link_batches
            for at in range(0, len(link_batch.keys), _KEY)
        }
        linked.discard(prefix)
        if not linked:
            return
        worth = worth_of_page(rank.score, host.growth.answers if host.growth is not None else 0)
        each = worth / (len(linked) + 1)
        for other in linked:
            waiting[other] = waiting.get(other, 0.0) + each
        tx.tally.votes += each * len(linked)
        if len(waiting) > self._most:
            self._waiting = dict(heapq.nlargest(self._most // 2, waiting.items(), key=lambda item: item[1]))

    def raised(self, tx: Transaction, found: Discovered, host: HostRow | None, priority: int) -> int:
        """The priority of a link to this host, all considered: never that of a seed."""
        more = 0 if host is None else _said(host, found.url)
        if self.enabled:
            more += self._points(tx, host_part(found.key), host)
        return max(1, min(SEED_PRIORITY - 1, priority + more)) if more else priority

    def _points(self, tx: Transaction, prefix: bytes, host: HostRow | None) -> int:
        rank = host.rank if host is not None else None
        score = (rank.score if rank is not None else 0.0) + self._waiting.get(prefix, 0.0)
        hosts = sum(tx.tally.hosts.values())
        admitted = host.queue.admitted if host is not None else 0
        return points(score, admitted, tx.tally.votes / max(1, hosts))


def hear(tx: Transaction, host: HostRow, useful: float, path: str) -> float:
    """A signal from downstream; what is thought of the host, or of that part of it, afterwards."""
    rank = host.rank
    if rank is None:
        rank = host.rank = HostRank()
    if path:
        rank.paths[path] = worth = heard(rank.paths.pop(path, 0.0), useful)
        for oldest in list(rank.paths)[:-_MOST_PATHS]:
            del rank.paths[oldest]
        return worth
    rank.worth = heard(rank.worth, useful)
    if host.queue.is_over_budget and useful > 0:
        begin_walk(tx, (Refusal.BUDGET,), Host(host.host))
    return rank.worth


def _said(host: HostRow, url: str) -> int:
    """By the operator's weight and by signals."""
    weight = host.policy.weight if host.policy is not None else None
    said = points_by_word(weight) if weight else 0
    rank = host.rank
    if rank is None or not (rank.worth or rank.paths):
        return said
    path = target_of(url) if rank.paths else ""
    longest = max((begin for begin in rank.paths if path.startswith(begin)), key=len, default="")
    return said + points_by_word(rank.paths[longest] if longest else rank.worth)
