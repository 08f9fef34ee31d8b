"""Whether a section has an end, as figures: how it grew, and what depth probes found."""

from __future__ import annotations

import msgspec
import pytest

from skitter.schedule.depth_probes import (
    DEPTH_PROBES,
    account_growth,
    advance_depth_probe,
    count_met_again,
    forget_half,
    has_an_end,
    is_endless,
    is_growing,
    wants_depth_probe,
)
from skitter.schedule.traps import Evidence, Level

DEEP_ENOUGH, DEEP_ENOUGH_AT_LIMIT = 10, 5


def section() -> Evidence:
    return Evidence(name="/s/**", level=Level.SECTION)


def grown(pages: int, *, brought: int = 6, met: int = 0, from_elsewhere: bool = False) -> Evidence:
    seen = section()
    for _ in range(pages):
        account_growth(seen, brought, met, from_elsewhere=from_elsewhere)
    return seen


def go_down(seen: Evidence, depth: int, *, brought: int = 6, ends: bool = False) -> None:
    """One depth probe over so many pages; `ends`: the last page has no link that may be followed."""
    seen.depth_probes[b"0"] = 0
    for step in range(1, depth + 1):
        account_growth(seen, brought, 0)
        below = None if ends and step == depth else b"%d" % step
        advance_depth_probe(seen, b"%d" % (step - 1), brought, below)


def test_growth_alone_does_not_make_a_section_endless() -> None:
    """A tree with an end grows as long as it is walked from its root."""
    seen = grown(1_000)
    assert is_growing(seen)
    assert not is_endless(seen)


def test_growth_does_when_depth_probes_find_no_end() -> None:
    seen = grown(6)
    for _ in range(DEPTH_PROBES):
        assert wants_depth_probe(seen)
        assert not is_endless(seen)
        go_down(seen, DEEP_ENOUGH)
    assert is_endless(seen)
    assert not wants_depth_probe(seen)


def test_one_leaf_ends_all_depth_probes_until_there_are_twice_as_many_pages() -> None:
    seen = grown(6)
    for _ in range(DEPTH_PROBES - 1):
        go_down(seen, DEEP_ENOUGH)
    seen.depth_probes[b"other"] = 3
    seen.depth_probes[b"leaf"] = 4
    account_growth(seen, 0, 0)
    advance_depth_probe(seen, b"leaf", 0, None)
    assert (seen.depth_probes, seen.endless_probes) == ({}, 0)
    before = seen.fetched
    while not wants_depth_probe(seen):
        account_growth(seen, 6, 0)
    assert seen.fetched == 2 * before


@pytest.mark.parametrize(("depth", "counts"), [(DEEP_ENOUGH_AT_LIMIT - 1, 0), (DEEP_ENOUGH_AT_LIMIT, 1)])
def test_a_depth_probe_that_the_depth_limit_cuts_short_tells_little(depth: int, counts: int) -> None:
    seen = grown(6)
    go_down(seen, depth, ends=True)
    assert (seen.depth_probes, seen.endless_probes) == ({}, counts)


@pytest.mark.parametrize("brought", [0, 1])
def test_chains_and_leaves_start_no_depth_probe(brought: int) -> None:
    assert not wants_depth_probe(grown(1_000, brought=brought))


def test_links_to_what_is_known_tell_of_an_end() -> None:
    assert not wants_depth_probe(grown(1_000, met=1))


def test_a_section_that_others_link_into_is_not_endless() -> None:
    seen = grown(40, from_elsewhere=True)
    for _ in range(DEPTH_PROBES):
        go_down(seen, DEEP_ENOUGH)
    assert not is_endless(seen)


def test_what_every_page_links_tells_nothing_though_one_lacks_it() -> None:
    """The page that a door leads to does not link itself: once that made all the others look well linked."""
    seen = section()
    doors = [b"one.", b"two.", b"tre."]
    assert count_met_again(seen, doors[1:]) == 2
    assert count_met_again(seen, doors) == 1
    assert all(count_met_again(seen, doors[:2]) == count_met_again(seen, doors) == 0 for _ in range(100))


def test_what_differs_from_page_to_page_is_met_again() -> None:
    seen = section()
    count_met_again(seen, [b"door"])
    assert all(count_met_again(seen, [b"door", b"%04d" % number]) == 1 for number in range(200))
    assert len(seen.usual) < 256, "it is a bounded memory"


@pytest.mark.parametrize(("brought", "met"), [(0, 0), (4, 1)])
def test_what_has_shown_its_end_is_seldom_looked_at_and_may_become_a_trap(brought: int, met: int) -> None:
    seen = grown(200, brought=brought, met=met)
    assert has_an_end(seen)
    looks = 0
    while not wants_depth_probe(seen):
        if has_an_end(seen):
            forget_half(seen)
        account_growth(seen, 6, 0)
        looks += 1
    assert looks < 300, "without forgetting, twice to twelve times as many"


def test_a_section_that_was_stopped_is_always_looked_at() -> None:
    seen = grown(200, brought=0)
    seen.trap = 1
    assert not has_an_end(seen)


def test_a_pardoned_section_takes_four_times_the_depth_probes() -> None:
    seen = grown(6)
    seen.pardons = 1
    for _ in range(4 * DEPTH_PROBES):
        assert not is_endless(seen)
        go_down(seen, DEEP_ENOUGH)
    assert is_endless(seen)


def test_evidence_from_before_there_were_depth_probes_is_read() -> None:
    row = msgspec.to_builtins(grown(3))[:23]
    seen = msgspec.convert(row, Evidence)
    assert (seen.fetched, seen.grown, seen.depth_probes, seen.endless_probes) == (3, 3, {}, 0)
