"""What a host says of its own changes (lastmod of a sitemap, a feed, a push), believed as far as it was right.

Each host has a `Trust`. A visit to a page teaches it: the host had told of a change or kept silent, and there was
a change or not. From then on its word multiplies the odds that a page has changed, and so does its silence. A
host that dates everything today is right as often as its pages change anyway. Whether it is of that sort is asked
apart: a forecast that heeds such a word is compared with one that does not, visit by visit, and what the word is
worth counts only as far as heeding was better. Who reads sitemaps or feeds tells the frontier "this URL changed
at that time"; nothing is parsed here. Pure arithmetic; the formulas work for arrays as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

# What a host is believed before it has shown anything, as visits: of two told pages 1.2 had changed where 0.2
# were expected to, and of four expected changes two came without a word.
_TOLD, _CHANGED_TOLD, _EXPECTED_TOLD = 2.0, 1.2, 0.2
_CHANGED_UNTOLD, _EXPECTED_UNTOLD = 2.0, 4.0
# Of a host that is worth heeding, told pages are unchanged this much less often than others. And how sure it is
# beforehand that a host is, and at most: a liar that mends its ways is heeded again after some visits.
_UNCHANGED, _FIRST_EVIDENCE, _MOST_EVIDENCE = 0.4, 1.5, 8.0
# A promise that a page stays as it is (`max-age`) is worth nothing beforehand: so many changes must be missed.
_STAYS = 4.0
# Headers are believed where there were so many, and this share was right.
_FEWEST_HEADERS, _TRUE_HEADERS = 3, 0.8
# A page that changed within so many seconds before it was asked for is dated by the clock, not by its change.
_JUST_NOW = 60.0
# Never believed wholly.
_LEAST, _MOST = 0.02, 500.0
_E = 2.718281828459045

Logarithm = Callable[[float], float]
Lesson = tuple[float, float, float, float, float, float]


class Trust(msgspec.Struct, array_like=True, gc=False):
    """What came of visits to pages of one host that was listened to. Of `told` pages `changed_told` had changed,
    and `expected_told` would have by their rates alone; the others it had not told of. Of `headers` that said
    when a page changed last (`Last-Modified`), `true_headers` agreed with what we saw. `evidence` is a logarithm:
    how much better forecasts were that heeded its word. Where a page promised to stay as it is for a while
    (`max-age`), so many changes were expected within that, and seen."""

    told: float = 0.0
    changed_told: float = 0.0
    expected_told: float = 0.0
    changed_untold: float = 0.0
    expected_untold: float = 0.0
    headers: int = 0
    true_headers: int = 0
    evidence: float = _FIRST_EVIDENCE
    changed_early: float = 0.0
    expected_early: float = 0.0

    def learn(self, lesson: Lesson) -> None:
        told, changed_told, expected_told, changed_untold, expected_untold, evidence = lesson
        self.told += told
        self.changed_told += changed_told
        self.expected_told += expected_told
        self.changed_untold += changed_untold
        self.expected_untold += expected_untold
        self.evidence = bounded_evidence(self.evidence + evidence)

    def learn_promise(self, changed: float, rate: float, days: float, promised: float) -> None:
        """A page was to stay as it is for `promised` days, and was looked at after `days`."""
        chance: float = 1 - _E ** -(rate * days)
        within: float = 1 - _E ** -(rate * min(promised, days))
        self.changed_early += changed * within / (chance + 1e-9)
        self.expected_early += within

    def learn_header(self, *, agreed: bool) -> None:
        self.headers += 1
        self.true_headers += agreed

    @property
    def believes_headers(self) -> bool:
        return self.headers >= _FEWEST_HEADERS and self.true_headers >= _TRUE_HEADERS * self.headers

    @property
    def precision(self) -> float:
        """The share of told changes that are changes, as far as it is more than chance."""
        return (self.changed_told + _CHANGED_TOLD) / (self.told + _TOLD) * heed(self.evidence)

    @property
    def told_odds(self) -> float:
        odds = min(max(odds_when_told(self.told, self.changed_told, self.expected_told), 1.0), _MOST)
        return heeded(odds, heed(self.evidence))

    @property
    def silent_odds(self) -> float:
        odds = min(max(odds_when_silent(self.changed_untold, self.expected_untold), _LEAST), 1.0)
        return heeded(odds, heed(self.evidence))

    @property
    def promise_odds(self) -> float:
        """By how much a promise to stay as it is multiplies the odds of a change; 1 where it is worth nothing."""
        return min(max((self.changed_early + _STAYS) / (self.expected_early + _STAYS), _LEAST), 1.0)


def lesson(
    told: float, changed: float, rate: float, days: float, listened: float, log: Logarithm = math.log
) -> Lesson:
    """What a visit adds to the fields of a `Trust`. The page was `told` of (1 or 0) and `changed` (1 or 0) within
    `days`; its host was last listened to `listened` days after the visit before (0: not since then). A change
    that may have come later is none that the host kept silent of."""
    chance: float = 1 - _E ** -(rate * days)
    heard: float = 1 - _E ** -(rate * listened)
    silent = 1 - told
    # the logarithm of how much better a forecast was that heeded the host's word
    better: float = log((1 - _UNCHANGED) / (chance + 1e-3) + _UNCHANGED)
    evidence = told * (changed * better + (1 - changed) * math.log(_UNCHANGED))
    return (
        told,
        told * changed,
        told * chance,
        silent * changed * heard / (chance + 1e-9),
        silent * heard,
        evidence,
    )


def heed(evidence: float) -> float:
    """How far a host is worth heeding, from 0 to 1."""
    share: float = 1 / (1 + _E**-evidence)
    return share


def bounded_evidence(evidence: float) -> float:
    return min(max(evidence, -_MOST_EVIDENCE), _MOST_EVIDENCE)


def heeded(odds: float, share: float) -> float:
    """Odds of a word that is heeded so far: 1 where not at all."""
    return 1 + share * (odds - 1)


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
        sooner = days_when_told(target, rate, trust.told_odds)
        return max(sooner, min(told_after, target / rate))
    return days_when_silent(target, rate, trust.silent_odds, listened)


def days_when_promised(target: float, rate: float, trust: Trust, promised: float) -> float:
    """The same for a page that promised to stay as it is for so many days. A promise is silence in advance, and
    none makes a page due later than it ends, or than it would be without it."""
    plain = target / rate
    return min(days_when_silent(target, rate, trust.promise_odds, promised), max(plain, promised))


def agrees(dated: float, seen_before: float, now: float, *, changed: bool) -> bool:
    """Whether a page's own date (`Last-Modified`) agrees with what two visits saw: times in seconds."""
    return seen_before < dated < now - _JUST_NOW if changed else dated <= seen_before


def freshness_when_told(fresh: float, trust: Trust) -> float:
    """The chance that a copy is current whose page was told of as changed; `fresh` is its chance otherwise."""
    return fresh / (fresh + (1 - fresh) * trust.told_odds)


def freshness_when_silent(fresh: float, fresh_when_heard: float, trust: Trust) -> float:
    """The same for a page that was not told of when its host was last listened to, which was when its copy was
    current with the chance `fresh_when_heard`."""
    return fresh / (fresh_when_heard + trust.silent_odds * (1 - fresh_when_heard))
