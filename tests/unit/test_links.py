"""From the hrefs of a page to the URLs it lets us follow."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.frontier.link_batches import unpack
from skitter.model import Discovered, Host, Link, UrlKey, Via
from skitter.urls import links as links_module
from skitter.urls import links_plain
from skitter.urls.canonical import host_of, join_plain, normalise
from skitter.urls.links import LinkReader, list_targets, select_followed
from tests.keys import KEYS, key_of
from tests.parsed import parsed

PAGE = UrlKey(b"p" * 16)
BASES = st.sampled_from(
    [
        "http://h.org/",
        "http://h.org/a/b",
        "http://h.org/a/c",
        "http://h.org/a/",
        "http://h.org/a/b?x=/y/",
        "http://h.org/a/b/c/d?q",
        "https://h.org/a/b",
        "http://h.org:8080/a/b",
        "http://other.org/a/b",
        "http://h.org/a/b#c/d",
        "https://u:p@h.org/a/b",
        "http://h.org./a/b",
        "http://h.org.:8080/a/b",
        "mailto:x",
        "about:blank",
        "httpx:y",
        "ftp://h",
    ]
)
FIXED = [
    "",
    "#f",
    "?x",
    "?",
    "//h/p",
    "..",
    ".",
    "../../up",
    "/",
    "/root",
    "page",
    "page?q",
    "http:",
    "http:?x",
]
FIXED += [
    "https:rel",
    "http:rel",
    "http://h.org/x",
    "https://h.org",
    "http://",
    "https:// bad",
    "http://h.org:99999/",
    " ?x",
    "\t",
    "\n?y",
    "ht\ntp:?z",
    "\u0001?c",
    "http:\t",
    "mailto:a@b",
    "x:y",
    "\\p",
]
HREFS = st.one_of(
    st.sampled_from(FIXED), st.text(st.sampled_from("htps:/.?#a \t\\@"), max_size=8), st.text(max_size=6)
)


def read(
    reader: LinkReader, base: str, hrefs: Sequence[str], url: str = "http://h.org/self"
) -> list[Discovered]:
    return unpack(reader.discover(PAGE, url, 1, base, [Link(href) for href in hrefs]))


@given(st.lists(st.tuples(BASES, st.lists(HREFS, max_size=6)), max_size=6))
def test_what_is_remembered_never_changes_what_an_href_means(pages: list[tuple[str, list[str]]]) -> None:
    reader, slow = LinkReader(KEYS), without_kernel()
    for base, hrefs in pages:
        resolved = [normalise(href, base) for href in hrefs]
        expected = list(dict.fromkeys(url for url in resolved if url and url != "http://h.org/self"))
        found = read(reader, base, hrefs)
        assert [one.url for one in found] == expected
        assert read(slow, base, hrefs) == found
        assert all((one.key, one.host) == (key_of(one.url), host_of(one.url)) for one in found)


def test_an_empty_href_is_the_page_it_stands_on() -> None:
    reader = LinkReader(KEYS)
    for base in ("http://h.org/a/one", "http://h.org/a/two", "http://h.org/a/one?q"):
        for href in ("", "#f", " ", "http:"):
            assert [one.url for one in read(reader, base, [href])] == [base]


def test_a_base_without_folders_is_no_crash() -> None:
    for base in ("mailto:x", "about:blank", "x:y"):
        assert [one.url for one in read(LinkReader(KEYS), base, ["a", "", "http://h.org/b"])] == [
            "http://h.org/b"
        ]


def test_a_page_does_not_link_to_itself_and_names_each_target_once() -> None:
    found = read(LinkReader(KEYS), "http://h.org/self", ["self", "a", "/a", "a#x", "http://h.org/a", "b"])
    assert [one.url for one in found] == ["http://h.org/a", "http://h.org/b"]


def test_nofollow_links_are_left_out() -> None:
    links = [Link("a", rel="nofollow"), Link("b", rel="noopener nofollow"), Link("c", rel="noopener")]
    found = LinkReader(KEYS).discover(PAGE, "http://h.org/self", 1, "http://h.org/", links)
    assert [one.url for one in unpack(found)] == ["http://h.org/c"]


def test_a_link_is_one_level_below_its_page() -> None:
    (found,) = read(LinkReader(KEYS), "http://h.org/", ["a"])
    assert (found.depth, found.via, found.parent) == (2, Via.LINK, PAGE)


def without_kernel() -> LinkReader:
    """As on a machine where it could not be built."""
    reader = LinkReader(KEYS)
    reader._resolve_plain = None
    return reader


def remembered(reader: LinkReader) -> int:
    return sum(len(known) for known in [*reader._young.values(), *reader._old.values()])


@pytest.mark.parametrize("href", ["p?", "https://far.org/p;"])
@pytest.mark.parametrize("folders", [1, 7, 5_000])
def test_the_memory_holds_two_generations_at_most(folders: int, href: str) -> None:
    reader = LinkReader(KEYS)
    limit = links_module._GENERATION
    for start in range(0, 3 * limit, 100):
        base = f"http://h.org/{start // 100 % folders}/"
        read(reader, base, [f"{href}{number}" for number in range(start, start + 100)])
        assert remembered(reader) <= 2.5 * limit


def test_what_is_in_use_stays_remembered_while_other_folders_pass() -> None:
    reader = LinkReader(KEYS)
    for number in range(links_module._GENERATION):
        read(reader, "http://h.org/in-use/", ["/./home"])
        read(reader, f"http://h.org/{number}/", [f"p?{number}", "?q=1", "//q"])
    assert "/./home" in (reader._young | reader._old)["http://h.org/in-use/"]
    assert "http://h.org/0/" not in reader._young | reader._old


def test_an_href_in_full_is_resolved_once_for_all_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = parsed(monkeypatch)
    reader = LinkReader(KEYS)
    for number in range(5):
        (found,) = read(reader, f"http://h.org/{number}/", ["https://far.org/a/../b?c"])
        assert found.url == "https://far.org/b?c"
    assert asked == ["https://far.org/a/../b?c"]


def test_one_endless_folder_is_forgotten_and_begun_again() -> None:
    reader = LinkReader(KEYS)
    for number in range(2 * links_module._GENERATION):
        read(reader, "http://h.org/", ["/./home", f"p?{number}"])
    assert remembered(reader) <= links_module._GENERATION


def test_a_page_with_as_many_links_as_are_read_is_resolved_once() -> None:
    """The memory of a folder once had no room for them, and each was resolved anew for the next page."""
    reader = LinkReader(KEYS)
    links = [Link(f"//h{number}.org/", "", "", "a") for number in range(10_000)]
    first, again = reader.targets("http://h.org/", links), reader.targets("http://h.org/", links)
    assert all(one is other for (one, _), (other, _) in zip(first, again, strict=True))


SEGMENTS = st.sampled_from(
    ("a", "b.html", ".", "..", "..a", "a..", "", "-", "_x", "~", "%2e", "é", "x:y", "?q", "#f", " ", "\\")
)


@given(
    st.sampled_from(
        (
            "http://h.org/",
            "https://h.org:8443/a/",
            "http://h.org/a/b/",
            "http://[::1]/a//b/",
            "http://u@h/a/",
            "http://h/a#b/",
        )
    ),
    st.lists(SEGMENTS, min_size=1, max_size=6),
)
def test_a_plain_href_is_joined_as_the_url_standard_says(folder: str, segments: list[str]) -> None:
    href = "/".join(segments)
    assert join_plain(folder, href) in (None, normalise(href, folder))


@pytest.mark.parametrize("href", ["a.html", "../b", "../../../c/", "a/b-c/d_e.html"])
def test_hrefs_of_real_pages_are_plain(href: str) -> None:
    assert join_plain("http://h.org/x/y/", href) == normalise(href, "http://h.org/x/y/page")


def target(name: str, key: int = 0) -> tuple[str, UrlKey, Host]:
    return f"http://h.org/{name}", UrlKey(b"h" * 8 + key.to_bytes(8, "little")), Host("http://h.org")


# Different URLs with one key are forms of one page; one URL with different keys does not happen.
TARGETS = st.none() | st.integers(0, 5).map(lambda number: target(str(number), number % 3))
RELS = st.sampled_from(["", "nofollow", "noopener nofollow", "me", "nofollowé"])


@given(st.lists(st.tuples(RELS, TARGETS), max_size=12), st.integers(0, 6))
def test_links_are_followed_and_told_of_as_they_would_be_without_the_kernel(
    given_links: list[tuple[str, tuple[str, UrlKey, Host] | None]], own: int
) -> None:
    links = [Link("x", "", rel) for rel, _ in given_links]
    resolved = [one for _, one in given_links]
    url = target(str(own))[0]
    assert select_followed(url, links, resolved) == links_plain.select_followed(url, links, resolved)
    assert list_targets(links, resolved) == links_plain.list_targets(links, resolved)


def test_as_many_links_as_are_read_are_told_apart() -> None:
    links = [Link("x")] * 10_000
    resolved = [target(str(number % 7_000), number % 7_000 // 2) for number in range(10_000)]
    assert len(list_targets(links, resolved)) == 7_000
    assert select_followed("", links, resolved) == links_plain.select_followed("", links, resolved)


@pytest.mark.skipif(links_module._resolve_plain is None, reason="needs the kernel")
@pytest.mark.parametrize("wrong", [("u", "k", "h"), ("u", b"short", "h"), (1, b"k" * 16, "h"), "x", ()])
def test_what_is_no_target_is_a_fault_and_not_a_crash(wrong: object) -> None:
    with pytest.raises(ValueError, match="a URL, a key and a host"):
        list_targets([Link("x")], [wrong])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="a URL, a key and a host"):
        select_followed("", [Link("x")], [])
