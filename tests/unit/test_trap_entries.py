"""Entries and listings: what tells pages of a catalogue apart, and a listing with an end from one without."""

from __future__ import annotations

import pytest

from skitter.parse.fingerprints.figures import figures
from skitter.schedule.entries import (
    Marks,
    has_own_figures,
    has_own_name,
    has_own_title,
    is_still_growing,
    is_time_to_look,
    with_marks,
)
from skitter.schedule.listings import (
    account_listing,
    entries_ahead,
    follow,
    is_unending,
    leads_higher,
    number_ahead,
)
from skitter.schedule.traps import Evidence, Level


def marks(number: int, text: str = "", *, name: str = "") -> Marks:
    title, letters = f"t{number:03d}".encode(), (name or "same").encode()[:4].ljust(4)
    return Marks(title, letters, figures(text, "http://a.test/", ""))


def noted(*texts: str) -> bytes:
    found = b""
    for number, text in enumerate(texts):
        found = with_marks(found, marks(number, text))
    return found


# -- entries


def test_a_title_and_a_name_are_own_when_none_of_the_last_pages_had_them() -> None:
    before = with_marks(b"", marks(1, name="bolt"))
    assert not has_own_title(marks(1), before)
    assert has_own_title(marks(2), before)
    assert not has_own_name(marks(2, name="bolt"), before)
    assert has_own_name(marks(2, name="rod"), before)


def test_a_tag_is_found_only_where_a_title_lies() -> None:
    before = with_marks(b"", Marks(b"ab12", b"34cd", b""))
    assert has_own_title(Marks(b"1234", b"????", b""), before)


@pytest.mark.parametrize(
    ("text", "is_own"),
    [
        ("M 8 x 40, weight 3, price 4.20, stock 17", True),
        ("M 8 x 40, weight 3, price 9.95, stock 210", True),
        ("M 6 x 30, weight 2, price 4.19, stock 16", False),
        ("no figures at all", False),
        ("only 2 of 3", False),
    ],
)
def test_figures_are_own_when_some_are_on_no_page_alike(text: str, is_own: bool) -> None:
    before = noted("M 6 x 30, weight 2, price 4.19, stock 16")
    assert has_own_figures(marks(9, text), before, has_trap_shape=False) is is_own


def test_figures_that_one_page_in_two_has_are_still_own() -> None:
    """A bus every ten minutes passes every fifth stop at the same minutes."""
    stops = [" ".join(str(start + 10 * step) for step in range(6)) for start in range(0, 10, 2)]
    assert has_own_figures(marks(9, stops[0]), noted(*stops), has_trap_shape=False)
    assert not has_own_figures(marks(9, stops[0]), noted(*[stops[0]] * 5), has_trap_shape=False)


def test_a_clock_is_no_figure_of_a_page_whose_url_has_the_shape_of_a_trap() -> None:
    before = noted("2026-11-18 04:41:15", "2026-11-18 04:41:16", "2026-11-18 04:41:18")
    now = marks(9, "2026-11-18 04:42:07")
    assert has_own_figures(now, before, has_trap_shape=False)
    assert not has_own_figures(now, before, has_trap_shape=True)


def test_marks_of_the_last_eight_pages_are_kept() -> None:
    before = noted(*[f"{number} {number + 1} {number + 2}" for number in range(10, 90, 4)])
    assert len(before) == 8 * 24
    assert not has_own_title(marks(19), before)
    assert has_own_title(marks(11), before)


def test_the_queue_is_looked_at_when_entries_have_doubled() -> None:
    looked = [entries for entries in range(1, 50_000) if is_time_to_look(5000, entries)]
    assert looked == [2500, 5000, 10_000, 20_000, 40_000]
    assert not any(is_time_to_look(0, entries) for entries in range(100))


def test_a_queue_that_grows_is_borne_until_the_start_is_used_up() -> None:
    assert not is_still_growing(5000, 2500, waiting=900, waited_before=0)
    assert is_still_growing(5000, 5000, waiting=901, waited_before=900)
    assert not is_still_growing(5000, 10_000, waiting=900, waited_before=901)


# -- listings


@pytest.mark.parametrize(
    ("url", "other", "numbers"),
    [
        ("/list?page=2", "/list?page=127", (2, 127)),
        ("/c/12/page/3", "/c/12/page/8", (3, 8)),
        ("/c/12/page/3", "/c/13/page/8", None),
        ("/log/?ofs=50", "/log/?ofs=50", None),
        ("/list/a", "/list/b", None),
        ("/list?page=2", f"/list?page={'9' * 40}", None),
    ],
)
def test_the_number_of_a_page_is_the_one_that_differs(
    url: str, other: str, numbers: tuple[int, int] | None
) -> None:
    assert number_ahead(url, other) == numbers


def search(jumps: tuple[int, ...], last: int, *, entries: int = 20, most: int = 400) -> tuple[Evidence, int]:
    """Follow a listing upwards as the crawl would; the pages that were looked at until it was over."""
    seen = Evidence(name="/list?page", level=Level.LISTING)
    page, known = 1, {1}
    for looked_at in range(1, most):
        fresh = [page + jump for jump in jumps if page + jump <= last and page + jump not in known]
        known.update(fresh)
        highest = max(fresh, default=0)
        above = highest.to_bytes(8, "big") if leads_higher(seen, highest) else None
        account_listing(seen, entries, [number - page for number in fresh])
        seen.highest = max(seen.highest, highest)
        follow(seen, page.to_bytes(8, "big"), above, len(fresh))
        if is_unending(seen) or not fresh:
            return seen, looked_at
        page = max(fresh)
    return seen, most


@pytest.mark.parametrize("jumps", [(1, 2, 10, 100), (1, 3, 30), (1, 1000), (2, 10**9)])
def test_a_listing_without_end_is_found_out_after_some_leaps(jumps: tuple[int, ...]) -> None:
    seen, pages = search(jumps, 10**14)
    assert is_unending(seen)
    assert pages < 60
    assert entries_ahead(seen) >= 30_000


@pytest.mark.parametrize("last", [7, 50, 400, 1000, 1200])
@pytest.mark.parametrize("jumps", [(1, 5, 25, 125), (1, 10, 100), (1, 2, 3, 4, 5), (1,)])
def test_a_listing_with_an_end_is_not(jumps: tuple[int, ...], last: int) -> None:
    seen, _ = search(jumps, last, most=2000)
    assert not is_unending(seen)


def test_a_listing_that_leads_to_the_next_page_alone_is_never_called_endless() -> None:
    seen, pages = search((1,), 10**9, most=3000)
    assert pages == 3000
    assert not is_unending(seen)


def test_offsets_count_as_pages() -> None:
    seen = Evidence(name="/log/?ofs", level=Level.LISTING, highest=5000)
    account_listing(seen, 50, [50, 250])
    assert entries_ahead(seen) == 5000
