"""Verdicts on traps: how one is issued, what it refuses, and how it ends.

A verdict is issued in the transaction that settles the last page it needed. The URLs that it refuses stay known,
listed under its number. When the operator undoes it, or pages contradict it, they go back to their queues, each
once, in bounded steps. Never forgets a URL.
"""

from __future__ import annotations

from skitter.frontier.rows import UrlRow
from skitter.frontier.tables import queries
from skitter.frontier.tables.transaction import Transaction
from skitter.frontier.tables.trap_tables import (
    TrapRow,
    evidence,
    last_pages,
    trap_row,
    write_evidence,
    write_trap,
)
from skitter.model import Host, Refusal, UrlKey, UrlState
from skitter.schedule.traps import Evidence, Level, TrapKind
from skitter.urls.canonical import host_of
from skitter.urls.skeleton import CALENDAR, DEEP, FACETS, REPEATING, SESSION, VARIANT

_MOST = 2_000
UNDONE, CONTRADICTED = "undone by the operator", "contradicted by new pages"
# The first that fits names the trap.
_KINDS = (
    (REPEATING, TrapKind.REPEATING),
    (CALENDAR, TrapKind.CALENDAR),
    (SESSION, TrapKind.SESSION),
    (VARIANT, TrapKind.VARIANT),
    (FACETS, TrapKind.FACETS),
    (DEEP, TrapKind.ENDLESS_PATH),
)
_OF_LEVEL = {
    Level.HOST: TrapKind.BUDGET,
    Level.SECTION: TrapKind.ENDLESS,
    Level.LISTING: TrapKind.ENDLESS,
    Level.DOMAIN: TrapKind.SUBDOMAINS,
    Level.PARAMETER: TrapKind.PARAMETER,
}


def kind_of(seen: Evidence) -> TrapKind:
    if seen.level in _OF_LEVEL:
        return _OF_LEVEL[seen.level]
    if 2 * seen.soft > seen.run:
        return TrapKind.SOFT_404
    return next((kind for bit, kind in _KINDS if seen.shaped & bit), TrapKind.ALIKE)


def issue(tx: Transaction, subject: bytes, seen: Evidence, host: str, example: str, why: str) -> None:
    """Stop a subject from now on."""
    tx.tally.traps += 1
    seen.trap, seen.refused, seen.late = tx.tally.traps, 0, 0
    write_evidence(tx, subject, seen)
    pages = [tx.url(key) for key in last_pages(seen)]
    row = TrapRow(
        subject,
        host,
        seen.name,
        seen.level,
        kind_of(seen),
        tx.cache.by_the_clock(tx.now),
        seen.fetched,
        seen.novel,
        seen.received,
        seen.deepest,
        [example, *(page.url for page in pages if page is not None and page.url != example)],
        why,
    )
    write_trap(tx, seen.trap, row)
    _count_on_host(tx, row, seen.trap)


def _count_on_host(tx: Transaction, row: TrapRow, number: int) -> None:
    """Count the verdict (0: its end) where admission and leasing look first: a host without one costs nothing."""
    tx.tally.verdicts += 1 if number else -1
    if row.level is Level.DOMAIN:
        tx.tally.domains += 1 if number else -1
        return
    _, host = tx.host(Host(row.host))
    host.novelty.traps += 1 if number else -1
    if row.level is Level.HOST:
        host.novelty.stopped = number
    elif row.level is Level.PARAMETER:
        host.novelty.learned = [name for name in host.novelty.learned if name != row.name] + [
            row.name
        ] * bool(number)


def refuse(tx: Transaction, key: UrlKey, row: UrlRow, number: int, subject: bytes, seen: Evidence) -> None:
    """Refuse a URL that is in no queue any more. The caller has already taken it off its former count."""
    seen.refused += 1
    tx.tally.refusing += seen.refused == 1
    write_evidence(tx, subject, seen)
    row.state = UrlState.REFUSED
    row.reason, row.rule, row.trap = Refusal.TRAP, f"verdict {number}: {seen.name}", number
    tx.put_url(key, row)
    tx.add_refused(number, key)
    tx.count(UrlState.REFUSED, 1)
    tx.tally.refusals[row.reason] = tx.tally.refusals.get(row.reason, 0) + 1


def release_url(tx: Transaction, key: UrlKey, row: UrlRow) -> None:
    """Take a refused URL off its verdict, because it is wanted as a seed. The verdict stays."""
    if row.reason != Refusal.TRAP:
        return
    tx.drop_refused(row.trap, key)
    verdict = trap_row(tx.cache, row.trap)
    seen = evidence(tx.cache, verdict.subject) if verdict else None
    if verdict is not None and seen is not None and seen.trap == row.trap:
        seen.refused -= 1
        tx.tally.refusing -= not seen.refused
        write_evidence(tx, verdict.subject, seen)
    row.trap = 0


# -- the end of a verdict


def end(tx: Transaction, number: int, how: str) -> bool:
    """End a verdict: its refused URLs go back to their queues. False when there is no such verdict in force."""
    row = trap_row(tx.cache, number)
    if row is None or row.ended:
        return False
    row.ended = how
    seen = evidence(tx.cache, row.subject)
    if seen is not None and seen.trap == number:
        row.released = seen.refused
        tx.tally.refusing -= bool(seen.refused)
        seen.trap = seen.run = seen.points = seen.late = seen.refused = seen.endless_probes = 0
        seen.pardons += 1
        seen.exempt = seen.exempt or how == UNDONE
        write_evidence(tx, row.subject, seen)
    write_trap(tx, number, row)
    _count_on_host(tx, row, 0)
    tx.add_ended_verdict(number)
    return True


def release_some(tx: Transaction, number: int | None = None) -> int:
    """Requeue a bounded number of URLs of an ended verdict (this one, or the first there is). 0: none is left."""
    ended = queries.ended_verdict(tx.cache, number)
    return 0 if ended is None else _release(tx, ended)


def _release(tx: Transaction, number: int) -> int:
    moved = 0
    for key in queries.refused_by_verdict(tx.cache, number):
        if moved >= _MOST:
            return moved
        tx.drop_refused(number, key)
        _requeue(tx, key, number)
        moved += 1
    tx.drop_ended_verdict(number)
    return moved


def _requeue(tx: Transaction, key: UrlKey, number: int) -> None:
    row = tx.url(key)
    if row is None or row.state != UrlState.REFUSED or row.reason != Refusal.TRAP or row.trap != number:
        return
    ident, host = tx.host(host_of(row.url))
    tx.count(UrlState.REFUSED, -1)
    tx.tally.refusals[row.reason] -= 1
    row.reason = row.rule = ""
    row.trap = 0
    tx.enqueue(key, row, ident, host)
