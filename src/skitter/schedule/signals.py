"""What a host says of its own changes (lastmod of a sitemap, a feed, a push), believed as far as it was right.

Each host has a `Trust`. A visit to a page teaches it: the host had told of a change or kept silent, and there was
a change or not. From then on its word multiplies the odds that a page has changed, and so does its silence. A
host that dates everything today is right as often as its pages change anyway: its word multiplies by one, and has
no effect. Who reads sitemaps or feeds tells the frontier "this URL changed at that time"; nothing is parsed here.
Pure arithmetic; the formulas work for arrays as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

# What a host is believed before it has shown anything, as visits: of two told pages 1.2 had changed where 0.2
# were expected to, and of four expected changes two came without a word.
_TOLD, _CHANGED_TOLD, _EXPECTED_TOLD = 2.0, 1.2, 0.2
_CHANGED_UNTOLD, _EXPECTED_UNTOLD = 2.0, 4.0
# Headers are believed where there were so many, and this share was right.
_FEWEST_HEADERS, _TRUE_HEADERS = 3, 0.8
# A page that changed within so many seconds before it was asked for is dated by the clock, not by its change.
_JUST_NOW = 60.0
# Never believed wholly.
_LEAST, _MOST = 0.02, 500.0
_E = 2.718281828459045

Logarithm = Callable[[float], float]


class Trust(msgspec.Struct, array_like=True, gc=False):
    """What came of visits to pages of one host that was listened to. Of `told` pages `changed_told` had changed,
    and `expected_told` would have by their rates alone; the others it had not told of. Of `headers` that said
    when a page changed last (`Last-Modified`), `true_headers` agreed with what we saw."""

    told: float = 0.0
    changed_told: float = 0.0
    expected_told: float = 0.0
    changed_untold: float = 0.0
    expected_untold: float = 0.0
    headers: int = 0
    true_headers: int = 0

    def learn(self, lesson: tuple[float, float, float, float, float]) -> None:
        told, changed_told, expected_told, changed_untold, expected_untold = lesson
        self.told += told
        self.changed_told += changed_told
        self.expected_told += expected_told
        self.changed_untold += changed_untold
        self.expected_untold += expected_untold

    def learn_header(self, *, agreed: bool) -> None:
        self.headers += 1
        self.true_headers += agreed

    @property
    def believes_headers(self) -> bool:
        return self.headers >= _FEWEST_HEADERS and self.true_headers >= _TRUE_HEADERS * self.headers

    @property
    def precision(self) -> float:
        """The share of told changes that are changes."""
        return (self.changed_told + _CHANGED_TOLD) / (self.told + _TOLD)


def lesson(
    told: float, changed: float, rate: float, days: float, listened: float
) -> tuple[float, float, float, float, float]:
    """What a visit adds to the fields of a `Trust`. The page was `told` of (1 or 0) and `changed` (1 or 0) within
    `days`; its host was last listened to `listened` days after the visit before (0: not since then). A change
    that may have come later is none that the host kept silent of."""
    chance: float = 1 - _E ** -(rate * days)
    heard: float = 1 - _E ** -(rate * listened)
    silent = 1 - told
    return told, told * changed, told * chance, silent * changed * heard / (chance + 1e-9), silent * heard


def odds_when_told(told: float, changed_told: float, expected_told: float) -> float:
    """By how much a told change multiplies the odds that there is one."""
    told, changed, expected = told + _TOLD, changed_told + _CHANGED_TOLD, expected_told + _EXPECTED_TOLD
    return changed / (told - changed) * (told - expected) / expected


def odds_when_silent(changed_untold: float, expected_untold: float) -> float:
    """By how much silence does; below 1 as far as changes are told."""
    return (changed_untold + _CHANGED_UNTOLD) / (expected_untold + _EXPECTED_UNTOLD)


def days_when_told(target: float, rate: float, odds: float, log: Logarithm = math.log) -> float:
    """How many days after a visit `target` changes are expected of a page that was told of since."""
    still: float = _E**-target
    return (target + log(still + (1 - still) / odds)) / rate


def days_when_silent(
    target: float, rate: float, odds: float, listened: float, log: Logarithm = math.log
) -> float:
    """The same for a page that was not told of in the first `listened` days. Later its own rate counts."""
    expected = rate * listened
    still: float = _E**-expected
    heard = expected + log(still + odds * (1 - still))
    return listened + (target - heard) / rate


def days_until_due(
    target: float, rate: float, trust: Trust, told_after: float | None, listened: float
) -> float:
    """How many days after a visit `target` changes are expected, with what the page's host has said since:
    `told_after` so many days that the page changed (None: it did not), and heard last after `listened` days. A
    page is not due before it was told of, so that it does not count as late."""
    if told_after is not None:
        odds = odds_when_told(trust.told, trust.changed_told, trust.expected_told)
        sooner = days_when_told(target, rate, min(max(odds, 1.0), _MOST))
        return max(sooner, min(told_after, target / rate))
    odds = odds_when_silent(trust.changed_untold, trust.expected_untold)
    return days_when_silent(target, rate, min(max(odds, _LEAST), 1.0), listened)


def agrees(dated: float, seen_before: float, now: float, *, changed: bool) -> bool:
    """Whether a page's own date (`Last-Modified`) agrees with what two visits saw: times in seconds."""
    return seen_before < dated < now - _JUST_NOW if changed else dated <= seen_before


def freshness_when_told(fresh: float, trust: Trust) -> float:
    """The chance that a copy is current whose page was told of as changed; `fresh` is its chance otherwise."""
    odds = odds_when_told(trust.told, trust.changed_told, trust.expected_told)
    return fresh / (fresh + (1 - fresh) * min(max(odds, 1.0), _MOST))


def freshness_when_silent(fresh: float, fresh_when_heard: float, trust: Trust) -> float:
    """The same for a page that was not told of when its host was last listened to, which was when its copy was
    current with the chance `fresh_when_heard`."""
    odds = min(max(odds_when_silent(trust.changed_untold, trust.expected_untold), _LEAST), 1.0)
    return fresh / (fresh_when_heard + odds * (1 - fresh_when_heard))
