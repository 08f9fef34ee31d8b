"""Whether a section of a host has an end: counts of its growth, and depth probes that look for the end. Pure.

Fed when a page is settled. A finite tree that is crawled from its root looks endless for a long time, because its
leaves come last. So where every page led to new pages, a few *depth probes* are started: each follows one new
link, then one new link of that page, and so on. A real tree of many thousand pages has leaves within ten links;
pages that are generated on request have none. Never calls a section endless just after a probe found a leaf.
"""

from __future__ import annotations

from collections.abc import Sequence

from skitter.schedule.traps import PATIENCE, TAG, Evidence

# One page in four of a larger host is looked at; while depth probes are under way, every page. Where a section
# has clearly shown its end, by leaves or by links to known pages, one page in SELDOM_ONE_IN is.
ONE_IN = 4
SELDOM_ONE_IN = 64
_SURE_OF, _OFTEN = 12, 0.25
# Pages looked at before the first depth probe starts, and before a section can be called endless.
_SUSPECT, _LOOKED_AT = 6, 40
_NEARLY_ALL = 0.95
_HARDLY_EVER = 0.05
_BROOD = 2
_USUAL_KEPT = 48
# At most this share of the pages may be linked from elsewhere: a section has a few ways in.
_FROM_ELSEWHERE = 0.25
# So many depth probes in a row must find no end, each ten links deep: with two new pages on each page, that is a
# tree of a thousand pages below every start. Where the crawl's depth limit is nearer, five links are enough.
DEPTH_PROBES = 4
_DEEP_ENOUGH, _DEEP_ENOUGH_AT_LIMIT = 10, 5


def account_growth(seen: Evidence, brought: int, met: int | None, *, from_elsewhere: bool = False) -> None:
    """Count a page of a section: it `brought` new URLs of the section and linked `met` known ones. Links that
    lead out of the section are not counted: an endless search also finds known pages. `met` is None where
    nobody counted it; then `brought` is not weighed either."""
    seen.fetched += 1
    seen.grown += brought >= _BROOD
    if met is not None:
        seen.brought += brought
        seen.again += met
    seen.entered += from_elsewhere
    seen.late += bool(seen.trap) and not brought


def leads_on(seen: Evidence) -> bool:
    return seen.grown >= _NEARLY_ALL * seen.fetched


def count_met_again(seen: Evidence, known: Sequence[bytes]) -> int:
    """How many of these known pages show that the section has an end: those that the last pages did not link.
    Navigation, which every page has, shows nothing. `known` are tags; the section remembers them."""
    before = seen.usual
    seen.usual = (b"".join(known) + before)[: TAG * _USUAL_KEPT]
    return sum([tag not in before for tag in known])


def is_growing(seen: Evidence) -> bool:
    """Whether nearly every page leads to new pages, and hardly any link to known ones. Where pages link each
    other, links to known pages soon are the majority."""
    return leads_on(seen) and seen.again <= _HARDLY_EVER * seen.brought


def has_an_end(seen: Evidence) -> bool:
    """Whether the section has clearly shown an end. Most sections soon have."""
    if seen.trap or seen.fetched < _SURE_OF:
        return False
    leaves = seen.fetched - seen.grown
    return leaves >= _OFTEN * seen.fetched or seen.again >= _OFTEN * seen.brought


def forget_half(seen: Evidence) -> None:
    """Halve the counts, so that new pages weigh more than old ones."""
    seen.fetched, seen.grown, seen.entered = seen.fetched // 2, seen.grown // 2, seen.entered // 2
    seen.brought, seen.again, seen.probe_from = seen.brought // 2, seen.again // 2, seen.probe_from // 2


def is_endless(seen: Evidence) -> bool:
    """Whether a section grows without end: depth probes found none, and hardly anybody links into it."""
    if (
        seen.trap
        or seen.exempt
        or seen.fetched < _LOOKED_AT
        or seen.endless_probes < _depth_probes_needed(seen)
    ):
        return False
    return is_growing(seen) and seen.entered <= _FROM_ELSEWHERE * seen.fetched


# -- depth probes


def wants_depth_probe(seen: Evidence) -> bool:
    """Whether a depth probe should start at the page that was just looked at."""
    if seen.trap or seen.exempt or seen.fetched < max(_SUSPECT, seen.probe_from):
        return False
    under_way = len(seen.depth_probes)
    return (
        under_way < DEPTH_PROBES
        and under_way + seen.endless_probes < _depth_probes_needed(seen)
        and is_growing(seen)
    )


def advance_depth_probe(seen: Evidence, key: bytes, brought: int, below: bytes | None) -> None:
    """A depth probe arrived at page `key`. It goes on to `below`, if there is one. When a probe finds a leaf, all
    probes of the section end, until it has twice as many pages."""
    depth = seen.depth_probes.pop(key) + 1
    if not brought:
        seen.depth_probes.clear()
        seen.endless_probes, seen.probe_from = 0, 2 * seen.fetched
    elif depth >= _DEEP_ENOUGH or (not below and depth >= _DEEP_ENOUGH_AT_LIMIT):
        seen.endless_probes += 1
    elif below:
        seen.depth_probes[below] = depth


def _depth_probes_needed(seen: Evidence) -> int:
    return int(DEPTH_PROBES * PATIENCE**seen.pardons)
