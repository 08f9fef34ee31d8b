"""The figures of a text: a small sample of its numbers, by which texts of the same words can be told apart. Pure.

After the reading of a page and before its settling, beside the fingerprint, which leaves numbers out. The numbers
of the page's own URL and title do not count: an endless calendar has its date on every page, and nothing else.
Its cost is linear and bounded, whatever the text.
"""

from __future__ import annotations

import re

# As of the fingerprint: the beginning speaks for what is longer.
MOST_CHARACTERS = 16_384
MARK = 2
"""Bytes of a mark."""
MARKS_KEPT = 8
_MOST_IN_NAME = 32
_NUMBER = re.compile(r"[0-9]+")
_AFTER = 0x9E37_79B9_7F4A_7C15
_ALL = (1 << 64) - 1


def figures(text: str, url: str, title: str) -> bytes:
    """Marks of two bytes, in order: of each number with the two before it, the eight smallest marks. Three at
    once, because two timetables have the same numbers in another order. Numbers of the URL or title break it."""
    named = {*(_numbers(url) + _numbers(title))[:_MOST_IN_NAME]}
    marks: set[int] = set()
    before_last = last = 0
    for number in _numbers(text):
        if number in named:
            before_last = last = 0
            continue
        marks.add(_mixed((before_last * _AFTER + last) * _AFTER + number & _ALL) >> 48)
        before_last, last = last, number
    return b"".join([mark.to_bytes(MARK, "big") for mark in sorted(marks)[:MARKS_KEPT]])


def _numbers(text: str) -> list[int]:
    return [_value(digits) for digits in _NUMBER.findall(text[:MOST_CHARACTERS])]


def _value(digits: str) -> int:
    """Zeros in front say nothing: a title may have 05 where the page has 5."""
    value = 0
    for digit in digits.lstrip("0"):
        value = value * 11 + int(digit) + 1 & _ALL
    return value


def _mixed(word: int) -> int:
    word = (word ^ word >> 30) * 0xBF58_476D_1CE4_E5B9 & _ALL
    word = (word ^ word >> 27) * 0x94D0_49BB_1331_11EB & _ALL
    return word ^ word >> 31
