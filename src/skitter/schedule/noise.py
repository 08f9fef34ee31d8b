"""Changes that are none: pages whose bytes differ at every visit (clocks, counters, advertisements).

Learnt by pattern. The first times that bytes of a pattern differ, the page is asked once more soon after. Where
most of those differ again, the text decides from then on whether a page of the pattern has changed; elsewhere its
bytes do. Asked when a visit is settled. Pure arithmetic, for arrays as well.
"""

from __future__ import annotations

_CHECKS = 3


def needs_check(checked: int) -> bool:
    """Whether a page of a pattern that was checked so often is asked once more when its bytes differ."""
    return checked < _CHECKS


def is_noisy(checked: int, noisy: int) -> bool:
    """Whether the text decides: most of the checks found other bytes again."""
    return (checked >= _CHECKS) & (2 * noisy > checked)
