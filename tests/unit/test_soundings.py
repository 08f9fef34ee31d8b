"""Whether a section has an end, as figures: what its pages led to, and what the lines found at the bottom."""

from __future__ import annotations

import msgspec
import pytest

from skitter.schedule.soundings import (
    LINES,
    account_growth,
    forget,
    has_an_end,
    is_endless,
    is_growing,
    lower,
    met_again,
    wants_line,
)
from skitter.schedule.traps import Evidence, Level

FATHOMS, TO_THE_LIMIT = 10, 5


def section() -> Evidence:
    return Evidence(name="/s/**", level=Level.SECTION)


def grown(pages: int, *, brought: int = 6, met: int = 0, from_elsewhere: bool = False) -> Evidence:
    seen = section()
    for _ in range(pages):
        account_growth(seen, brought, met, from_elsewhere=from_elsewhere)
    return seen


def go_down(seen: Evidence, fathoms: int, *, brought: int = 6, ends: bool = False) -> None:
    """One line, of so many pages; `ends` when the last one leads nowhere that may be asked for."""
    seen.lines[b"0"] = 0
    for step in range(1, fathoms + 1):
        account_growth(seen, brought, 0)
        below = None if ends and step == fathoms else b"%d" % step
        lower(seen, b"%d" % (step - 1), brought, below)


def test_growth_alone_does_not_make_a_section_endless() -> None:
    """A tree with an end grows as long as it is walked from its root."""
    seen = grown(1_000)
    assert is_growing(seen)
    assert not is_endless(seen)


def test_growth_without_ground_does() -> None:
    seen = grown(6)
    for _ in range(LINES):
        assert wants_line(seen)
        assert not is_endless(seen)
        go_down(seen, FATHOMS)
    assert is_endless(seen)
    assert not wants_line(seen)


def test_one_leaf_ends_all_lines_until_there_are_twice_as_many_pages() -> None:
    seen = grown(6)
    for _ in range(LINES - 1):
        go_down(seen, FATHOMS)
    seen.lines[b"other"] = 3
    seen.lines[b"leaf"] = 4
    account_growth(seen, 0, 0)
    lower(seen, b"leaf", 0, None)
    assert (seen.lines, seen.bottomless) == ({}, 0)
    before = seen.fetched
    while not wants_line(seen):
        account_growth(seen, 6, 0)
    assert seen.fetched == 2 * before


@pytest.mark.parametrize(("fathoms", "counts"), [(TO_THE_LIMIT - 1, 0), (TO_THE_LIMIT, 1)])
def test_a_line_that_the_limit_of_depth_cuts_short_tells_little(fathoms: int, counts: int) -> None:
    seen = grown(6)
    go_down(seen, fathoms, ends=True)
    assert (seen.lines, seen.bottomless) == ({}, counts)


@pytest.mark.parametrize("brought", [0, 1])
def test_chains_and_leaves_are_not_even_sounded(brought: int) -> None:
    assert not wants_line(grown(1_000, brought=brought))


def test_links_to_what_is_known_tell_of_an_end() -> None:
    assert not wants_line(grown(1_000, met=1))


def test_a_section_that_others_link_into_is_not_endless() -> None:
    seen = grown(40, from_elsewhere=True)
    for _ in range(LINES):
        go_down(seen, FATHOMS)
    assert not is_endless(seen)


def test_what_every_page_links_tells_nothing_though_one_lacks_it() -> None:
    """The page that a door leads to does not link itself: once that made all the others look well linked."""
    seen = section()
    doors = [b"one.", b"two.", b"tre."]
    assert met_again(seen, doors[1:]) == 2
    assert met_again(seen, doors) == 1
    assert all(met_again(seen, doors[:2]) == met_again(seen, doors) == 0 for _ in range(100))


def test_what_differs_from_page_to_page_is_met_again() -> None:
    seen = section()
    met_again(seen, [b"door"])
    assert all(met_again(seen, [b"door", b"%04d" % number]) == 1 for number in range(200))
    assert len(seen.usual) < 256, "it is a bounded memory"


@pytest.mark.parametrize(("brought", "met"), [(0, 0), (4, 1)])
def test_what_has_shown_its_end_is_seldom_looked_at_and_may_become_a_trap(brought: int, met: int) -> None:
    seen = grown(200, brought=brought, met=met)
    assert has_an_end(seen)
    looks = 0
    while not wants_line(seen):
        if has_an_end(seen):
            forget(seen)
        account_growth(seen, 6, 0)
        looks += 1
    assert looks < 300, "without forgetting, twice to twelve times as many"


def test_a_section_that_was_stopped_is_always_looked_at() -> None:
    seen = grown(200, brought=0)
    seen.trap = 1
    assert not has_an_end(seen)


def test_a_pardoned_section_takes_four_times_the_lines() -> None:
    seen = grown(6)
    seen.pardons = 1
    for _ in range(4 * LINES):
        assert not is_endless(seen)
        go_down(seen, FATHOMS)
    assert is_endless(seen)


def test_evidence_from_before_there_were_soundings_is_read() -> None:
    row = msgspec.to_builtins(grown(3))[:23]
    seen = msgspec.convert(row, Evidence)
    assert (seen.fetched, seen.grown, seen.lines, seen.bottomless) == (3, 3, {}, 0)
