"""How urgent a URL is, and which of the four tiers that puts it in.

Priorities run from 0 to 100, higher is more urgent. Tiers F0 (most urgent) to F3 are served by weight; a tier
that is behind its share goes first, so a low one never starves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from skitter.model import Via

TIERS = 4
REVISITS = TIERS
"""The lane of a host's queue, beside those of its tiers, in which pages wait that are visited again."""
LANES = TIERS + 1
SEED_PRIORITY = 80
# A tier is 25 wide: what a page needs waits one tier below its page. Above, ten pictures a page would crowd the
# pages out; in one queue at the very end, a crawl that is stopped early would have words without any style.
_BELOW_ITS_PAGE = 25
# Of sitemaps: one tier below the pages that they name. So both have their share of a host's requests: an index of
# 500 files does not keep pages waiting, and 50,000 pages do not keep the next file waiting.
_OF_SITEMAPS = 45
# A sitemap's own 0 to 1 orders the pages of its host, all in one tier: no site can get ahead of others by it.
_HINT_WIDTH = 18


class Prioritizer(Protocol):
    def priority(self, via: Via, depth: int, linking_hosts: int) -> int:
        """From 0 to 100. Asked again when another host turns out to link a URL that is still queued."""
        ...


class ByDepthAndLinks:
    """Near to a seed is urgent; so is what many other hosts point at: 5 more for each doubling."""

    def priority(self, via: Via, depth: int, linking_hosts: int) -> int:
        if via is Via.REQUISITE:
            return max(0, self.priority(Via.LINK, depth, 0) - _BELOW_ITS_PAGE)
        if via is Via.ROBOTS:
            return _OF_SITEMAPS
        if via is Via.SEED or depth == 0:
            return SEED_PRIORITY
        nearness = max(10, 65 - 5 * (depth - 1))
        return min(SEED_PRIORITY - 1, nearness + 5 * (linking_hosts.bit_length() - 1 if linking_hosts else 0))


class ByLinks(ByDepthAndLinks):
    """What other hosts point at is urgent, 12 for each doubling; how near it is to a seed hardly counts. What its
    own host is worth comes on top (`schedule/importance.py`)."""

    def priority(self, via: Via, depth: int, linking_hosts: int) -> int:
        if via is not Via.LINK or depth == 0:
            return super().priority(via, depth, linking_hosts)
        nearness = max(25, 46 - depth)
        return min(SEED_PRIORITY - 1, nearness + 12 * linking_hosts.bit_length())


def hinted_priority(hint: float | None) -> int | None:
    """The priority of a page by what its sitemap says, from 0 to 1; None where that says nothing special."""
    if hint is None or hint == 0.5:
        return None
    return 65 + round((hint - 0.5) * _HINT_WIDTH)


def tier_of(priority: int) -> int:
    if priority >= 75:
        return 0
    if priority >= 50:
        return 1
    return 2 if priority >= 25 else 3


class TierScheduler:
    """Which tier is served next: stride scheduling. A tier's pass grows by 1/weight with each task served; the
    tier with the smallest pass goes next. A tier that was idle gets no credit for it: when it comes back, its
    pass is raised to where the others are."""

    def __init__(self, weights: Sequence[float]) -> None:
        self._strides = [1.0 / weight for weight in weights]
        self._passes = [0.0] * len(weights)
        self._idle = [True] * len(weights)
        self._reached = 0.0

    def choose(self, tiers: Sequence[int]) -> int:
        for tier in tiers:
            if self._idle[tier]:
                self._idle[tier] = False
                self._passes[tier] = max(self._passes[tier], self._reached)
        chosen = min(tiers, key=lambda tier: (self._passes[tier], tier))
        self._reached = self._passes[chosen]
        return chosen

    def count_served(self, tier: int, tasks: int) -> None:
        self._passes[tier] += self._strides[tier] * tasks

    def set_idle(self, tier: int) -> None:
        self._idle[tier] = True
