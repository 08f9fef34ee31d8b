"""Which fingerprints are near, and under which halves the index finds them. Pure arithmetic.

When at most three bits differ, one of the two halves of 32 bits has at most one of them. So a near fingerprint
has the same upper or lower half, or that half with one bit flipped: 66 forms to look up.
"""

from __future__ import annotations

from collections.abc import Iterable

NEAR = 3
"""Bits of 64 that may differ: what Manku, Jain and Das Sarma (2007) found right for eight billion pages."""

FORMS = 33
"""Forms of one half: as it is, and with each of its bits flipped."""

_HALF = 32
_LOW = 0xFFFF_FFFF


def swapped(fingerprint: int) -> int:
    """With its halves in each other's place."""
    return (fingerprint & _LOW) << _HALF | fingerprint >> _HALF


def half_of(fingerprint: int, form: int) -> bytes:
    """The upper half, with bit `probe - 1` flipped (0: none)."""
    half = fingerprint >> _HALF
    return (half ^ (1 << form - 1) if form else half).to_bytes(4, "big")


def distance(one: int, other: int) -> int:
    return (one ^ other).bit_count()


def nearest(fingerprint: int, candidates: Iterable[int]) -> int | None:
    """The candidate that differs least, if it is near; of several the smallest, so that order does not matter."""
    found = min(((distance(fingerprint, other), other) for other in candidates), default=None)
    return found[1] if found is not None and found[0] <= NEAR else None
