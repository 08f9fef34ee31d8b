"""The figures of a text: the same by the kernel and by its definition, apart for other numbers, bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.parse.fingerprints import figures_plain
from skitter.parse.fingerprints.figures import figures
from skitter.parse.fingerprints.figures_plain import MARK, MARKS_KEPT, MOST_CHARACTERS

URL = "https://a.test/line/5/stop/7"


TITLE = "Departures: line 5, stop 7"


@given(
    st.text("0019 :.a/é港😀", max_size=400), st.text("0123/-é", max_size=90), st.text("0123/-é", max_size=90)
)
def test_they_are_what_their_definition_says(text: str, url: str, title: str) -> None:
    assert figures(text, url, title) == figures_plain.figures(text, url, title)


@given(st.lists(st.integers(0, 10**30), max_size=80), st.integers(0, 200))
def test_they_are_what_their_definition_says_of_long_numbers(numbers: list[int], before: int) -> None:
    text = "x" * before + " ".join(map(str, numbers))
    assert figures(text, URL, TITLE) == figures_plain.figures(text, URL, TITLE)
    assert len(figures(text, URL, TITLE)) <= MARK * MARKS_KEPT


def test_two_timetables_of_the_same_numbers_have_other_figures() -> None:
    one, other = figures("10 27 44 06 01 18", URL, TITLE), figures("10 18 01 44 06 27", URL, TITLE)
    assert one != other


@pytest.mark.parametrize("text", ["Line 5, stop 7", "Line 05, stop 007", "no number at all", ""])
def test_numbers_of_the_url_and_of_the_title_are_no_figures(text: str) -> None:
    assert figures(text, URL, "") == figures(text, "", TITLE) == b""


def test_months_of_a_calendar_have_the_same_figures_or_less() -> None:
    days = " ".join(map(str, range(1, 31)))
    may, june = (figures_plain.figures(days, f"http://a.test/2026/{month:02d}/", "") for month in (5, 6))
    marks = [{found[at : at + MARK] for at in range(0, len(found), MARK)} for found in (may, june)]
    assert len(marks[0] - marks[1]) < 2


@pytest.mark.parametrize("character", ["a", "é", "港", "😀"])
def test_what_is_beyond_the_limit_does_not_count(character: str) -> None:
    text = character * MOST_CHARACTERS
    assert figures(text + " 12 13 14", URL, TITLE) == b""
    assert figures(text[:-3] + "123" + "456", URL, TITLE) == figures(text[:-3] + "123", URL, TITLE)


def test_a_text_that_is_none_is_refused_by_the_kernel() -> None:
    kernels = pytest.importorskip("skitter.native._kernels")
    with pytest.raises(TypeError, match="a text is a str"):
        kernels.figures(b"12", URL, TITLE)
    with pytest.raises(TypeError, match="takes a text, a URL and a title"):
        kernels.figures("12")
