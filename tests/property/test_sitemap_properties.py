"""Whatever bytes a sitemap has, reading them raises nothing, ends, and stays within its limits."""

from __future__ import annotations

import gzip

from hypothesis import given, settings
from hypothesis import strategies as st

from skitter.parse.dates import parse_date, parse_w3c
from skitter.parse.sitemaps.sitemap import LONGEST_URL, Entry, Limits, SitemapReader, pieces_of
from skitter.urls.sitemap_rules import absolute_loc

WHOLE = (
    b'<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    b"<url><loc>http://a.test/x?a=1&amp;b=2</loc><lastmod>2026-01-01</lastmod><priority>0.5</priority></url>"
    b"<url><loc><![CDATA[http://a.test/y]]></loc><news:news><news:publication_date>2026</news:publication_date>"
    b"</news:news></url></urlset>"
)
RSS = (
    b"<rss><channel><item><link>http://a.test/</link><pubDate>Thu, 01 Jan 2026 00:00:00 GMT</pubDate></item>"
    b"<item><guid>http://a.test/g</guid></item></channel></rss>"
)
JSON = b'{"version": "https://jsonfeed.org/version/1", "items": [{"url": "http://a.test/", "id": 1}]}'
STARTS = st.sampled_from(
    [WHOLE, RSS, JSON, b"http://a.test/\nhttp://a.test/2\n", gzip.compress(WHOLE, mtime=0)]
)
PARTS = st.sampled_from(
    [
        b"<",
        b">",
        b"&",
        b"]]>",
        b"<!DOCTYPE",
        b"<url>",
        b"</url>",
        b"<loc>",
        b"\0",
        b"\xff\xfe",
        b"<!--",
        b'"',
        b"{",
    ]
) | st.binary(max_size=8)
LIMITS = Limits(bytes=5_000, entries=3)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    body = bytearray(draw(STARTS))
    for _ in range(draw(st.integers(0, 8))):
        at = draw(st.integers(0, len(body)))
        body[at : at + draw(st.integers(0, 12))] = draw(PARTS)
    return bytes(body)


def read(body: bytes, size: int) -> list[Entry]:
    reader = SitemapReader(LIMITS)
    pieces = [piece[at : at + size] for piece in pieces_of(body, 5_000) for at in range(0, len(piece), size)]
    return [entry for piece in pieces for entry in reader.feed(piece)] + reader.close()


@settings(max_examples=400)
@given(mutated() | st.binary(max_size=300), st.integers(1, 400))
def test_no_bytes_make_reading_raise_or_pass_a_limit(body: bytes, size: int) -> None:
    entries = read(body, size)
    assert len(entries) <= LIMITS.entries
    assert all(0 < len(entry.loc) <= LONGEST_URL for entry in entries)
    assert all(entry.priority is None or 0 <= entry.priority <= 1 for entry in entries)
    for entry in entries:
        absolute_loc(entry.loc, "http://a.test/sitemap.xml")


@given(mutated(), st.integers(1, 50))
def test_where_pieces_are_cut_makes_no_difference(body: bytes, size: int) -> None:
    assert read(body, size) == read(body, 5_000)


@given(st.text(max_size=40))
def test_no_text_makes_a_date_raise(text: str) -> None:
    for found in (parse_w3c(text), parse_date(text)):
        assert found is None or isinstance(found, float)
