"""For those who analyse and train: pages with their bodies, shards of text, a DuckDB file to attach."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from pyarrow import parquet

import skitter
from skitter.collection.export import datasets
from skitter.console.read.export import run_export
from skitter.errors import UsageError
from tests.archives import Made, add_tables, make_crawl

PAGES = 12


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Made:
    made = make_crawl(tmp_path_factory.mktemp("crawl") / "crawl", PAGES, segment_size=8000)
    add_tables(made)
    return made


def test_pages_come_with_their_bodies_in_the_order_of_their_records(crawl: Made) -> None:
    with skitter.open(crawl.folder) as opened:
        rows = list(opened.pages("kind = 'page' and status = 200"))
        pages = list(opened.pages("kind = 'page' and status = 200", with_body=True))
        assert [page.url for page in pages] == [row.url for row in rows]
        assert len(pages) == PAGES
        for row, page in zip(rows, pages, strict=True):
            assert page.body == opened.body(row.url)
            assert page.html == page.body.decode()
            assert page.select("title")[0].text == page.title == page.first("title")


def test_html_is_decoded_as_a_browser_would() -> None:
    latin = skitter.Page("http://a.test/", "<meta charset=latin1><p>é".encode("latin-1"), headers=[])
    assert latin.html.endswith("<p>é")
    marked = skitter.Page("http://a.test/", "\ufeff<p>é".encode("utf-16-le"), headers=[])
    assert marked.html == "<p>é"


def test_shards_hold_every_page_once_and_begin_anew_at_their_size(
    crawl: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "_TEXT_A_SHARD", 150)
    run_export(crawl.folder, "shards", tmp_path / "set", "", force=False, as_json=True)
    files = sorted((tmp_path / "set" / "data").iterdir())
    assert len(files) > 1
    assert [file.name for file in files] == [
        f"train-{number:05d}-of-{len(files):05d}.parquet" for number in range(len(files))
    ]
    rows = [row for file in files for row in parquet.read_table(file).to_pylist()]
    assert len({row["url"] for row in rows}) == len(rows) == PAGES
    assert all(row["text"] and row["title"] for row in rows)
    assert "data/train-*.parquet" in (tmp_path / "set" / "README.md").read_text()


def test_a_duckdb_file_is_attached_and_asked(crawl: Made, tmp_path: Path) -> None:
    file = tmp_path / "crawl.duckdb"
    run_export(crawl.folder, "duckdb", file, "", force=False, as_json=True)
    with duckdb.connect() as database:
        database.execute(f"attach '{file}' as crawl (read_only)")
        assert database.execute("select count(*) from crawl.pages where kind = 'page'").fetchone() == (PAGES,)
        joined = "select count(*) from crawl.pages join crawl.text using (url, fetch_time)"
        assert database.execute(joined).fetchone() != (0,)
    with pytest.raises(UsageError, match="--where"):
        run_export(crawl.folder, "duckdb", tmp_path / "x", "status = 200", force=False, as_json=True)
