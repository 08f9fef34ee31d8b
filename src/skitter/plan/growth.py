"""How many URLs a host still has: those that wait, and those that its pages will yet bring.

Pages bring fewer new URLs the more of a host is known. That is taken for an exponential decline, whose speed
follows from two means: of all answers so far, and of the later ones (`smoothed_in`). Pure arithmetic.
"""

from __future__ import annotations

from math import exp, sqrt
from typing import NamedTuple

# Fewer answers of a host say nothing of a trend: such hosts are taken for what the others are like.
FEWEST_ANSWERS = 8
# No host goes on for ever: so many more than are known by now, of each that is known, and at the very most.
_MORE, _MOST_MORE = 0.9, 3.5
_STEPS = 40
_STEEPEST = 60.0


class Band(NamedTuple):
    """What is likely, and between which figures it will be in four of five cases."""

    low: float
    likely: float
    high: float

    def times(self, factor: float) -> Band:
        return Band(self.low * factor, self.likely * factor, self.high * factor)

    def plus(self, other: Band) -> Band:
        return Band(self.low + other.low, self.likely + other.likely, self.high + other.high)

    def at_most(self, most: float) -> Band:
        return Band(min(self.low, most), min(self.likely, most), min(self.high, most))


def smoothed_in(recent: float, answers: int, brought: int) -> float:
    """The mean of what answers brought, in which the last weigh most: the weight of the i-th of n is i."""
    return recent + (brought - recent) * 2.0 / (answers + 1)


def urls_left(queued: float, answers: float, brought: float, recent: float, most: float) -> Band:
    """Of a host with `queued` URLs, whose `answers` brought so many new ones in all; never more than `most`."""
    if not brought or answers < 1 or not queued:
        return Band(queued, queued, queued).at_most(most)
    mean = brought / answers
    known = queued + answers
    usual, longest = min(most, queued + _MORE * known), min(most, queued + _MOST_MORE * known)
    # what single pages bring differs a lot: their number is no better known than its square root says
    doubt = min(0.9, 1.3 / sqrt(answers) + 0.5 / sqrt(brought))
    likely = _left(queued, answers, mean, recent, usual)
    low = _left(queued, answers, mean, recent * (1 - doubt), usual)
    high = _left(queued, answers, mean, min(recent * (1 + doubt), max(mean, recent)), longest)
    return Band(min(low, likely), likely, max(high, likely))


def _left(queued: float, answers: float, mean: float, recent: float, most: float) -> float:
    steepness = _steepness(recent / mean)
    if steepness <= 0.01:
        return min(most, queued / (1 - recent)) if recent < 1 else most
    scale = answers / steepness
    now = mean * steepness / (1 - exp(-steepness)) * exp(-steepness)
    return min(most, _end(queued, now * scale, scale))


def _steepness(ratio: float) -> float:
    """How many times the decline's own length the answers so far are, by the mean of the later ones against the
    mean of all."""
    low, high = 0.0, _STEEPEST
    if ratio >= 1:
        return 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _ratio(middle) > ratio else (low, middle)
    return (low + high) / 2


def _ratio(z: float) -> float:
    if z < 1e-6:
        return 1.0
    return 2 * (1 - exp(-z) * (1 + z)) / (z * (1 - exp(-z)))


def _end(queued: float, to_come: float, scale: float) -> float:
    """Where the queue is empty: left = queued + to_come * (1 - e^(-left / scale)), which has one solution."""
    left = queued
    for _ in range(200):
        further = queued + to_come * (1 - exp(-left / scale))
        if further - left < 0.5:
            return further
        left = further
    return left
