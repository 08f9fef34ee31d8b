"""When a page is looked at again: the rules (`revisit.rule`), their bounds, and what is kept of a page's visits.

The frontier asks here when it settles a visit, and once more when the page is due. `value` waits until a visit is
worth the price of the moment; `halve-double` and `fixed` are the classic rules. Whatever a rule says, the
operator's bounds hold. Pure; at most 5 us a visit with all that it calls.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from enum import IntEnum, StrEnum
from typing import NamedTuple

from skitter.schedule.visit_value import due_changes

DAY = 86_400.0
FIRST_INTERVAL = 7.0
"""Days until the first revisit by `halve-double`."""

# A page that is gone is asked for again after so many days, then never.
_GONE_WAITS = (7.0, 30.0, 90.0)
_SHORTEST, _LONGEST = 1 / 24, 30.0
# What a host has said of a page comes before its last two bytes, and is left out where it said nothing.
_LAYOUT, _TOLD_LAYOUT = struct.Struct("<eeeIBB"), struct.Struct("<eeeIIBB")
_MOST_HALF = 65_000.0


class RevisitRule(StrEnum):
    VALUE = "value"
    HALVE_DOUBLE = "halve-double"
    FIXED = "fixed"


class Purpose(IntEnum):
    """What the next visit of a page is for."""

    ROUTINE = 0
    AUDIT = 1
    """At a random time, to see how fresh copies are whatever the rule says."""
    NOISE_CHECK = 2
    """Soon after its bytes differed, to see whether they always do."""
    PROMISE = 3
    """The operator promised how old its copy gets at most."""


NEVER_DATED, DATED = 0, 1
"""Of `Visits.told_at`: no sitemap dates the page; one does, and has told of no change since the last visit."""


class Visits(NamedTuple):
    """What is kept of a page's visits: the changes that it has shown in so many days of watching, faded; the last
    interval that was planned (days); when it was last seen (s); how often in a row it was gone; what its next
    visit is for; and when its host told of a change since the last one (s; `NEVER_DATED` or `DATED` where it did
    not)."""

    changes: float = 0.0
    days: float = 0.0
    interval: float = 0.0
    seen_at: int = 0
    times_gone: int = 0
    purpose: int = Purpose.ROUTINE
    told_at: int = NEVER_DATED

    @property
    def is_told(self) -> bool:
        return self.told_at > DATED


NOT_VISITED = Visits()


def pack_visits(visits: Visits) -> bytes:
    """12 bytes, 16 for a page that a sitemap dates. Half floats do: their steps of a thousandth are finer than
    what one visit changes."""
    changes, days, interval, seen_at, times_gone, purpose, told_at = visits
    shown = min(changes, _MOST_HALF), min(days, _MOST_HALF), min(interval, _MOST_HALF), seen_at
    if told_at:
        return _TOLD_LAYOUT.pack(*shown, told_at, times_gone, purpose)
    return _LAYOUT.pack(*shown, times_gone, purpose)


def is_prompt(packed: bytes) -> bool:
    """Whether the next visit must be on time, whatever the budget is: it has another purpose than its worth."""
    return bool(packed) and packed[-1] != Purpose.ROUTINE


def unpack_visits(packed: bytes) -> Visits:
    if not packed:
        return NOT_VISITED
    if len(packed) == _LAYOUT.size:
        return Visits._make((*_LAYOUT.unpack(packed), NEVER_DATED))
    *shown, told_at, times_gone, purpose = _TOLD_LAYOUT.unpack(packed)
    return Visits._make((*shown, times_gone, purpose, told_at))


class Bounds(NamedTuple):
    """Days between two visits of a page, at least and at most."""

    least: float
    most: float


def bounded(days: float, bounds: Bounds) -> float:
    """`most` wins where the two contradict each other: it is a promise."""
    return min(max(days, bounds.least), bounds.most)


def days_by_value(rate: float, weight: float, price: float) -> float:
    return due_changes(price * rate / weight) / rate


def days_by_news(news: float, price: float) -> float:
    """Until a sitemap or feed is worth reading again that brings so many `news` a day (new URLs, true dates).
    What it would tell has waited for half of the time on average: news * days * days / 2 is worth the price."""
    return math.sqrt(2 * price / news)


def days_by_halving(days: float, changed: bool) -> float:
    """The next interval after one of `days` (0: there was none)."""
    if not days:
        return FIRST_INTERVAL
    return min(max(days / 2 if changed else days * 2, _SHORTEST), _LONGEST)


def audited_freshness(audits: int, audited: float, audited_fresh: float) -> tuple[float | None, float | None]:
    """The share of copies that were current, over time, and its standard error, by visits at random times. Each
    counts as much as the interval that it fell into was long."""
    if not audits or not audited:
        return None, None
    fresh = audited_fresh / audited
    return fresh, math.sqrt(max(fresh * (1 - fresh), 0.25 / audits) / audits)


def days_until_asked_if_back(times_gone: int, waits: Sequence[float] = _GONE_WAITS) -> float | None:
    """For a page that was gone so many times in a row; None: it is not asked for any more."""
    return waits[times_gone - 1] if times_gone <= len(waits) else None
