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
    assert said == Directives(nofollow=True, noindex=True, text="noindex, noarchive, nofollow")


def test_a_product_of_another_name_has_its_own_directives() -> None:
    assert read_directives(["mybot: nofollow"], product="MyBot").nofollow
    assert not read_directives(["skitter: nofollow"], product="MyBot").nofollow


def test_the_recorded_text_is_bounded() -> None:
    assert len(read_directives(["a" * 100_000, "b" * 100_000]).text) <= 200
