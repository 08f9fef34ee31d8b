"""Judging: which outcomes settling would accept, asked before their pages go into the archive.

Beside `settling.py` and by its rules, on the state before a batch. Each rule depends on that state alone, except
that of two outcomes for one task only the first counts and that late pages share the room under the page limit;
`settle` counts both in the same way, so that the two agree as long as no commit comes between. Changes
nothing; the rows that it had to read are kept for `settle`.
"""

from __future__ import annotations

from collections.abc import Sequence

from skitter.frontier.base import Settled
from skitter.frontier.engine.renders import is_live
from skitter.frontier.rows import HostRow
from skitter.frontier.tables import queries
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.slots import host_of_slot
from skitter.model import Failed, Outcome, TaskKind
from skitter.schedule.kinds import KINDS
from skitter.urls.canonical import host_id
from skitter.urls.keys import host_part

_ACCEPTED, _LATE, _STALE = Settled.ACCEPTED, Settled.LATE, Settled.STALE


def judge(cache: RowCache, outcomes: Sequence[Outcome], room: int) -> list[Settled]:
    """`room` is how many late pages may still come before the page limit could be passed."""
    cache.judged.clear()
    settled: list[Settled] = []
    accepted: set[tuple[TaskKind, bytes]] = set()
    for outcome in outcomes:
        task = (outcome.kind, outcome.key)
        verdict = _STALE if task in accepted else _judge_one(cache, outcome, room)
        if verdict is not _STALE:
            accepted.add(task)
        if verdict is _LATE:
            room -= 1
        settled.append(verdict)
    return settled


def _judge_one(cache: RowCache, outcome: Outcome, room: int) -> Settled:
    if not KINDS[outcome.kind].asks_host:
        return _ACCEPTED if is_live(cache, outcome) else _STALE
    ident = host_id(outcome.host)
    host = cache.host(ident)
    if host is None:
        return _STALE
    prefix = host_part(outcome.key)
    if prefix != ident and prefix != cache.keys.prefix(outcome.host):
        return _STALE
    lease = host.lease
    if lease is None or lease.token != outcome.token:
        return _judge_late(cache, ident, host, outcome, room)
    slot = cache.lease_slots(ident, lease.token).get(outcome.key)
    if slot is None:
        return _STALE
    if not KINDS[outcome.kind].is_url:
        there = queries.errand_at(cache, slot) is not None if slot else bool(lease.robots)
        return _ACCEPTED if there else _STALE
    row = cache.url(outcome.key)
    if row is None or row.slot != slot:
        return _STALE
    cache.judged[outcome.key] = row
    return _ACCEPTED


def _judge_late(cache: RowCache, ident: bytes, host: HostRow, outcome: Outcome, room: int) -> Settled:
    """A late page is kept when nobody has fetched or is fetching that URL, and there is room for it."""
    if not KINDS[outcome.kind].is_url or isinstance(outcome.result, Failed):
        return _STALE
    if host.lease is not None and outcome.key in cache.lease_slots(ident, host.lease.token):
        return _STALE
    row = cache.url(outcome.key)
    if row is None or host_of_slot(row.slot) != ident:
        return _STALE
    return _LATE if room > 0 or not KINDS[row.found.kind].is_page else _STALE
