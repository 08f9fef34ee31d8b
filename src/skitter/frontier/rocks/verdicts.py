"""Verdicts on traps: how one falls, what it refuses, and how it ends.

A verdict falls in the turn that settles the last page it needed. What it refuses stays known, listed under its
number; when the operator undoes it, or pages contradict it, those URLs go back to their queues, each once, in
bounded steps. Never forgets a URL.
"""

from __future__ import annotations

from skitter.frontier.rocks.rows import UrlRow
from skitter.frontier.rocks.subjects import (
    RELEASE,
    TrapRow,
    evidence,
    refused_by,
    trap_row,
    write,
    write_trap,
)
from skitter.frontier.rocks.turn import Turn
from skitter.model import Host, Refusal, UrlKey, UrlState
from skitter.schedule.traps import Evidence, Level, TrapKind
from skitter.urls.canonical import host_of
from skitter.urls.skeleton import CALENDAR, DEEP, FACETS, REPEATING, SESSION, VARIANT

_MOST = 2_000
_KEY = 16
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
    Level.DOMAIN: TrapKind.SUBDOMAINS,
    Level.PARAMETER: TrapKind.PARAMETER,
}


def kind_of(seen: Evidence) -> TrapKind:
    if seen.level in _OF_LEVEL:
        return _OF_LEVEL[seen.level]
    if 2 * seen.soft > seen.run:
        return TrapKind.SOFT_404
    return next((kind for bit, kind in _KINDS if seen.shaped & bit), TrapKind.ALIKE)


def fall(turn: Turn, subject: bytes, seen: Evidence, host: str, example: str, why: str) -> None:
    """The subject is stopped from now on."""
    turn.tally.traps += 1
    seen.trap, seen.refused, seen.late = turn.tally.traps, 0, 0
    write(turn, subject, seen)
    pages = [turn.url(seen.last[at : at + _KEY]) for at in range(0, len(seen.last), _KEY)]
    row = TrapRow(
        subject,
        host,
        seen.name,
        seen.level,
        kind_of(seen),
        turn.book.by_the_clock(turn.now),
        seen.fetched,
        seen.novel,
        seen.received,
        seen.deepest,
        [example, *(page.url for page in pages if page is not None and page.url != example)],
        why,
    )
    write_trap(turn, seen.trap, row)
    _mark_host(turn, row, seen.trap)


def _mark_host(turn: Turn, row: TrapRow, number: int) -> None:
    """Where admission and leasing look first: a host without a mark costs them nothing."""
    if row.level is Level.DOMAIN:
        turn.tally.domains += 1 if number else -1
        return
    _, host = turn.host(Host(row.host))
    host.traps += 1 if number else -1
    if row.level is Level.HOST:
        host.stopped = number
    elif row.level is Level.PARAMETER:
        host.learned = [name for name in host.learned if name != row.name] + [row.name] * bool(number)


def refuse(turn: Turn, key: bytes, row: UrlRow, number: int, subject: bytes, seen: Evidence) -> None:
    """Of a URL that has no place in a queue any more; the caller has taken it off what counted it."""
    seen.refused += 1
    write(turn, subject, seen)
    row.state = UrlState.REFUSED
    row.reason, row.rule, row.trap = Refusal.TRAP, f"verdict {number}: {seen.name}", number
    turn.put_url(key, row)
    turn.put("traps", refused_by(number) + key, b"")
    turn.count(UrlState.REFUSED, 1)
    turn.tally.refusals[row.reason] = turn.tally.refusals.get(row.reason, 0) + 1


def pardon(turn: Turn, key: bytes, row: UrlRow) -> None:
    """A URL that a verdict refused is wanted after all, as a seed; the verdict stays."""
    if row.reason != Refusal.TRAP:
        return
    turn.delete("traps", refused_by(row.trap) + key)
    verdict = trap_row(turn.book, row.trap)
    seen = evidence(turn.book, verdict.subject) if verdict else None
    if verdict is not None and seen is not None and seen.trap == row.trap:
        seen.refused -= 1
        write(turn, verdict.subject, seen)
    row.trap = 0


# -- the end of a verdict


def end(turn: Turn, number: int, how: str) -> bool:
    """No more is refused by it, and what was goes back. False when there is no such verdict in force."""
    row = trap_row(turn.book, number)
    if row is None or row.ended:
        return False
    row.ended = how
    seen = evidence(turn.book, row.subject)
    if seen is not None and seen.trap == number:
        row.released = seen.refused
        seen.trap = seen.run = seen.points = seen.late = seen.refused = seen.bottomless = 0
        seen.pardons += 1
        seen.exempt = seen.exempt or how == UNDONE
        write(turn, row.subject, seen)
    write_trap(turn, number, row)
    _mark_host(turn, row, 0)
    turn.put("meta", RELEASE + number.to_bytes(4, "big"), b"")
    return True


def release_some(turn: Turn, number: int | None = None) -> int:
    """A bounded number of URLs whose verdict is over (this one, or the first there is) go back; 0 when none is
    left."""
    first = RELEASE if number is None else RELEASE + number.to_bytes(4, "big")
    for entry, _ in turn.book.store.scan("meta", first, first + b"\xff" * 5):
        return _release(turn, entry)
    return 0


def _release(turn: Turn, entry: bytes) -> int:
    number = int.from_bytes(entry[len(RELEASE) :], "big")
    start = refused_by(number)
    moved = 0
    for place, _ in turn.book.store.scan("traps", start, start + b"\xff" * (_KEY + 1)):
        if moved >= _MOST:
            return moved
        turn.delete("traps", place)
        _back(turn, UrlKey(place[len(start) :]), number)
        moved += 1
    turn.delete("meta", entry)
    return moved


def _back(turn: Turn, key: UrlKey, number: int) -> None:
    row = turn.url(key)
    if row is None or row.state != UrlState.REFUSED or row.reason != Refusal.TRAP or row.trap != number:
        return
    ident, host = turn.host(host_of(row.url))
    turn.count(UrlState.REFUSED, -1)
    turn.tally.refusals[row.reason] -= 1
    row.reason = row.rule = ""
    row.trap = 0
    turn.enqueue(key, row, ident, host)
