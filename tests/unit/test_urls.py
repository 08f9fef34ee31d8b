"""A URL as what is fetched and as what it means."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.urls.canonical import host_id, host_of, normalise, robots_url, target_of
from tests.keys import key_of

HREFS = st.text(
    alphabet=st.sampled_from("htps:/.?#&=%@[]\\;a0Zé中\u0000 \t\n\u00ad\ud800-_~|^`{}'\""), max_size=40
)


def key(url: str) -> bytes:
    normalised = normalise(url)
    assert normalised is not None
    return key_of(normalised)


@pytest.mark.parametrize(
    ("href", "base", "expected"),
    [
        ("HTTP://EXAMPLE.org:80/A/../b", None, "http://example.org/b"),
        ("https://example.org:443", None, "https://example.org/"),
        ("//other.org/p", "https://example.org/", "https://other.org/p"),
        ("?q", "http://example.org/a/b?c", "http://example.org/a/b?q"),
        ("", "http://example.org/a/b?c#d", "http://example.org/a/b?c"),
        ("#top", "http://example.org/a", "http://example.org/a"),
        ("x y#z", "http://example.org/", "http://example.org/x%20y"),
        ("x #z", "http://example.org/", "http://example.org/x%20"),
        ("http://h\t.\norg/", None, "http://h.org/"),
        ("http://bücher.example/", None, "http://xn--bcher-kva.example/"),
        ("http://0x7f.1/", None, "http://127.0.0.1/"),
        ("http://[::FFFF:7f00:1]:8080/", None, "http://[::ffff:7f00:1]:8080/"),
    ],
)
def test_the_fetch_url_is_what_a_browser_would_ask_for(href: str, base: str | None, expected: str) -> None:
    assert normalise(href, base) == expected


@pytest.mark.parametrize(
    "href",
    [
        "mailto:a@b.org",
        "javascript:void(0)",
        "data:text/html,x",
        "ftp://h/",
        "file:///etc/passwd",
        "http://",
        "http://a b/",
        "http://h:99999/",
        "x",
        "",
        "http://\ud800/",
    ],
)
def test_what_is_no_http_url_is_none(href: str) -> None:
    assert normalise(href) is None


@pytest.mark.parametrize("base", ["data:text/html,x", "about:blank", "nonsense", "mailto:a@b.org"])
def test_a_relative_href_on_a_base_that_is_no_web_page_is_none(base: str) -> None:
    assert normalise("page", base) is None


@pytest.mark.parametrize("userinfo", ["user", "user:secret", ":", "a@b:c@d", "user%40"])
def test_credentials_are_never_kept(userinfo: str) -> None:
    assert normalise(f"http://{userinfo}@example.org/@x?@y") == "http://example.org/@x?@y"


@pytest.mark.parametrize(
    ("href", "base", "expected"),
    [
        ("http://site.test./a", None, "http://site.test/a"),
        ("https://site.test.:8443/a./b", None, "https://site.test:8443/a./b"),
        ("http://u:p@site.test./", None, "http://site.test/"),
        ("//site.test\u3002/a", "http://h/", "http://site.test/a"),
        ("b", "http://site.test./a", "http://site.test/b"),
        ("?./:", "http://site.test/a", "http://site.test/a?./:"),
        ("http://127.0.0.1./", None, "http://127.0.0.1/"),
        ("http://site.test../", None, "http://site.test../"),
        ("http://site../", None, "http://site../"),
    ],
)
def test_a_host_is_the_same_with_and_without_the_dot_that_ends_its_name(
    href: str, base: str | None, expected: str
) -> None:
    assert normalise(href, base) == expected


@given(HREFS, st.sampled_from([None, "http://example.org/a/b?c", "https://u:p@h:8443/x/#f", "http://h./x"]))
def test_normalising_twice_changes_nothing(href: str, base: str | None) -> None:
    url = normalise(href, base)
    if url is not None:
        assert normalise(url) == url
        assert url.isascii()
        assert "#" not in url
        assert host_of(url) + target_of(url) == url
        assert target_of(url).startswith("/")


def test_the_parts_of_a_url_are_its_origin_and_its_target() -> None:
    url = "https://example.org:8443/a?b=/c"
    assert (host_of(url), target_of(url)) == ("https://example.org:8443", "/a?b=/c")
    assert robots_url(host_of(url)) == "https://example.org:8443/robots.txt"


@pytest.mark.parametrize(
    "tracked",
    [
        "utm_source=x",
        "UTM_Campaign=1",
        "gclid=abc",
        "fbclid=",
        "PHPSESSID=0123",
        "jsessionid",
        "mc_cid=1",
        "_hsenc=2",
    ],
)
@pytest.mark.parametrize("query", ["?{}", "?{}&id=7", "?id=7&{}", "?id=7&{}&"])
def test_tracking_and_session_parameters_do_not_make_another_page(tracked: str, query: str) -> None:
    plain = "?id=7" if "id=7" in query else ""
    assert key("http://h.org/p" + query.format(tracked)) == key("http://h.org/p" + plain)


def test_the_order_of_parameters_does_not_make_another_page() -> None:
    orders = ("&".join(parts) for parts in permutations(["a=1", "b=2", "b=1", "c"]))
    assert len({key(f"http://h.org/p?{order}") for order in orders}) == 1


@pytest.mark.parametrize("same", ["#f", "?", "?&", "#", "?#x", "?&&"])
def test_fragments_and_empty_queries_do_not_make_another_page(same: str) -> None:
    assert key("http://h.org/p" + same) == key("http://h.org/p")


DIFFERENT = [
    "http://h.org/p",
    "http://h.org/P",
    "http://h.org/p/",
    "http://h.org/p?a=1",
    "http://h.org/p?a=2",
    "http://h.org/p?a=",
    "http://h.org/p?a",
    "http://h.org/p?A=1",
    "http://h.org/p?a=1&a=1",
    "http://h.org/p?a=1&b=2",
    "http://h.org/p?a=1%26b=2",
    "http://h.org/p?b=1&a=2",
    "http://h.org/p?my_utm_source=x",
    "http://h.org/p?id=gclid",
    "http://h.org/p?utm=1",
    "http://h.org/p%2F",
    "http://h.org//p",
    "https://h.org/p",
    "http://www.h.org/p",
    "http://h.org:8080/p",
]


def test_nothing_else_is_folded() -> None:
    assert len({key(url) for url in DIFFERENT}) == len(DIFFERENT)


def test_all_keys_of_a_host_begin_alike_and_those_of_others_do_not() -> None:
    assert key("http://h.org/a")[:8] == key("http://h.org/b?c")[:8] == host_id("http://h.org")
    assert len({key(url)[:8] for url in ("http://h.org/", "https://h.org/", "http://h.org:81/")}) == 3


@given(st.lists(st.tuples(st.text("abutm_", max_size=4), st.text("01%", max_size=2)), max_size=5))
def test_the_key_of_a_query_does_not_depend_on_its_order(pairs: list[tuple[str, str]]) -> None:
    forward = "&".join(f"{name}={value}" for name, value in pairs)
    backward = "&".join(f"{name}={value}" for name, value in reversed(pairs))
    assert key(f"http://h.org/?{forward}") == key(f"http://h.org/?{backward}")
