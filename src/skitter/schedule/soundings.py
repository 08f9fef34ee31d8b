"""Whether a section of a host has an end: what its pages led to, and soundings where an end would be. Pure.

Fed when a page is settled. A tree that is walked from its root looks endless for long, as its leaves come last.
So a section in which every page led to new ones is sounded: a few *lines* go down at once, from a page to one of
the new ones that it brought, and on. A tree of many thousand pages has leaves within ten links; what is made up
as one asks has none. Never says that a section is endless when a line has just touched ground.
"""

from __future__ import annotations

from collections.abc import Sequence

from skitter.schedule.traps import MARK, PATIENCE, Evidence

# One page in four of a larger host is looked at; of one that is being sounded, every page; of a section that has
# shown its end many times over, by leaves or by links to what was known, one in so many of the host.
ONE_IN = 4
SELDOM = 64
_SURE_OF, _OFTEN = 12, 0.25
# Pages that are looked at before a section is sounded, and before it can be called endless.
_SUSPECT, _LOOKED_AT = 6, 40
_NEARLY_ALL = 0.95
_HARDLY_EVER = 0.05
_BROOD = 2
_USUAL_KEPT = 48
# Of the pages that are looked at at most so many were linked from elsewhere: a way in, or a few.
_FROM_ELSEWHERE = 0.25
# Lines that found no ground in a row, each ten links deep: with two new pages on each, a tree of a thousand pages
# below every one of them. Where the crawl's own limit of depth is nearer, five links have to do.
LINES = 4
_FATHOMS, _FATHOMS_TO_THE_LIMIT = 10, 5


def account_growth(seen: Evidence, brought: int, met: int | None, *, from_elsewhere: bool = False) -> None:
    """A page of a section brought new URLs of the same section, and met others again that were known. Links that
    lead out of it tell nothing of its end: a search that never ends finds pages that are known. Where nobody
    counted what was met, None, what was brought is not weighed against it either."""
    seen.fetched += 1
    seen.grown += brought >= _BROOD
    if met is not None:
        seen.brought += brought
        seen.again += met
    seen.entered += from_elsewhere
    seen.late += bool(seen.trap) and not brought


def leads_on(seen: Evidence) -> bool:
    return seen.grown >= _NEARLY_ALL * seen.fetched


def met_again(seen: Evidence, known: Sequence[bytes]) -> int:
    """How many of these known pages say that the section has an end: those that the last pages did not link too.
    Doors and navigation, which every page has, say nothing. `known` are marks; the section remembers them."""
    before = seen.usual
    seen.usual = (b"".join(known) + before)[: MARK * _USUAL_KEPT]
    return sum([mark not in before for mark in known])


def is_growing(seen: Evidence) -> bool:
    """Whether nearly every page leads to new ones, and hardly a link to what was known already. Where pages link
    each other, such links soon are the most."""
    return leads_on(seen) and seen.again <= _HARDLY_EVER * seen.brought


def has_an_end(seen: Evidence) -> bool:
    """Whether there is nothing more to learn of it for now: what most sections come to soon."""
    if seen.trap or seen.fetched < _SURE_OF:
        return False
    leaves = seen.fetched - seen.grown
    return leaves >= _OFTEN * seen.fetched or seen.again >= _OFTEN * seen.brought


def forget(seen: Evidence) -> None:
    """Half of what was seen, so that what a section became counts more than what it was."""
    seen.fetched, seen.grown, seen.entered = seen.fetched // 2, seen.grown // 2, seen.entered // 2
    seen.brought, seen.again, seen.sound_from = seen.brought // 2, seen.again // 2, seen.sound_from // 2


def is_endless(seen: Evidence) -> bool:
    """Whether a section grows as none with an end does, however deep one looks, and nobody else links into it."""
    if seen.trap or seen.exempt or seen.fetched < _LOOKED_AT or seen.bottomless < _lines_needed(seen):
        return False
    return is_growing(seen) and seen.entered <= _FROM_ELSEWHERE * seen.fetched


# -- lines


def wants_line(seen: Evidence) -> bool:
    """Whether one more line is to go down, from the page that was just looked at."""
    if seen.trap or seen.exempt or seen.fetched < max(_SUSPECT, seen.sound_from):
        return False
    under_way = len(seen.lines)
    return under_way < LINES and under_way + seen.bottomless < _lines_needed(seen) and is_growing(seen)


def lower(seen: Evidence, key: bytes, brought: int, below: bytes | None) -> None:
    """The page at the end of a line was seen; the line goes on with `below`, if it can. At the first ground all
    lines are given up, until the section has twice as many pages."""
    fathoms = seen.lines.pop(key) + 1
    if not brought:
        seen.lines.clear()
        seen.bottomless, seen.sound_from = 0, 2 * seen.fetched
    elif fathoms >= _FATHOMS or (not below and fathoms >= _FATHOMS_TO_THE_LIMIT):
        seen.bottomless += 1
    elif below:
        seen.lines[below] = fathoms


def _lines_needed(seen: Evidence) -> int:
    return int(LINES * PATIENCE**seen.pardons)
