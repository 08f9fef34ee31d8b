"""Sitemaps and feeds as the wild has them: formats, charsets, dates and limits."""

from __future__ import annotations

import gzip
import json

import pytest

from skitter.parse.dates import parse_date, parse_w3c
from skitter.parse.sitemaps.sitemap import (
    Entry,
    Format,
    Limits,
    SitemapReader,
    looks_like_sitemap,
    pieces_of,
    within_ratio,
)

NEW_YEAR = 1767225600.0


def read(
    body: bytes | str, limits: Limits | None = None, charset: str = ""
) -> tuple[Format, list[Entry], str]:
    data = body.encode() if isinstance(body, str) else body
    limits = within_ratio(limits or Limits(), data)
    reader = SitemapReader(limits, charset)
    entries = [entry for piece in pieces_of(data, limits.bytes) for entry in reader.feed(piece)]
    entries += reader.close()
    return reader.format, entries, reader.problem


def locs(body: bytes | str, charset: str = "") -> list[str]:
    return [entry.loc for entry in read(body, charset=charset)[1]]


def urlset(inner: str, head: str = "") -> str:
    return f'{head}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{inner}</urlset>'


def url(loc: str, more: str = "") -> str:
    return f"<url><loc>{loc}</loc>{more}</url>"


def test_an_entry_has_its_date_frequency_and_priority() -> None:
    more = "<lastmod>2026-01-01</lastmod><changefreq>Daily</changefreq><priority>0.9</priority>"
    assert read(urlset(url("http://a.test/x", more)))[1] == [Entry("http://a.test/x", NEW_YEAR, "daily", 0.9)]


def test_what_is_no_frequency_or_priority_is_left_out() -> None:
    more = "<changefreq>sometimes</changefreq><priority>11</priority><lastmod>yesterday</lastmod>"
    assert read(urlset(url("http://a.test/x", more)))[1] == [Entry("http://a.test/x")]


def test_pictures_and_videos_are_no_pages_but_other_languages_are() -> None:
    inner = url(
        "http://a.test/x",
        '<xhtml:link rel="alternate" hreflang="de" href="http://a.test/de"/>'
        "<image:image><image:loc>http://a.test/i.png</image:loc></image:image>"
        '<image xmlns="urn:i"><loc>http://a.test/j.png</loc></image>'
        "<video:video><video:player_loc>http://a.test/v</video:player_loc></video:video>",
    )
    found = read(urlset(inner))[1]
    assert [(entry.loc, entry.is_alternate) for entry in found] == [
        ("http://a.test/x", False),
        ("http://a.test/de", True),
    ]


def test_news_have_a_date_of_their_own() -> None:
    inner = url("http://a.test/x", "<n:news><n:publication_date>2026-01-01</n:publication_date></n:news>")
    (entry,) = read(urlset(inner))[1]
    assert (entry.lastmod, entry.published) == (None, NEW_YEAR)


def test_wrong_missing_and_prefixed_namespaces_are_read() -> None:
    bare = f"<urlset>{url('http://a.test/x')}</urlset>"
    prefixed = '<s:urlset xmlns:s="urn:x"><s:url><s:loc>http://a.test/x</s:loc></s:url></s:urlset>'
    assert locs(bare) == locs(prefixed) == ["http://a.test/x"]
    assert "namespace" in read(bare, Limits(strict_namespace=True))[2]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "windows-1251", "shift_jis", "gb18030"])
def test_any_charset_of_the_web_is_read(encoding: str) -> None:
    label = "utf-16" if encoding.startswith("utf-16") else encoding
    text = urlset(url("http://a.test/д"), f'<?xml version="1.0" encoding="{label}"?>')
    assert locs(text.encode(encoding)) == ["http://a.test/д"]


def test_the_header_s_charset_counts_and_broken_bytes_cost_one_url_not_the_file() -> None:
    assert locs(urlset(url("http://a.test/é")).encode("latin-1"), "iso-8859-1") == ["http://a.test/é"]
    broken = urlset(url("http://a.test/\udcff") + url("http://a.test/y")).encode("utf-8", "surrogateescape")
    assert locs(broken)[1] == "http://a.test/y"


def test_gzip_is_told_by_its_bytes_even_twice_and_in_members() -> None:
    whole = urlset(url("http://a.test/x") + url("http://a.test/y")).encode()
    once = gzip.compress(whole[:90]) + gzip.compress(whole[90:])
    assert locs(once) == locs(gzip.compress(once)) == ["http://a.test/x", "http://a.test/y"]


