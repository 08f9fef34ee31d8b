"""Parameters that change nothing, learnt per host: of all URLs that differ in them alone, one is fetched.

A pair of pages whose URLs differ in one parameter is a sample, whether they are alike or not. Once a parameter is
learnt the first URL that means a page *claims* it; the others are refused under the verdict, and come back when
it is undone or a sample contradicts it. Only hosts that learnt something pay for this, for URLs with a query.
"""

from __future__ import annotations

import itertools

from skitter.frontier.rocks import verdicts
from skitter.frontier.rocks.kinds import subject_key
from skitter.frontier.rocks.rows import HostRow, UrlRow, decode_url
from skitter.frontier.rocks.sights import Likeness
from skitter.frontier.rocks.subjects import (
    claim,
    claimant,
    evidence,
    evidence_of,
    key_for,
    parameter_key,
    write,
)
from skitter.frontier.rocks.turn import Turn
from skitter.model import UrlState
from skitter.schedule.traps import Evidence, Level, Sight, account, count_pair, is_idle
from skitter.urls.canonical import host_id
from skitter.urls.skeleton import only_difference, skeleton, without

_KEY = 16
# URLs of a host that are looked at when a parameter is learnt, 4 us each: what was fetched already stands for
# what comes.
_MOST_CLAIMED = 5_000
# Alike enough to say that a parameter does nothing: near is not, for two shirts of a shop can be near.
_TELLING = (Sight.COPY, Sight.SAME, Sight.ELSEWHERE)
# Kin share a title and have other words: pages of a list may be kin, and their number matters.
_DIFFERENT = (Sight.NOVEL, Sight.KIN)


def neighbour(turn: Turn, seen: Evidence | None) -> str:
    """The page that was settled last of those that the evidence is of."""
    last = turn.url(seen.last[:_KEY]) if seen is not None and seen.last else None
    return last.url if last is not None else ""


def compare(
    turn: Turn,
    ident: bytes,
    host: HostRow,
    key: bytes,
    row: UrlRow,
    found: Likeness,
    sight: Sight,
    before: str,
) -> None:
    """What a page with a query tells of its parameters, beside the page it resembles or the one before it."""
    if "?" not in row.url:
        return
    if host.learned and _is_sample(turn, host, key, row.url):
        name = only_difference(row.url, without(row.url, host.learned)) or host.learned[0]
        _count(turn, ident, host, name, row.url, 2, alike=sight is not Sight.NOVEL)
    elif sight in _TELLING and found.original:
        weight = 2 if sight is Sight.COPY else 1
        _count(turn, ident, host, only_difference(row.url, found.original), row.url, weight, alike=True)
    elif sight in _DIFFERENT and before:
        _count(turn, ident, host, only_difference(row.url, before), row.url, 1, alike=False)


def note_novel(turn: Turn, host: HostRow, key: bytes, row: UrlRow) -> None:
    """A page with a query was new, on a host on which all were: its parameters do something."""
    ident = host_id(host.host)
    shape = skeleton(row.url)
    subject = subject_key(ident, shape.fine)
    seen = evidence_of(turn.book, subject, shape.fine, Level.SKELETON, shape.shape)
    before = neighbour(turn, seen)
    account(seen, Sight.NOVEL, size=row.size, depth=row.depth, key=key)
    write(turn, subject, seen)
    if before:
        _count(turn, ident, host, only_difference(row.url, before), row.url, 1, alike=False)


def _count(turn: Turn, ident: bytes, host: HostRow, name: str, url: str, weight: int, *, alike: bool) -> None:
    if not name:
        return
    subject = parameter_key(ident, name)
    seen = evidence_of(turn.book, subject, name, Level.PARAMETER)
    count_pair(seen, weight, alike=alike)
    write(turn, subject, seen)
    if seen.trap and seen.late:
        verdicts.end(turn, seen.trap, verdicts.CONTRADICTED)
    elif is_idle(seen):
        _learn(turn, ident, host, subject, seen, url)


def _learn(turn: Turn, ident: bytes, host: HostRow, subject: bytes, seen: Evidence, url: str) -> None:
    alike = seen.fetched - seen.novel
    why = f"{alike} pairs of pages that differ in it alone were the same, {seen.novel} were not"
    verdicts.fall(turn, subject, seen, host.host, url, why)
    prefix = turn.book.keys.prefix(host.host)
    for key, raw in itertools.islice(
        turn.book.store.scan("urls", prefix, prefix + b"\xff" * 9), _MOST_CLAIMED
    ):
        row = decode_url(raw)
        if row.state == UrlState.COMPLETED:
            stripped = without(row.url, host.learned)
            if stripped != row.url and claimant(turn, (meant := key_for(turn.book, stripped))) is None:
                claim(turn, meant, key)


def _is_sample(turn: Turn, host: HostRow, key: bytes, url: str) -> bool:
    stripped = without(url, host.learned)
    return stripped != url and claimant(turn, key_for(turn.book, stripped)) not in (None, key)


def stopped(
    turn: Turn, ident: bytes, host: HostRow, key: bytes, url: str
) -> tuple[int, bytes, Evidence] | None:
    """The verdict on a parameter that makes this URL one too many; the first of its meaning claims it."""
    stripped = without(url, host.learned)
    if stripped == url:
        return None
    meant = key_for(turn.book, stripped)
    first = claimant(turn, meant)
    if first is None and turn.url(meant) is None:
        claim(turn, meant, key)
        return None
    if first == key:
        return None
    name = next(name for name in host.learned if without(url, [name]) != url)
    subject = parameter_key(ident, name)
    seen = evidence(turn.book, subject)
    return (seen.trap, subject, seen) if seen is not None and seen.trap else None
