"""Which fingerprints are near, and under which keys an index finds them. Pure arithmetic.

Two halves of 32 bits, each in three parts. Three bits that differ leave one half with at most one of them, so
two of its three parts agree: whatever is within three bits shares at least one of six keys of 21 or 22 bits. A
store keeps and asks for six short rows a page; ten million pages put about four into each.
"""

from __future__ import annotations

from collections.abc import Iterable

NEAR = 3
"""Bits of 64 that may differ: what Manku, Jain and Das Sarma (2007) found right for eight billion pages."""

_PARTS = (0x7FF, 0x7FF << 11, 0x3FF << 22)
_HALF = sum(_PARTS)
# All but one part of a half, and how far the half lies from the right.
_KEYS = tuple(
    (bytes((half * 3 + left_out + 1,)), (_HALF ^ part) << 32 * half, 32 * half)
    for half in (0, 1)
    for left_out, part in enumerate(_PARTS)
)


def near_keys(fingerprint: int) -> list[bytes]:
    """Six keys of five bytes, each beginning with its number from 1 on."""
    return [number + ((fingerprint & mask) >> shift).to_bytes(4, "big") for number, mask, shift in _KEYS]


def distance(one: int, other: int) -> int:
    return (one ^ other).bit_count()


def nearest(fingerprint: int, candidates: Iterable[int]) -> int | None:
    """The candidate that differs least, if it is near; of several the smallest, so that order does not matter."""
    found = min(((distance(fingerprint, other), other) for other in candidates), default=None)
    return found[1] if found is not None and found[0] <= NEAR else None
