"""The Link header, where a page that is no HTML names its canonical URL."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.parse.link_header import canonical_in, files_in
from skitter.parse.page import read_page


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('<http://h.org/a>; rel="canonical"', "http://h.org/a"),
        ("</a>;rel=canonical", "/a"),
        ("< /a >; REL = Canonical", "/a"),
        ('</s.css>; rel=preload; as=style, </a,b;c>; rel="next canonical"', "/a,b;c"),
        ('</x>; title="a, <b>; rel=canonical"; rel=next, </y>; rel=canonical', "/y"),
        ("</a>; rel=shortlink", ""),
        ('</a>; rel=canonical; anchor="/other"', ""),
        ("</a>; rel=canonicals", ""),
        ("/a; rel=canonical", ""),
        ('</a>; rel="canonical', ""),
        ("", ""),
    ],
)
def test_the_canonical_url_is_found(header: str, expected: str) -> None:
    assert canonical_in(header) == expected


@given(st.text(alphabet='<>";=, relcanoi/', max_size=60))
def test_no_header_is_too_much(header: str) -> None:
    assert isinstance(canonical_in(header), str)


@pytest.mark.parametrize("piece", ['<a>;"', "<", '<a>; rel="', "; rel=", '"'])
def test_a_hostile_header_takes_no_time(piece: str) -> None:
    assert canonical_in(piece * 100_000) == ""


def test_what_the_document_says_goes_before_what_its_header_says() -> None:
    header = '</b>; rel="canonical"'
    html = b"<link rel=canonical href=/a>"
    pages = [
        read_page(body, url="http://h.org/d/p", content_type=kind, link_header=header)
        for body, kind in ((html, "text/html"), (b"<p>", "text/html"), (b"%PDF-", "application/pdf"))
    ]
    assert [page.canonical for page in pages] == ["http://h.org/a", "http://h.org/b", "http://h.org/b"]


def test_a_header_that_means_nothing_is_none() -> None:
    page = read_page(
        b"x", url="http://h.org/", content_type="text/plain", link_header="<http://[/>; rel=canonical"
    )
    assert page.canonical == ""


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('</s.xml>; rel="sitemap"', (("/s.xml",), ())),
        ('</f>; rel=alternate; type="application/rss+xml"', ((), ("/f",))),
        (
            '</f>; rel="alternate"; type="application/atom+xml;type=feed", </m>; rel=sitemap',
            (("/m",), ("/f",)),
        ),
        ('</de>; rel=alternate; hreflang="de"', ((), ())),
        ('</f>; rel=alternate; type="text/html"', ((), ())),
        ('</s.xml>; rel="sitemap"; anchor="/other"', ((), ())),
        ("", ((), ())),
    ],
)
def test_sitemaps_and_feeds_are_found(header: str, expected: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
    assert files_in(header) == expected


def test_what_a_header_names_counts_beside_what_the_page_names() -> None:
    body = b"<link rel=alternate type=application/atom+xml href=/own.xml><p>words"
    header = '</feed.xml>; rel=alternate; type="application/rss+xml", <map.xml>; rel=sitemap'
    asked = {"url": "http://h.org/a/b", "content_type": "text/html", "link_header": header}
    page = read_page(body, **asked, with_sitemaps=True, with_feeds=True)  # type: ignore[arg-type]
    assert page.feeds == ("/own.xml", "http://h.org/feed.xml")
    assert page.sitemaps == ("http://h.org/a/map.xml",)
    without = read_page(body, **asked)  # type: ignore[arg-type]
    assert (without.feeds, without.sitemaps) == ((), ())
