"""How much a host matters by the links of others, and what that adds to the priority of its pages. Pure.

In the manner of OPIC: every page that is read hands out what it is worth, in equal parts, to the hosts that it
links and to its own. A page is worth one vote and its share of what its host was given. No graph is kept, and
nothing is iterated: what was handed out once is handed on when the next page of that host is read.
"""

from __future__ import annotations

from math import log2

# What a host was given counts so much when it is handed on: as the damping of PageRank does.
DAMPING = 0.85
_MOST_WORTH = 1_000.0
# Points of priority for each doubling of what a host was given, above what hosts have on average.
_DOUBLING = 9.0
_LEAST, _MOST = -30, 30
# Signals and weights of operators: from not worth it to worth a lot.
_WORTH = 20.0


def worth_of_page(score: float, answers: int) -> float:
    """What one page of a host hands out."""
    return min(_MOST_WORTH, (1.0 + DAMPING * score) / max(1, answers))


def points(score: float, urls: int, typical: float) -> int:
    """What a host's score adds to the priority of its pages; negative for one that few link. `typical` is the
    mean score of hosts. A large host has its score for many pages: a quarter of the doublings of their number is
    taken off."""
    if typical <= 0:
        return 0
    doublings = log2((score + 0.25 * typical) / typical) - 0.25 * log2(max(1, urls))
    return max(_LEAST, min(_MOST, round(_DOUBLING * doublings)))


def points_by_word(worth: float) -> int:
    """What operators and those downstream say of a host, from -1 to 1."""
    return round(_WORTH * max(-1.0, min(1.0, worth)))


def heard(worth: float, useful: float) -> float:
    """A signal from -1 (of no use) to 1: late ones count most, and one alone does not decide."""
    return worth + 0.3 * (max(-1.0, min(1.0, useful)) - worth)


def budget_by_word(budget: int, worth: float) -> int:
    """Up to four times as many pages of a host that is useful, down to a quarter of one that is not."""
    return max(1, round(budget * 4.0**worth)) if budget and worth else budget
