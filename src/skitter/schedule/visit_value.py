"""What a visit to a page is worth, and when it will be worth its price.

The worth of a visit now is the freshness that it buys (the Whittle index of a page with random changes), plus a
tenth of the expected age of what our copy lacks. The second part keeps pages that change faster than anybody can
follow from being given up for ever. Asked when a visit is settled, and once more when it is due. Pure arithmetic;
all but `due_changes` works for arrays as well.
"""

from __future__ import annotations

import math

_E = 2.718281828459045
_AGE = 0.1
_FRESH = 1 - _AGE
_NEWTON_STEPS = 9
# The table's ends: below the first price a square root is exact, above the last a straight line.
_LOWEST, _HIGHEST, _STEPS_PER_E = -16.0, 8.0, 32


def worth(rate: float, expected: float) -> float:
    """Of a visit to a page of weight 1, in days: `expected` changes have come since the last one."""
    still: float = _E**-expected
    return (_FRESH + _AGE * expected - (_FRESH + expected) * still) / rate


def solve_expected_changes(target: float) -> float:
    """How many changes must be expected for `rate * worth` to reach `target`. By Newton's method, which works for
    arrays too; `due_changes` is a table of it."""
    x: float = (2 * target / (1 + _AGE)) ** 0.5
    for _ in range(_NEWTON_STEPS):
        still: float = _E**-x
        gap = target - _FRESH - _AGE * x + (_FRESH + x) * still
        x = x + gap / (_AGE * (1 - still) + x * still + 1e-12)
    return x


_TABLE = [
    math.log(solve_expected_changes(_E ** (step / _STEPS_PER_E)))
    for step in range(int(_LOWEST * _STEPS_PER_E), int(_HIGHEST * _STEPS_PER_E) + 2)
]


def due_changes(target: float) -> float:
    """`solve_expected_changes` in a third of a microsecond, exact to a thousandth."""
    place = (math.log(target) - _LOWEST) * _STEPS_PER_E
    if place < 0:
        return math.sqrt(2 * target / (1 + _AGE))
    step = int(place)
    if step >= len(_TABLE) - 1:
        return (target - _FRESH) / _AGE
    low = _TABLE[step]
    return math.exp(low + (place - step) * (_TABLE[step + 1] - low))


def weight_of(priority: int) -> float:
    """How much a page counts: twice as much for every fifteen points of priority, 1 at the middle."""
    return _WEIGHTS[priority]


_WEIGHTS = [2 ** ((priority - 50) / 15) for priority in range(101)]
