"""File names for URLs: nothing leaves the folder, nothing collides, whatever strangers call their pages."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skitter.collection.export.names import file_name

HOSTILE = [
    "http://example.org/../../../etc/passwd",
    "http://example.org/%2e%2e/%2e%2e/etc/passwd",
    "http://example.org/..%2f..%2fetc%2fpasswd",
    "http://example.org/a/..\\..\\windows\\system32",
    "http://example.org//etc/passwd",
    "http://../x",
    "http://.../",
    "http://example.org/%00%0a%1b[31m",
    "http://example.org/.htaccess",
    "http://example.org/CON",
    "http://example.org/aux.html",
    "http://example.org/COM1/lpt9.txt",
    "http://example.org/" + "a" * 5000,
    "http://example.org/" + "/".join("abcdefghij" for _ in range(400)),
    "http://" + "h" * 300 + ".org/",
    "http://example.org/?" + "q" * 3000,
    "http://[::1]:8080/x",
    "http://example.org/a?x=../../y",
    "http://example.org/%F0%9F%98%80",
    'http://example.org/a:b*c|d<e>f"g',
    "http://example.org/ trailing. ",
    "",
    "/etc/passwd",
]


@pytest.mark.parametrize("url", HOSTILE)
def test_no_name_leaves_its_folder_or_is_special(url: str) -> None:
    check(file_name(url, ".html"))


@given(st.text(max_size=300))
@example("..")
def test_any_text_gives_a_safe_name(text: str) -> None:
    for url in (text, f"http://{text}", f"http://example.org/{text}"):
        check(file_name(url, ".md"))


def check(name: str) -> None:
    assert re.fullmatch(r"[a-z0-9_.,=@+~()/-]+", name), name
    parts = name.split("/")
    assert all(part and part.strip(". ") == part for part in parts), name
    assert not any(re.fullmatch(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", part) for part in parts)
    assert max(map(len, parts)) <= 110
    assert len(name) <= 1500


@given(
    st.lists(st.sampled_from("aAbB/?.%2f1 _-ä"), max_size=12),
    st.lists(st.sampled_from("aA/?._-ä"), max_size=12),
)
def test_urls_that_differ_have_names_that_differ_also_without_case(one: list[str], other: list[str]) -> None:
    first, second = (f"http://example.org/{''.join(path)}" for path in (one, other))
    names = {file_name(url, ".html").lower() for url in (first, second)}
    assert len(names) == len({first, second})


def test_a_page_and_a_folder_of_the_same_name_do_not_meet() -> None:
    page, below = file_name("http://e.org/a", ".html"), file_name("http://e.org/a/b", ".html")
    assert not below.startswith(f"{page}/")


def test_an_honest_url_stays_readable() -> None:
    assert re.fullmatch(
        r"example.org/docs/guide/intro-[0-9a-f]{12}\.html",
        file_name("http://example.org/docs/guide/intro.html", ".html"),
    )
    assert file_name("http://example.org/", ".html").startswith("example.org/index-")
