"""Entries: pages of the same words that are different pages all the same. Pure arithmetic.

Fed and asked when a page is settled that resembles another one of its host. An entry of a catalogue, a timetable
or a log has a title of its own, and figures of its own; or it has a name of its own and leads nowhere further. A
trap may have all of that, but no end: `is_time_to_look` and `schedule/listings.py` look for one.
"""

from __future__ import annotations

from typing import NamedTuple

_TAG, _FIGURES, _MARK = 4, 16, 2
_NOTED = _TAG + _TAG + _FIGURES
_NOTED_KEPT = 8
# A page with figures of its own has so many marks; so many, and one in so many, are not on a page alike. What all
# pages have, such as a telephone number, must not hide the rest.
_ANY, _SHAPED = (3, 2, 4), (6, 3, 3)
_LARGEST = b"\xff\xff"
# A page that brings more new URLs of its host than this leads on: a chain to the next entry is one.
MOST_FROM_A_LEAF = 1


class Marks(NamedTuple):
    """What tells a page from those alike: tags of its title and of the letters of its title, and its figures."""

    title: bytes
    letters: bytes
    figures: bytes


def has_own_title(marks: Marks, noted: bytes) -> bool:
    return all(noted[at : at + _TAG] != marks.title for at in range(0, len(noted), _NOTED))


def has_own_name(marks: Marks, noted: bytes) -> bool:
    """Whether the letters of the title differ too: another number is no other name."""
    return all(noted[at + _TAG : at + 2 * _TAG] != marks.letters for at in range(0, len(noted), _NOTED))


def has_own_figures(marks: Marks, noted: bytes, *, has_trap_shape: bool) -> bool:
    """`has_trap_shape`: the URL looks like those of known traps. Then a clock or a counter is not enough."""
    fewest, fewest_own, one_in = _SHAPED if has_trap_shape else _ANY
    if len(marks.figures) < _MARK * fewest:
        return False
    starts = range(2 * _TAG, len(noted), _NOTED)
    alike = 0
    for at in starts:
        own, compared = _own_figures(marks.figures, noted[at : at + _FIGURES])
        alike += own < fewest_own or one_in * own < compared
    # a bus every ten minutes passes every fifth stop at the same minutes
    return 2 * alike <= len(starts)


def _own_figures(figures: bytes, others: bytes) -> tuple[int, int]:
    """How many marks are of the first page alone, of how many that can be compared. Both are samples, of the
    smallest marks: what is larger than all of a full sample may be on its page as well."""
    theirs = {others[at : at + _MARK] for at in range(0, _FIGURES, _MARK)}
    most = others[-_MARK:] if len(theirs) == _FIGURES // _MARK else _LARGEST
    ours = [mark for at in range(0, len(figures), _MARK) if (mark := figures[at : at + _MARK]) <= most]
    return sum([mark not in theirs for mark in ours]), len(ours)


def with_marks(noted: bytes, marks: Marks) -> bytes:
    """The marks of the last few pages alike, the latest first."""
    padded = marks.figures[:_FIGURES].ljust(_FIGURES, b"\xff")
    return (marks.title + marks.letters + padded + noted)[: _NOTED * _NOTED_KEPT]


# -- a host of which nothing is known but entries


def is_time_to_look(start: int, entries: int) -> bool:
    """Whether the host's queue is compared with what it was before: at half of `start` entries, at `start`, and
    whenever they have doubled. `start` 0 means never."""
    half = start // 2
    if not half or entries < half or entries % half:
        return False
    times = entries // half
    return times & (times - 1) == 0


def is_still_growing(start: int, entries: int, waiting: int, waited_before: int) -> bool:
    """Whether more waits than the last time: the host has shown no end. Listings are fetched before their
    entries, so that what waits only shrinks where there is an end."""
    return entries >= start and waiting > waited_before
