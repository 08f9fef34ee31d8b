from __future__ import annotations

import pytest

from skitter.parse.directives import Directives, read_directives


@pytest.mark.parametrize(
    ("value", "nofollow", "noindex"),
    [
        ("nofollow", True, False),
        ("NoIndex", False, True),
        ("noindex, nofollow", True, True),
        ("NOINDEX,NOFOLLOW", True, True),
        ("noindex nofollow", True, True),
        ("none", True, True),
        ("all", False, False),
        ("index, follow", False, False),
        ("max-image-preview: none", False, False),
        ("max-snippet:-1, nofollow", True, False),
        ("unavailable_after: 25 Jun 2010 15:00:00 PST", False, False),
        ("unavailable_after: Fri, 25-Jun-10 15:00:00 GMT, nofollow", True, False),
        ("skitter: nofollow", True, False),
        ("Skitter/1.0: noindex", False, True),
        ("*: noindex", False, True),
        ("otherbot: nofollow", False, False),
        ("otherbot: noindex, nofollow", False, False),
        ("otherbot: noindex, skitter: nofollow", True, False),
        ("", False, False),
        (",,:,", False, False),
    ],
)
def test_a_header_is_read_for_us(value: str, nofollow: bool, noindex: bool) -> None:
    said = read_directives([value])
    assert (said.nofollow, said.noindex) == (nofollow, noindex)


def test_what_is_said_in_several_places_adds_up() -> None:
    said = read_directives(["otherbot: none", "noindex"], ["noarchive, NOFOLLOW"])
    assert said == Directives(
        nofollow=True, noindex=True, noarchive=True, text="noindex, noarchive, nofollow"
    )


def test_a_product_of_another_name_has_its_own_directives() -> None:
    assert read_directives(["mybot: nofollow"], product="MyBot").nofollow
    assert not read_directives(["skitter: nofollow"], product="MyBot").nofollow


def test_the_recorded_text_is_bounded() -> None:
    assert len(read_directives(["a" * 100_000, "b" * 100_000]).text) <= 200


@pytest.mark.parametrize(
    ("value", "date"),
    [
        ("unavailable_after: 25 Jun 2010 15:00:00 PST", "25 jun 2010 15:00:00 pst"),
        ("unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, noindex", "fri 25 jun 2010 15:00:00 gmt"),
        ("skitter: unavailable_after: Friday, 25-Jun-10 15:00:00 GMT", "friday 25-jun-10 15:00:00 gmt"),
        ("otherbot: unavailable_after: 2030-01-01", ""),
        ("unavailable_after", ""),
        ("noindex", ""),
    ],
)
def test_the_date_after_which_a_page_goes_is_recorded(value: str, date: str) -> None:
    said = read_directives([value])
    assert said.unavailable_after == date
    assert said.noindex is ("noindex" in value)


def test_a_content_signal_header_is_recorded_and_changes_nothing_else() -> None:
    said = read_directives(["noarchive"], signal="search=yes,  ai-train=no")
    assert said.signal == "search=yes, ai-train=no"
    assert said.text == "noarchive, content-signal: search=yes, ai-train=no"
    assert not said.nofollow
    assert read_directives(signal="ai-train=no").text == "content-signal: ai-train=no"
    assert len(read_directives(signal="x" * 100_000).text) <= 200
