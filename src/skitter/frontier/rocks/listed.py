"""URLs that a blocklist refused, after the lists have changed: those that no line forbids any more go back.

A walk over all URLs in bounded steps, one a chore, which a restart goes on with. What was refused for another
reason stays so. Never reads a list itself.
"""

from __future__ import annotations

import itertools

from skitter.frontier.blocklists import Blocklists
from skitter.frontier.rocks.admission import Admission
from skitter.frontier.rocks.rows import LISTED, UrlRow
from skitter.frontier.rocks.turn import Turn
from skitter.model import Discovered, Refusal, UrlKey, UrlState
from skitter.urls.canonical import host_of

_DIGEST = b"blocklists"
_END = b"\xff" * 17
# 3 us a row: 30 ms a step.
_MOST_LOOKED_AT = 10_000


def note_lists(turn: Turn, lists: Blocklists) -> None:
    """The lists in force; if they are others than before, what they refused is looked at again."""
    digest = lists.digest()
    if turn.book.store.get("meta", _DIGEST) == digest:
        return
    turn.put("meta", _DIGEST, digest)
    if turn.tally.refusals.get(Refusal.BLOCKLIST):
        turn.put("meta", LISTED, b"")


def rejudge_listed(turn: Turn, admission: Admission) -> int:
    """How many went back, at least 1 while there are more to look at."""
    start = turn.book.store.get("meta", LISTED)
    if start is None:
        return 0
    rows = turn.book.store.scan("urls", start, _END)
    found = list(itertools.islice(rows, _MOST_LOOKED_AT + 1))
    moved = sum(_rejudged(turn, UrlKey(key), admission) for key, _ in found[:_MOST_LOOKED_AT])
    if len(found) <= _MOST_LOOKED_AT:
        turn.delete("meta", LISTED)
        return moved
    turn.put("meta", LISTED, found[-1][0])
    return max(1, moved)


def _rejudged(turn: Turn, key: UrlKey, admission: Admission) -> bool:
    row = turn.url(key)
    if row is None or row.state != UrlState.REFUSED or row.reason != Refusal.BLOCKLIST:
        return False
    found = _discovered(key, row)
    refused = admission.judge(turn, found)
    if refused is not None and refused[0] is Refusal.BLOCKLIST:
        return False
    turn.count(UrlState.REFUSED, -1)
    turn.tally.refusals[row.reason] -= 1
    if refused is not None:
        admission.refuse(turn, found, row, refused)
        return False
    row.reason = row.rule = ""
    ident, host = turn.host(found.host)
    host.admitted += 1
    turn.enqueue(key, row, ident, host)
    return True


def _discovered(key: UrlKey, row: UrlRow) -> Discovered:
    return Discovered(
        url=row.url,
        key=key,
        host=host_of(row.url),
        depth=row.depth,
        via=row.via,
        hops=row.hops,
        requisite=row.requisite,
    )
