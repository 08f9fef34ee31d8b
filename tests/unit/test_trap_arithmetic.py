"""When a kind of page is a trap, as figures: how much it takes, and what never is enough."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.frontier.engine.traps.novelty import _NO_LETTERS, _letters
from skitter.schedule.budgets import allowance, is_spent
from skitter.schedule.traps import (
    Evidence,
    Level,
    PageNovelty,
    account,
    count_pair,
    credit,
    has_no_effect,
    has_tag,
    is_contradicted,
    is_to_be_checked,
    is_to_be_stopped,
    most_at_once,
    with_tag,
)


def fresh(level: Level = Level.SKELETON, *, shaped: int = 0) -> Evidence:
    return Evidence(name="/x/#", level=level, shaped=shaped)


def until_enough(seen: Evidence, novelty: PageNovelty, most: int = 500) -> int:
    for number in range(1, most + 1):
        account(seen, novelty, size=1, depth=1)
        if is_to_be_stopped(seen):
            return number
    return 0


@pytest.mark.parametrize(
    ("novelty", "plain", "shaped"),
    [
        (PageNovelty.COPY, 8, 4),
        (PageNovelty.SAME, 12, 6),
        (PageNovelty.NEAR, 16, 8),
        (PageNovelty.BARE, 24, 12),
        (PageNovelty.NOVEL, 0, 0),
    ],
)
def test_the_surer_the_likeness_the_fewer_it_takes(novelty: PageNovelty, plain: int, shaped: int) -> None:
    assert until_enough(fresh(), novelty) == plain
    assert until_enough(fresh(shaped=1), novelty) == shaped


def test_one_novel_page_begins_the_count_again() -> None:
    seen = fresh()
    for _ in range(7):
        account(seen, PageNovelty.COPY, size=1, depth=1)
    account(seen, PageNovelty.NOVEL, size=1, depth=1)
    assert (seen.run, seen.points) == (0, 0)
    assert not is_to_be_stopped(seen)


def test_where_novelty_was_rare_a_longer_run_is_nothing_unusual() -> None:
    seen = fresh()
    for _ in range(20):
        for _ in range(9):
            account(seen, PageNovelty.NEAR, size=1, depth=1)
        account(seen, PageNovelty.NOVEL, size=1, depth=1)
    assert until_enough(seen, PageNovelty.NEAR) > 60


@pytest.mark.parametrize("share", [0.2, 0.3, 0.5])
def test_a_large_site_with_some_novelty_is_hardly_ever_stopped(share: float) -> None:
    """Ten thousand pages of which a fifth, a third or a half is new, twenty times over."""
    chance = random.Random(7)
    stopped = 0
    for _ in range(20):
        seen = fresh()
        for _ in range(10_000):
            account(seen, PageNovelty.NOVEL if chance.random() < share else PageNovelty.NEAR, size=1, depth=1)
            if is_to_be_stopped(seen):
                stopped += 1
                break
    assert stopped <= 2


def test_a_family_is_judged_by_several_of_its_skeletons() -> None:
    seen = fresh(Level.FAMILY)
    assert until_enough(seen, PageNovelty.COPY) == 0
    for tag in (b"aaaa", b"bbbb", b"cccc", b"aaaa"):
        seen.scatter(tag, PageNovelty.COPY)
    assert not is_to_be_stopped(seen)
    seen.scatter(b"dddd", PageNovelty.COPY)
    assert is_to_be_stopped(seen)
    seen.scatter(b"dddd", PageNovelty.NOVEL)
    assert not is_to_be_stopped(seen)


def test_a_pardoned_subject_takes_four_times_as_much() -> None:
    seen = fresh()
    seen.pardons = 1
    assert until_enough(seen, PageNovelty.COPY) == 32


def test_an_exempt_subject_is_never_stopped() -> None:
    seen = fresh()
    seen.exempt = True
    assert until_enough(seen, PageNovelty.COPY) == 0


def test_two_novel_pages_contradict_a_verdict() -> None:
    seen = fresh()
    seen.trap = 1
    credit(seen)
    assert not is_contradicted(seen)
    credit(seen)
    assert is_contradicted(seen)


def test_samples_are_let_through_ever_more_seldom() -> None:
    seen = fresh()
    let = []
    for _ in range(20_000):
        if is_to_be_checked(seen):
            let.append(seen.refused + seen.passed)
            seen.passed += 1
        else:
            seen.refused += 1
    assert let == [64, 256, 1024, 4096, 16384]


def test_the_more_suspicious_the_fewer_at_once() -> None:
    seen = fresh()
    before = most_at_once(seen)
    account(seen, PageNovelty.COPY, size=1, depth=1)
    assert before == 8
    assert most_at_once(seen) == 7
    seen.points = 10_000
    assert most_at_once(seen) == 1


def test_marks_are_the_last_different_ones() -> None:
    tags = b""
    for number in range(20):
        tags = with_tag(tags, bytes([number]) * 4)
    assert has_tag(tags, b"\x13" * 4)
    assert not has_tag(tags, b"\x00" * 4)
    assert with_tag(tags, b"\x13" * 4) == tags
    assert not has_tag(b"\1\2\2\2\2\3\3\3", b"\2\2\2\2"), "only whole marks count"


# -- parameters


def test_a_parameter_is_idle_after_four_copies_or_eight_pages_of_the_same_words() -> None:
    for weight, pairs in ((2, 4), (1, 8)):
        seen = fresh(Level.PARAMETER)
        for _ in range(pairs):
            assert not has_no_effect(seen)
            count_pair(seen, weight, alike=True)
        assert has_no_effect(seen)


def test_a_parameter_that_ever_mattered_takes_twenty_times_as_much() -> None:
    seen = fresh(Level.PARAMETER)
    count_pair(seen, 1, alike=False)
    for _ in range(19):
        count_pair(seen, 1, alike=True)
        assert not has_no_effect(seen)
    count_pair(seen, 1, alike=True)
    assert has_no_effect(seen)


# -- budgets


def test_what_is_new_earns_more_than_it_spends() -> None:
    assert allowance(100, 0) == 100
    assert is_spent(100, 100, 0)
    assert not any(is_spent(100, pages, pages // 8 + 1) for pages in range(0, 100_000, 50))
    assert not is_spent(0, 10**9, 0), "0 means no limit"


@given(st.text(max_size=30) | st.text(alphabet="aZ 0_-.\x00\x7f", max_size=30))
def test_the_letters_of_a_title_are_the_same_by_the_table_and_by_the_pattern(title: str) -> None:
    assert _letters(title) == _NO_LETTERS.sub(" ", title).encode("utf-8", "replace")
