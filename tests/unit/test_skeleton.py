"""The skeleton of a URL: what one piece of a site's software makes has one."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skitter.urls.canonical import normalise
from skitter.urls.skeleton import (
    CALENDAR,
    DEEP,
    FACETS,
    REPEATING,
    SESSION,
    VARIANT,
    only_difference,
    section,
    skeleton,
    without,
)

H = "http://h.test"


@pytest.mark.parametrize(
    ("path", "fine", "shape"),
    [
        ("/", "/", 0),
        ("/docs/intro.html", "/docs/intro.html", 0),
        ("/shop/item-123", "/shop/item-#", 0),
        ("/2024/05/12/a-tale-of-two-cities", "/{date}/{slug}", CALENDAR),
        ("/calendar/2031-05", "/calendar/{date}", CALENDAR),
        ("/agenda/20310512/", "/agenda/{date}/", CALENDAR),
        ("/events?year=2031&month=5", "/events?month&year", CALENDAR | FACETS),
        ("/list?size=m&colour=red", "/list?colour&size", FACETS),
        ("/list?colour=red&size=l", "/list?colour&size", FACETS),
        ("/p?print=1", "/p?print", VARIANT),
        ("/post?replytocom=17", "/post?replytocom", VARIANT),
        ("/x?sid=77", "/x?sid", SESSION),
        ("/s/0123456789abcdef/page", "/s/{token}/page", SESSION),
        ("/s/0123456789abcdef", "/s/{token}", 0),
        ("/u/550e8400-e29b-41d4-a716-446655440000", "/u/{token}", 0),
        ("/p;jsessionid=AB12/q", "/p;jsessionid/q", SESSION),
        ("/a/b/a/b/a", "/a/b/+", REPEATING | DEEP),
        ("/b/a/b/a/", "/a/b/+", REPEATING),
        ("/help/help/foo", "/help/help/foo", REPEATING),
        ("/decade", "/decade", 0),
    ],
)
def test_values_go_and_names_stay(path: str, fine: str, shape: int) -> None:
    found = skeleton(H + path)
    assert (found.fine, found.shape) == (fine, shape)


def test_a_family_takes_together_what_permutations_scatter() -> None:
    assert skeleton(H + "/list?a=1").coarse == skeleton(H + "/list?b=2&c=3").coarse == "/*?*"
    assert (
        skeleton(H + "/shop/red/large").coarse == skeleton(H + "/shop/large/red/cheap").coarse == "/shop/**"
    )
    assert skeleton(H + "/a/b/a/b/").coarse == skeleton(H + "/x/y/x/y/x").coarse == "/+"


@pytest.mark.parametrize(
    ("url", "start"),
    [("/wiki/Foo/Bar", "/wiki/"), ("/item?id=3", "/item?"), ("/item?at=/x/", "/item?"), ("/about", "/about")],
)
def test_a_section_is_the_first_folder_or_the_script(url: str, start: str) -> None:
    assert section(H + url) == H + start


@pytest.mark.parametrize(
    ("one", "other", "name"),
    [
        ("/a?x=1&y=2", "/a?y=2&x=3", "x"),
        ("/a?x=1", "/a", "x"),
        ("/a", "/a?x=1", "x"),
        ("/a?x=1&y=2", "/a?x=2&y=3", ""),
        ("/a?x=1", "/b?x=2", ""),
        ("/a?x=1", "/ab?x=2", ""),
        ("/a?x=1", "/a?x=1", ""),
    ],
)
def test_two_urls_differ_in_one_parameter_or_not(one: str, other: str, name: str) -> None:
    assert only_difference(H + one, H + other) == name


def test_parameters_are_taken_out_by_name() -> None:
    assert without(H + "/a?x=1&y=2&x=3", ["x"]) == H + "/a?y=2"
    assert without(H + "/a?x=1", ["x"]) == H + "/a"
    assert without(H + "/a?y=1", ["x"]) == H + "/a?y=1"


_hrefs = st.text(alphabet=st.characters(codec="utf-8"), max_size=60) | st.text(
    alphabet="abz019-_./;=&?%#", max_size=60
)


@given(_hrefs, _hrefs)
def test_any_url_has_a_skeleton_that_its_values_do_not_change(path: str, query: str) -> None:
    url = normalise(f"{H}/{path}?{query}")
    assert url is not None
    found = skeleton(url)
    assert len(found.fine) <= 160
    assert found.coarse
    assert section(url).startswith(H + "/")
    assert only_difference(url, url) == ""


# Six digits may be a year and a month.
@given(st.integers(0, 99_999), st.integers(0, 99_999))
@example(2026, 99_999)
def test_numbers_are_all_one(one: int, other: int) -> None:
    assert skeleton(f"{H}/item-{one}x/view").fine == skeleton(f"{H}/item-{other}x/view").fine
