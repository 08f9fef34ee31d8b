"""Sitemaps and feeds, from request to outcome, through the real fetcher and archive."""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from skitter.frontier.link_batches import size, unpack
from skitter.model import Discovered, Fetched, TaskKind, Via
from skitter.settings import FetchSettings, Settings, SitemapSettings
from skitter.worker.reading.sitemap_files import LINKS_IN_A_BATCH
from tests.integration.test_step import SETTINGS, run
from tests.raw_server import page

SITEMAP, FEED = TaskKind.SITEMAP, TaskKind.FEED
FAR = "http://far.test"


def typed(body: bytes, kind: bytes = b"application/xml", *headers: bytes) -> bytes:
    return page(body, *headers).replace(b"text/html", kind, 1)


def urlset(*urls: str, more: str = "") -> bytes:
    return f"<urlset>{''.join(f'<url><loc>{url}</loc>{more}</url>' for url in urls)}</urlset>".encode()


def index(*urls: str) -> bytes:
    entries = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return f"<sitemapindex>{entries}</sitemapindex>".encode()


def fetched(folder: Path, response: bytes, kind: TaskKind = SITEMAP, **more: Any) -> Fetched:
    ((outcome, _),) = run(folder, response, kind=kind, **more)
    assert isinstance(outcome.result, Fetched)
    return outcome.result


def links(found: Fetched) -> list[Discovered]:
    return unpack(found.link_batches)


def test_what_a_sitemap_names_is_one_link_from_its_host_and_has_its_hints(tmp_path: Path) -> None:
    more = "<lastmod>2020-01-01</lastmod><changefreq>daily</changefreq><priority>1.0</priority>"
    found = fetched(tmp_path, typed(urlset(FAR + "/x", more=more)))
    (link,) = links(found)
    assert (link.url, link.depth, link.via, link.kind) == (FAR + "/x", 1, Via.SITEMAP, TaskKind.PAGE)
    assert (link.lastmod, link.changefreq, link.priority) == (1577836800.0, "daily", 74)
    assert found.title == "sitemap, 1 URLs"


def test_an_index_names_sitemaps_one_level_deeper_and_the_third_is_not_followed(tmp_path: Path) -> None:
    response = typed(index(FAR + "/1.xml", FAR + "/2.xml.gz"))
    told = links(fetched(tmp_path / "a", response, nesting=1))
    assert [(link.kind, link.nesting, link.depth) for link in told] == [(SITEMAP, 2, 0)] * 2
    last = fetched(tmp_path / "b", response, nesting=2)
    assert links(last) == []
    assert "an index within 2 others" in last.note


def test_a_date_in_the_future_is_no_date(tmp_path: Path) -> None:
    year = time.gmtime().tm_year + 2
    (link,) = links(fetched(tmp_path, typed(urlset(FAR + "/", more=f"<lastmod>{year}</lastmod>"))))
    assert link.lastmod is None


def test_paths_are_resolved_repetitions_left_out_and_what_is_no_url_dropped(tmp_path: Path) -> None:
    found = fetched(tmp_path, typed(urlset("/a", FAR + "/b", FAR + "/b#c", "mailto:x@far.test", "http://[")))
    assert [link.url.partition("://")[2].partition("/")[2] for link in links(found)] == ["a", "b"]


@pytest.mark.parametrize("coding", [b"gzip", b"br, gzip", b""])
def test_gzip_of_the_file_and_of_its_transfer_are_both_undone(tmp_path: Path, coding: bytes) -> None:
    body = gzip.compress(urlset(FAR + "/x"), mtime=0)
    headers = (b"Content-Encoding: gzip",) if coding == b"gzip" else ()
    body = gzip.compress(body, mtime=0) if coding == b"gzip" else body
    assert len(links(fetched(tmp_path, typed(body, b"application/octet-stream", *headers)))) == 1


def test_a_sitemap_may_be_longer_than_a_page_and_comes_in_batches(tmp_path: Path) -> None:
    settings = replace(SETTINGS, fetch=replace(SETTINGS.fetch, max_body=10_000))
    urls = [f"{FAR}/{number}" for number in range(2 * LINKS_IN_A_BATCH + 1)]
    found = fetched(tmp_path / "a", typed(urlset(*urls)), settings=settings)
    assert [size(batch) for batch in found.link_batches] == [LINKS_IN_A_BATCH, LINKS_IN_A_BATCH, 1]
    assert not found.truncated
    short = replace(settings, sitemaps=SitemapSettings(max_body=20_000))
    cut = fetched(tmp_path / "b", typed(urlset(*urls)), settings=short)
    assert cut.truncated
    assert 0 < len(links(cut)) < 1000
    assert cut.note == "cut at sitemaps.max_body"


def test_a_seed_that_turns_out_to_be_a_sitemap_is_read_as_one(tmp_path: Path) -> None:
    response = typed(urlset(FAR + "/x"))
    assert [link.via for link in links(fetched(tmp_path / "a", response, TaskKind.PAGE, depth=0))] == [
        Via.SITEMAP
    ]
    assert links(fetched(tmp_path / "b", response, TaskKind.PAGE, depth=1)) == []


def test_news_of_a_feed_are_one_deeper_than_the_page_that_names_it(tmp_path: Path) -> None:
    rss = b"<rss><channel><item><link>/news</link></item></channel></rss>"
    (link,) = links(fetched(tmp_path, typed(rss, b"application/rss+xml"), FEED))
    assert (link.via, link.depth, link.kind) == (Via.FEED, 4, TaskKind.PAGE)


def test_a_page_that_is_no_sitemap_says_so_and_brings_nothing(tmp_path: Path) -> None:
    found = fetched(tmp_path, page(b"<!doctype html><html><a href=/x>x</a></html>"))
    assert links(found) == []
    assert found.note


HEAD = (
    b"<link rel=sitemap href=/map.xml><link rel=alternate type=application/rss+xml href=/feed>"
    b"<link rel=alternate type=application/feed+json href=/feed.json>"
    b"<link rel=alternate type=application/atom+xml href=//far.test/atom>"
    b"<link rel=alternate hreflang=de href=/de><a href=/feed>f</a><a href=/p>p</a>"
)


def told(folder: Path, sitemaps: SitemapSettings, head: bytes = HEAD) -> list[tuple[TaskKind, str]]:
    settings = Settings(fetch=FetchSettings(allow_private=True), sitemaps=sitemaps)
    found = links(fetched(folder, page(head), TaskKind.PAGE, settings=settings))
    return [(link.kind, link.url.partition("://")[2].partition("/")[2]) for link in found]


@pytest.mark.parametrize("before", [b"", b"<svg><a href=/x/></svg><table><a href=y>"])
def test_a_page_names_sitemaps_and_feeds_of_its_own_host(tmp_path: Path, before: bytes) -> None:
    found = told(tmp_path, SitemapSettings(), HEAD + before)
    assert found[:3] == [(SITEMAP, "map.xml"), (FEED, "feed"), (FEED, "feed.json")]
    assert (TaskKind.PAGE, "de") in found
    assert (TaskKind.PAGE, "atom") not in found


def test_without_sitemaps_feeds_are_links_as_others(tmp_path: Path) -> None:
    kinds = {kind for kind, _ in told(tmp_path, SitemapSettings(use="off"))}
    assert kinds == {TaskKind.PAGE}


def test_with_sitemaps_only_no_link_is_followed(tmp_path: Path) -> None:
    assert TaskKind.PAGE not in {kind for kind, _ in told(tmp_path, SitemapSettings(use="only"))}
