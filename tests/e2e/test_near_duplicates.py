"""Pages that resemble each other, from the wire to what the operator sees."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from skitter.parse.fingerprints.fingerprint import simhash
from tests.e2e.command import read_json, said, serving_site, skitter
from tests.raw_server import RawServer

STORY = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(300))
OTHER = " ".join(f"{chr(97 + n % 26)}{chr(97 + n // 26)}thing" for n in range(300))
SITE = {
    "/": b"<a href=/first>1</a>",
    "/first": f"<main><p>{STORY}</p></main><a href=/second>2</a> <a href=/other>o</a>".encode(),
    "/second": f"<nav>Elsewhere</nav><main><p>{STORY}</p><p>16.11.2026, 12:30</p></main>".encode(),
    "/other": f"<main><p>{OTHER}</p></main>".encode(),
}
DOCS = Path(__file__).parents[2] / "docs" / "reading.md"
CONFIG = "[fetch]\nallow_private = true\n[politeness]\ndelay = 0.0\n"


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    with serving_site(SITE) as running:
        yield running


def crawl(folder: Path, server: RawServer, more: str = "") -> Path:
    config = folder / "my.toml"
    config.write_text(CONFIG + more)
    said(skitter("crawl", server.url + "/", "--into", folder / "crawl", "--config", config))
    return folder / "crawl"


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, server: RawServer) -> Path:
    return crawl(tmp_path_factory.mktemp("near"), server)


def test_explain_names_the_page_that_is_resembled_and_the_distance(crawled: Path, server: RawServer) -> None:
    second = said(skitter("explain", server.url + "/second", "--in", crawled))
    assert f"  resembles   {server.url}/first (the same text)" in second
    assert "  resembled   by 1 page\n" in said(skitter("explain", server.url + "/first", "--in", crawled))
    assert "resemble" not in said(skitter("explain", server.url + "/other", "--in", crawled))


def test_stats_count_pages_that_resemble_another(crawled: Path) -> None:
    assert "1 page resembles another one" in said(skitter("stats", crawled))


def test_the_table_of_pages_has_fingerprints(crawled: Path) -> None:
    said_rows = said(skitter("query", crawled, "select url, simhash from pages order by url"))
    assert said_rows.count(str(simhash(STORY))) == 2
    assert str(simhash(OTHER)) in said_rows


def test_the_query_of_the_docs_finds_pages_that_resemble_each_other(crawled: Path, server: RawServer) -> None:
    (query,) = re.findall(r"```sql\n(with block.*?)```", DOCS.read_text(), re.DOTALL)
    found = read_json("query", crawled, query)
    assert found == {"url": server.url + "/second", "resembles": server.url + "/first", "distance": 0}


def test_fingerprints_need_no_table_of_texts(tmp_path: Path, server: RawServer) -> None:
    folder = crawl(tmp_path, server, '[archive]\ntables = ["pages"]\n')
    assert read_json("stats", folder)["near_duplicates"] == 1
    assert not (folder / "archive" / "text").exists()


def test_nothing_is_taken_where_it_is_not_wanted(tmp_path: Path, server: RawServer) -> None:
    folder = crawl(tmp_path, server, "[crawl]\nnear_duplicates = false\n")
    found = read_json("explain", server.url + "/second", "--in", folder)
    assert (found["simhash"], found["resembles"], found["distance"]) == ("", "", None)
