"""Judging: which outcomes settling would accept, asked before their pages go into the archive.

Beside `settling.py` and by its rules, on the state before a batch. Each rule depends on that state alone, except
that of two outcomes for one task only the first counts and that late pages share the room under the page limit;
`settle` counts both in the same way, so that the two agree as long as no turn comes between. Changes
nothing; the rows that it had to read are kept for `settle`.
"""

from __future__ import annotations

from collections.abc import Sequence

from skitter.frontier.base import Settled
from skitter.frontier.rocks.book import Book
from skitter.frontier.rocks.rows import HostRow
from skitter.model import Failed, Outcome, TaskKind
from skitter.urls.canonical import host_id

_ACCEPTED, _LATE, _STALE = Settled.ACCEPTED, Settled.LATE, Settled.STALE


def judge(book: Book, outcomes: Sequence[Outcome], room: int) -> list[Settled]:
    """`room` is how many late pages may still come before the page limit could be passed."""
    book.judged.clear()
    settled: list[Settled] = []
    accepted: set[tuple[TaskKind, bytes]] = set()
    for outcome in outcomes:
        task = (outcome.kind, outcome.key)
        verdict = _STALE if task in accepted else _judge_one(book, outcome, room)
        if verdict is not _STALE:
            accepted.add(task)
        if verdict is _LATE:
            room -= 1
        settled.append(verdict)
    return settled


def _judge_one(book: Book, outcome: Outcome, room: int) -> Settled:
    ident = host_id(outcome.host)
    host = book.host(ident)
    if host is None:
        return _STALE
    prefix = outcome.key[:8]
    if prefix != ident and prefix != book.keys.prefix(outcome.host):
        return _STALE
    lease = host.lease
    if lease is None or lease.token != outcome.token:
        return _judge_late(book, ident, host, outcome, room)
    slot = book.lease_slots(ident, lease.token).get(outcome.key)
    if slot is None:
        return _STALE
    if outcome.kind is TaskKind.ROBOTS:
        there = book.store.get("queue", slot) is not None if slot else bool(lease.robots)
        return _ACCEPTED if there else _STALE
    row = book.url(outcome.key)
    if row is None or row.slot != slot:
        return _STALE
    book.judged[outcome.key] = row
    return _ACCEPTED


def _judge_late(book: Book, ident: bytes, host: HostRow, outcome: Outcome, room: int) -> Settled:
    """A late page is kept when nobody has fetched or is fetching that URL, and there is room for it."""
    if outcome.kind is not TaskKind.PAGE or isinstance(outcome.result, Failed):
        return _STALE
    if host.lease is not None and outcome.key in book.lease_slots(ident, host.lease.token):
        return _STALE
    row = book.url(outcome.key)
    if row is None or row.slot[:8] != ident:
        return _STALE
    return _LATE if row.requisite or room > 0 else _STALE
