"""The price of a visit: one number for a whole crawl, which moves until the visits that are worth it are as many
as the budget has.

Pages that are served late say that the price is too low, pages that are served before their time that it is too
high. Moved when a page goes back to its queue. Never counts a page that waited for its host: that says nothing
of the budget. Pure arithmetic.
"""

from __future__ import annotations

import math

FIRST_PRICE = 0.01
"""In days of freshness. Too low a first price is mended in days, one that is far too high is not."""

_GAIN = 10.0
# How far one visit moves the price at most: a crawl of ten pages must not swing between extremes.
_MOST = 0.05
_LOWEST, _HIGHEST = 1e-9, 1e4


def moved_price(price: float, late: float, pages: int) -> float:
    """After a visit that came `late` (days; below 0 when it came early), where so many pages are watched."""
    step = max(-_MOST, min(_MOST, _GAIN * late / max(pages, 1)))
    return max(_LOWEST, min(_HIGHEST, price * math.exp(step)))


def lateness(now: float, planned: float, today: float) -> float:
    """How late a visit comes (below 0: early) that was `planned` for then, and would be for `today` with
    the price and rates of today. A visit that only today's lower price makes due is not late."""
    return now - today if today > now else max(0.0, now - max(planned, today))
