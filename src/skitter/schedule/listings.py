"""Whether a listing in numbered pages has an end: how far its numbers lead. Pure arithmetic.

Fed when a page of a listing is settled, on a host whose pages are entries. The crawl follows the highest number
that each page leads to. A listing with an end shows it after a few such leaps. One that is made up as it is asked
for leads higher from every page. Where a page leads only to the next one nothing is concluded.
"""

from __future__ import annotations

import re

from skitter.schedule.traps import PATIENCE, Evidence

# Leaps in a row after which a listing has no end.
_LEAPS = 12
# A leap raises the highest number by this much. The last pages of a listing with an end come in small steps.
_HIGHER = 1.02
# And so many entries must lie below the highest number: a listing with fewer is never called endless here.
_ENTRIES_AHEAD = 30_000
# Pages of a listing before its end is looked for.
_SUSPECT = 4
_BRANCHES = 2
_NUMBER = re.compile(r"\d+")
_LONGEST = 15


def number_ahead(url: str, other: str) -> tuple[int, int] | None:
    """The one number in which two URLs of the same form differ: that of each. None when they differ otherwise."""
    if _NUMBER.sub("#", url) != _NUMBER.sub("#", other):
        return None
    pairs = zip(_NUMBER.findall(url), _NUMBER.findall(other), strict=True)
    differing = [(one, two) for one, two in pairs if one != two]
    if len(differing) != 1 or max(map(len, differing[0])) > _LONGEST:
        return None
    return int(differing[0][0]), int(differing[0][1])


def account_listing(seen: Evidence, entries: int, steps: list[int]) -> None:
    """Count a page of a listing that led to `entries`, and to further pages so many `steps` away."""
    seen.fetched += 1
    seen.brought += entries
    nearest = min((abs(step) for step in steps), default=0)
    if nearest and (not seen.step or nearest < seen.step):
        seen.step = nearest


def leads_higher(seen: Evidence, highest: int) -> bool:
    """Whether a page that leads up to the number `highest` leads much higher than any before."""
    if seen.trap or seen.exempt or seen.fetched < _SUSPECT:
        return False
    return highest > _HIGHER * seen.highest


def follow(seen: Evidence, key: bytes, above: bytes | None, branches: int) -> None:
    """Page `key` was settled. If it led higher, the search for the end goes on at `above`, the highest page: a
    leap, if the page led to others besides. Where the search arrives at a page that leads no higher, it ends."""
    if above is not None:
        leaps = max(seen.depth_probes.values(), default=0) + (branches >= _BRANCHES)
        seen.endless_probes, seen.depth_probes = leaps, {above: leaps}
    elif key in seen.depth_probes:
        seen.endless_probes = 0
        seen.depth_probes.clear()


def entries_ahead(seen: Evidence) -> int:
    """How many entries the listing has, if it has all the pages up to the highest number that was seen."""
    return seen.highest // max(1, seen.step) * seen.brought // max(1, seen.fetched)


def is_unending(seen: Evidence) -> bool:
    if seen.trap or seen.exempt:
        return False
    patience = int(PATIENCE**seen.pardons)
    return seen.endless_probes >= _LEAPS * patience and entries_ahead(seen) >= _ENTRIES_AHEAD * patience
