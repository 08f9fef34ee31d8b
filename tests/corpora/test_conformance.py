"""The published scores are those of today."""

from __future__ import annotations

from tests.conformance import PAGE, page


def test_the_page_of_scores_is_current() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.conformance`"
