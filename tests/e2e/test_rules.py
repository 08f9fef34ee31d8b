"""Follow these, keep those, as users see it: what is asked for, what is archived, and what is made of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command import complaint, said, serving_site, skitter
from tests.raw_server import RawServer

QUICK = """
[politeness]
delay = 0.0
[crawl]
linger = 1.0
[traps]
mode = "off"
[fetch]
allow_private = true
resolve = ["shop.test:80:127.0.0.1:{port}", "m.shop.test:80:127.0.0.1:{port}", "b.test:80:127.0.0.1:{port}"]
"""
SITE = {
    "/": b'<html><a href="/list">list</a><a href="http://m.shop.test/about/print">about</a></html>',
    "/list": b'<html><title>List</title><p>secret list</p><a href="/products/1">1</a></html>',
    "/products/1": b'<html><h1>Kettle</h1><p>whistles</p><a href="/deep">deep</a></html>',
    "/about": b"<html><h1>About</h1></html>",
    "/deep": b"<html><h1>Deep</h1></html>",
}


@pytest.fixture
def shop() -> Iterator[RawServer]:
    with serving_site(SITE) as server:
        yield server


def crawl(shop: RawServer, folder: Path, config: str, *seeds: str, code: int = 0) -> str:
    file = folder.with_suffix(".toml")
    file.write_text(QUICK.format(port=shop.port) + config)
    done = skitter("crawl", *seeds, "--into", folder, "--config", file)
    return complaint(done, code) if code else said(done)


def asked(shop: RawServer) -> set[str]:
    return {request.raw.split()[1].decode() for request in shop.requests} - {"/robots.txt"}


def test_links_of_some_pages_are_followed_and_bodies_of_others_are_kept(
    tmp_path: Path, shop: RawServer
) -> None:
    rules = """
[rules]
follow = ["shop.test/list*"]
keep = ["shop.test/products/*"]
rewrite = ['^http://m\\. -> http://', '/print$ -> ']
[extract.title]
match = "shop.test/list*"
fields.title = "title"
"""
    crawl(shop, tmp_path / "c", rules, "http://shop.test/")
    assert asked(shop) == {"/", "/list", "/products/1", "/about"}
    held = said(
        skitter("query", tmp_path / "c", "select url, size, truncated from pages where kind = 'page'")
    )
    assert all(path in held for path in ("shop.test/list", "shop.test/products/1", "shop.test/about"))
    assert said(skitter("show", tmp_path / "c", "http://shop.test/products/1")).startswith("<html><h1>Kettle")
    assert said(skitter("show", tmp_path / "c", "http://shop.test/list")) == ""
    texts = said(skitter("query", tmp_path / "c", "select url from text", "--format", "csv"))
    assert texts.split()[1:] == ["http://shop.test/products/1"]
    items = said(skitter("query", tmp_path / "c", "select title from title", "--format", "csv"))
    assert items.split()[1:] == ["List"]
    assert b"secret list" not in b"".join(file.read_bytes() for file in tmp_path.glob("c/archive/*.cdxj*"))
    said(skitter("verify", tmp_path / "c"))


def test_seeds_of_the_settings_are_crawled_by_their_own_rules(tmp_path: Path, shop: RawServer) -> None:
    seeds = (
        '[seeds."http://shop.test/"]\ndepth = 2\n[seeds."http://b.test/list"]\nscope = "prefix"\nbudget = 2\n'
    )
    crawl(shop, tmp_path / "c", seeds)
    by_host = said(
        skitter("query", tmp_path / "c", "select url from pages where kind = 'page'", "--format", "csv")
    ).split()[1:]
    assert sorted(by_host) == [
        *("http://b.test/list", "http://b.test/products/1"),
        *("http://shop.test/", "http://shop.test/list", "http://shop.test/products/1"),
    ]
    why = said(skitter("explain", "http://shop.test/deep", "--in", tmp_path / "c"))
    assert "the depth of the seed http://shop.test/ is 2" in why
    assert '[seeds."http://b.test/list"]' in (tmp_path / "c" / "crawl.toml").read_text()


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ('[rules]\nfollow = ["/list"]', "has no host: write */list"),
        ('[rules]\nrewrite = ["x"]', "is no rule: write REGEX -> REPLACEMENT"),
        ('[rules]\nsurts = ["/x"]', "is no SURT prefix"),
        ('[seeds."nonsense"]\ndepth = 1', "is not an http or https URL"),
        ('[seeds."http://a.test/"]\nscope = "any"', "scope must be one of host, domain, prefix"),
        ('[seeds."http://a.test/"]\ndeep = 1', "deep"),
    ],
)
def test_a_rule_that_cannot_be_carried_out_stops_the_start(
    tmp_path: Path, shop: RawServer, config: str, words: str
) -> None:
    assert words in crawl(shop, tmp_path / "c", config, "http://shop.test/", code=2)
    assert not (tmp_path / "c").exists()
