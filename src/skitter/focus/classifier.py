"""A small classifier of texts: is a page about what the good examples are about?

Weights of words, as naive Bayes has them, learnt from example pages in a second and kept in a file that can be
read. The weights of a text are averaged, so that its length does not matter, and scaled by what the examples
themselves get when each is left out of the learning in its turn. Pure.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

FORMAT = 1
# What is learnt: enough words for any topic, few enough that a model is 50 KB.
_WORDS_KEPT = 3_000
_LONGEST_READ = 200_000
_SMOOTHING = 0.5
# A word that stands in one page alone says more about that page than about its topic.
_FEWEST_PAGES = 2
# Words that make a link promising: the strongest of those that stand in so many of the good examples, and there
# at least seven times as often.
_TELLING, _TELLING_SHARE, _TELLING_WEIGHT = 40, 0.3, 2.0
_WORD = re.compile(r"[^\W\d_]{3,30}")
# The mean good example scores 0.9, and halfway to the mean bad one is 0.5.
_SLOPE = math.log(9)

Counts = Counter[str]


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`weights` are above 0 for words of the topic. `middle` is the mean weight of a text that may be either,
    `scale` how far from there the mean good example is. `telling` are words that make a link promising."""

    format: int = FORMAT
    good: int
    bad: int
    right: int
    """Of the examples, when each was judged by what the others taught."""
    middle: float
    scale: float
    telling: tuple[str, ...]
    weights: dict[str, float]

    def score(self, text: str) -> float:
        """From 0 to 1; 0 for a text without a known word."""
        return _squashed(_mean_weight(_counted(text), self.weights), self.middle, self.scale)


class TooFewExamples(ValueError):
    """What is missing, in words."""


def train(good: Sequence[str], bad: Sequence[str]) -> Model:
    """From the texts of pages about the topic, and of others."""
    if len(good) < _FEWEST_PAGES or len(bad) < _FEWEST_PAGES:
        raise TooFewExamples(f"{len(good)} good and {len(bad)} bad pages: give two of each at least")
    sides = [[*map(_counted, good)], [*map(_counted, bad)]]
    learnt = _Learnt(sides)
    weights = learnt.weights()
    if not weights:
        raise TooFewExamples("no word stands in two of the pages: give longer or more pages")
    means = [[learnt.mean_without(side, page) for page in pages] for side, pages in enumerate(sides)]
    on, off = (sum(side) / len(side) for side in means)
    middle, scale = (on + off) / 2, max((on - off) / 2, 1e-6)
    right = sum(mean > middle for mean in means[0]) + sum(mean <= middle for mean in means[1])
    return Model(
        good=len(good),
        bad=len(bad),
        right=right,
        middle=round(middle, 6),
        scale=round(scale, 6),
        telling=_telling(weights, learnt.pages[0], len(good)),
        weights={word: round(weight, 4) for word, weight in weights.items()},
    )


class _Learnt:
    """How often each word stands in the good and in the bad pages, and in how many pages."""

    def __init__(self, sides: Sequence[Sequence[Counts]]) -> None:
        self.pages = [_summed(Counter(page.keys()) for page in pages) for pages in sides]
        self._counts = [_summed(pages) for pages in sides]
        spread = self.pages[0] + self.pages[1]
        self._words = [word for word, pages in spread.items() if pages >= _FEWEST_PAGES]
        self._totals = [sum(counts.values()) for counts in self._counts]

    def weights(self) -> dict[str, float]:
        """The words that tell most, by their weight and by how often they come."""
        weights = {word: self._weight(word) for word in self._words}
        worth = {
            word: abs(weights[word]) * math.sqrt(self.pages[0][word] + self.pages[1][word])
            for word in weights
        }
        kept = sorted(worth, key=lambda word: (-worth[word], word))[:_WORDS_KEPT]
        return {word: weights[word] for word in kept}

    def mean_without(self, side: int, page: Counts) -> float:
        """The mean weight of an example, by what all others taught."""
        words = {word for word in page if self.pages[0][word] + self.pages[1][word] > _FEWEST_PAGES - 1}
        weights = {word: self._weight(word, side, page) for word in words}
        return _mean_weight(page, weights) or 0.0

    def _weight(self, word: str, side: int = -1, without: Counts | None = None) -> float:
        shares = []
        for number, counts in enumerate(self._counts):
            count, total = counts[word], self._totals[number]
            if number == side and without is not None:
                count, total = count - without[word], total - without.total()
            shares.append((count + _SMOOTHING) / (total + _SMOOTHING * len(self._words) + 1))
        return math.log(shares[0] / shares[1])


def _telling(weights: dict[str, float], pages: Counts, good: int) -> tuple[str, ...]:
    fewest = _TELLING_SHARE * good
    often = [word for word, weight in weights.items() if weight > _TELLING_WEIGHT and pages[word] >= fewest]
    return tuple(sorted(often, key=lambda word: (-weights[word] * pages[word], word))[:_TELLING])


def _counted(text: str) -> Counts:
    """The tenth time a word comes says less than the first: damped by the logarithm when weighed."""
    return Counter(_WORD.findall(text[:_LONGEST_READ].casefold()))


def _summed(counts: Iterable[Counts]) -> Counts:
    total: Counts = Counter()
    for each in counts:
        total.update(each)
    return total


def _mean_weight(page: Counts, weights: dict[str, float]) -> float | None:
    known = [(1 + math.log(count), weights[word]) for word, count in page.items() if word in weights]
    return (
        sum(often * weight for often, weight in known) / sum(often for often, _ in known) if known else None
    )


def _squashed(mean: float | None, middle: float, scale: float) -> float:
    if mean is None:
        return 0.0
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, _SLOPE * (mean - middle) / scale))))