def test_what_came_before_a_cut_counts() -> None:
    whole = urlset(url("http://a.test/x") + url("http://a.test/y"))
    kind, entries, problem = read(whole[:-40])
    assert (kind, entries[0].loc) == (Format.SITEMAP, "http://a.test/x")
    assert "broken XML" in problem
    noise = "".join(url(f"http://a.test/{hash(str(n))}") for n in range(9000))
    assert len(locs(gzip.compress(urlset(noise).encode())[:-9000])) > 100


def test_text_has_a_url_a_line() -> None:
    assert locs("\ufeffhttp://a.test/x\r\n\r\nhttps://a.test/y\rwww.a.test/z\nnot a url\n") == [
        "http://a.test/x",
        "https://a.test/y",
        "www.a.test/z",
    ]
    assert "no sitemap" in read("What is this?\nNothing.")[2]
    assert "empty" in read("")[2]


def test_rss_atom_and_json_feeds_are_read() -> None:
    atom = (
        '<feed xmlns="http://www.w3.org/2005/Atom"><link href="http://a.test/"/><entry>'
        '<link rel="edit" href="/e"/><link href="/x"/><updated>2026-01-01T01:00:00+01:00</updated></entry></feed>'
    )
    rss = (
        '<rss version="2.0"><channel><link>http://a.test/</link><item><atom:link href="/no"/><link>/x</link>'
        "<pubDate>Thu, 01 Jan 2026 00:00:00 GMT</pubDate></item></channel></rss>"
    )
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "items": [{"url": "/x", "date_modified": "2026-01-01"}, {"id": 7}],
    }
    for body in (atom, rss, json.dumps(feed)):
        assert read(body)[1] == [Entry("/x", NEW_YEAR)], body
    assert "no JSON Feed" in read('{"a": 1}')[2]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("<!DOCTYPE urlset [<!ENTITY a 'b'>]><urlset/>", "document type"),
        ("<html><body/></html>", "an HTML page"),
        ("<svg/>", "another kind"),
        (urlset("<a>" * 100), "nested more than"),
        (urlset("<url a='" + "x" * 2_000_000 + "'/>"), "more than 1,000,000 bytes"),
        (urlset("<!--" + "x" * 2_000_000 + "-->"), "more than 1,000,000 bytes"),
    ],
)
def test_what_is_no_sitemap_or_an_attack_says_so(body: str, words: str) -> None:
    _, entries, problem = read(body)
    assert entries == []
    assert words in problem


def test_a_file_is_read_to_its_limits_and_no_further() -> None:
    many = urlset("".join(url(f"http://a.test/{n}") for n in range(20)))
    _, entries, problem = read(many, Limits(entries=7))
    assert (len(entries), "more than 7" in problem) == (7, True)
    _, entries, problem = read(many, Limits(bytes=400))
    assert 0 < len(entries) < 20
    assert "longer than 400" in problem
    bomb = gzip.compress(urlset(url("http://a.test/x") + " " * 100_000_000).encode())
    _, entries, problem = read(bomb)
    assert (len(entries), "longer than" in problem) == (1, True)


def test_a_url_longer_than_the_standard_allows_is_left_out() -> None:
    assert locs(urlset(url("http://a.test/" + "x" * 3000) + url("http://a.test/y"))) == ["http://a.test/y"]


@pytest.mark.parametrize(
    "text",
    [
        "2026",
        "2026-01",
        "2026-01-01",
        "2026-1-1",
        "2026-01-01T00:00Z",
        "2026-01-01T00:00:00",
        "2026-01-01 00:00:00",
        "2026-01-01T01:00:00+01:00",
        "2026-01-01T01:00:00.000+0100",
        "2025-12-31T19:00-05:00",
        "2026-01-01t00:00:00z",
    ],
)
def test_all_w3c_forms_of_a_date_are_read(text: str) -> None:
    assert parse_w3c(text) == NEW_YEAR


@pytest.mark.parametrize(
    "text", ["", "now", "20", "2026-13-01", "2026-01-01T99:00Z", "x" * 10_000, "0000-00-00"]
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert parse_w3c(text) is None
    assert parse_date(text) is None


def test_only_the_root_element_makes_a_sitemap_of_a_seed() -> None:
    assert looks_like_sitemap(b"<?xml version='1.0'?>\n<!-- x -->\n<urlset xmlns='x'>")
    assert looks_like_sitemap(b"\xef\xbb\xbf<sitemapindex>")
    assert not looks_like_sitemap(b"<html><body><urlset>")
    assert not looks_like_sitemap(b"urlset")
