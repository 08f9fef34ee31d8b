"""What is in the archive is found: by URL, by condition, by SQL, also while it grows."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow
import pytest

import skitter
from skitter.archive.schema import TABLES
from skitter.archive.warc.surt import surt
from skitter.collection.captures import captures_of
from skitter.collection.collection import Collection
from skitter.collection.layout import read_layout
from skitter.collection.source import FolderSource
from skitter.collection.tables import select_only, sql_type
from skitter.errors import ArchiveFailed, NotACrawl, UsageError
from tests.archives import Made, add_tables, make_crawl, page_body
from tests.exchanges import SENT_AT, exchange

PAGES = 40


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_crawl(tmp_path_factory.mktemp("crawl") / "crawl", PAGES, segment_size=20_000)


@pytest.fixture(scope="module")
def tabled(tmp_path_factory: pytest.TempPathFactory) -> Made:
    made = make_crawl(tmp_path_factory.mktemp("tabled") / "crawl", PAGES)
    add_tables(made)
    return made


def url(number: int) -> str:
    return f"http://h{number % 3}.example.org/p/{number}"


def test_every_page_is_found_and_has_its_body(crawl: Made) -> None:
    with skitter.open(crawl.folder) as collection:
        assert len(collection.layout.segments) > 1
        for number in range(PAGES - 1):
            assert collection.body(url(number)) == page_body(number)


def test_a_revisit_shows_its_original(crawl: Made) -> None:
    with skitter.open(crawl.folder) as collection:
        revisit = collection.record(collection.capture(url(PAGES - 1)).at)
        assert revisit.kind == "revisit"
        assert collection.body(url(PAGES - 1)) == page_body(0)
        assert collection.text(url(PAGES - 1)) == collection.text(url(0))


def test_a_revisit_whose_original_was_moved_away_says_so(tmp_path: Path) -> None:
    made = make_crawl(tmp_path / "crawl", PAGES, segment_size=20_000)
    first = min(made.archive.glob("*.warc.gz"))
    first.unlink()
    first.with_name(first.name.replace(".warc.gz", ".cdxj")).unlink()
    with skitter.open(made.folder) as collection, pytest.raises(ArchiveFailed, match="put back the segment"):
        collection.body(url(PAGES - 1))


def test_a_url_that_was_not_archived_says_how_to_find_out(crawl: Made) -> None:
    with skitter.open(crawl.folder) as collection:
        with pytest.raises(UsageError, match=r"skitter explain http://h0\.example\.org/nowhere --in"):
            collection.body("http://h0.example.org/nowhere")
        with pytest.raises(UsageError, match="not an http or https URL"):
            collection.body("mailto:somebody")


def test_a_folder_without_an_archive_is_no_crawl(tmp_path: Path) -> None:
    with pytest.raises(NotACrawl, match="has no archive"):
        skitter.open(tmp_path)


@pytest.mark.parametrize("lines", [0, 1, 2, 1000])
def test_bisection_finds_what_a_scan_finds(lines: int, tmp_path: Path) -> None:
    urls = [f"http://example.org/{'x' * (n * 37 % 900)}/{n}" for n in range(lines)]
    text = sorted(
        f'{surt(each)} 2026010{1 + copy}000000 {{"url": "{each}", "mime": "text/html", "status": "200", '
        f'"digest": "d", "length": "5", "offset": "{n}", "filename": "a.warc.gz"}}\n'
        for n, each in enumerate(urls)
        for copy in range(3)
    )
    (tmp_path / "a.cdxj").write_text("".join(text))
    source = FolderSource(tmp_path)
    layout = read_layout(source)
    for n, each in enumerate(urls):
        found = captures_of(source, layout, each)
        assert [(capture.url, capture.at.offset) for capture in found] == [(each, n)] * 3
        assert [capture.stamp[:8] for capture in found] == ["20260101", "20260102", "20260103"]
    for missing in ("http://a.org/", "http://example.org/xx", "http://zzz.org/"):
        assert captures_of(source, layout, missing) == []


@pytest.mark.parametrize(
    ("at", "day"),
    [
        (None, 3),
        ("2026-01-02", 2),
        ("20260102", 2),
        ("2026-01-02T00:00:00Z", 2),
        ("2026-01-01T23:59:59", 1),
        ("2025", 1),
        ("2027", 3),
        (datetime(2026, 1, 2, 5, tzinfo=UTC), 2),
    ],
)
def test_a_page_is_shown_as_of_a_time(at: str | datetime | None, day: int, tmp_path: Path) -> None:
    (tmp_path / "archive").mkdir()
    line = (
        'org,example)/ 2026010{}000000 {{"url": "http://example.org/", "status": "200", "filename": "a"}}\n'
    )
    (tmp_path / "archive" / "a.cdxj").write_text("".join(line.format(n) for n in (1, 2, 3)))
    assert Collection.at(tmp_path).capture("http://example.org/", at).stamp == f"2026010{day}000000"


def test_a_time_that_is_none_says_how_to_write_one(crawl: Made) -> None:
    with skitter.open(crawl.folder) as collection, pytest.raises(UsageError, match="write 2026-01-31"):
        collection.capture(url(0), "yesterday")


def test_a_growing_archive_is_read_and_its_finishing_is_followed(tmp_path: Path) -> None:
    made = make_crawl(tmp_path / "crawl", grows=True)
    with skitter.open(made.folder) as collection:
        assert collection.body(url(3)) == page_body(3)
        assert collection.count() == 8
        finish(made)
        assert collection.body(url(3)) == page_body(3)


def test_tables_are_opened_although_a_segment_was_finished_since_the_files_were_listed(
    tmp_path: Path,
) -> None:
    made = make_crawl(tmp_path / "crawl", grows=True)
    with skitter.open(made.folder) as collection:
        finish(made)
        assert collection.count() == 8


def finish(made: Made) -> None:
    (journal,) = made.archive.glob("*.cdxj.open")
    os.rename(made.segment, made.segment.with_suffix(""))
    journal.with_suffix("").write_bytes(b"".join(sorted(journal.read_bytes().splitlines(keepends=True))))
    journal.unlink()


def test_an_index_line_that_is_still_being_written_is_not_read(tmp_path: Path) -> None:
    made = make_crawl(tmp_path / "crawl", grows=True)
    (journal,) = made.archive.glob("*.cdxj.open")
    with journal.open("ab") as file:
        file.write(b"org,example,h0)/p/99 2026")
    with skitter.open(made.folder) as collection:
        assert collection.count() == 8


# -- tables


def test_pages_have_the_promised_columns_and_short_names(tabled: Made, crawl: Made) -> None:
    for made in (tabled, crawl):
        with made.collection() as collection, collection.duckdb() as database:
            for table in TABLES:
                described = {row[0]: row[1] for row in database.execute(f"describe {table.name}").fetchall()}
                promised = {column.name: sql_type(column) for column in table.columns}
                assert {name: described[name].replace('"', "") for name in promised} == {
                    name: kind.replace('"', "") for name, kind in promised.items()
                }
            database.execute(
                "select status, host, domain, path, mime, digest, language, fetched_at, file from pages"
            ).fetchall()


def test_the_same_pages_are_seen_through_the_tables_and_through_the_index(
    tabled: Made, tmp_path: Path
) -> None:
    bare = make_crawl(tmp_path / "crawl", PAGES)
    facts = [
        {(page.url, page.status, page.host, page.digest) for page in made.collection().pages()}
        for made in (tabled, bare)
    ]
    assert facts[0] == facts[1]
    assert len(facts[0]) == PAGES


def test_what_is_not_in_a_part_yet_is_taken_from_the_journal(tmp_path: Path) -> None:
    made = make_crawl(tmp_path / "crawl", 10, grows=True)
    add_tables(made, most=6)
    with made.collection() as collection:
        assert sorted(page.url for page in collection.pages()) == sorted(url(n) for n in range(10))


def test_pages_are_filtered_by_condition_and_come_in_the_order_of_records(tabled: Made) -> None:
    with tabled.collection() as collection:
        found = list(collection.pages("host = 'h1.example.org' and status = 200"))
        assert [page.url for page in found] == [url(n) for n in range(PAGES) if n % 3 == 1]
        assert found[0].fetched_at == datetime.fromtimestamp(SENT_AT + 1, UTC)
        assert found[0].title == "Page 1"
        with pytest.raises(UsageError, match='"hots" not found'):
            list(collection.pages("hots = 'x'"))


def test_only_the_newest_of_a_url_when_asked(tmp_path: Path) -> None:
    made = make_crawl(tmp_path / "crawl", 3)
    add_tables(made)
    from pyarrow import concat_tables, parquet

    part = made.archive / "pages" / "part-0.parquet"
    table = parquet.read_table(part)
    parquet.write_table(concat_tables([table, table]), part)
    with made.collection() as collection:
        assert len(list(collection.pages())) == 6
        assert len(list(collection.pages(newest=True))) == 3


@pytest.mark.parametrize(
    "sql",
    [
        "copy pages to '{tmp}/x.csv'",
        "create table x as select 1",
        "insert into fresh select * from fresh",
        "drop view pages",
        "attach '{tmp}/x.db'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "pragma database_list",
        "select 1; select 2",
        "",
        "select * from read_csv('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select * from read_text('{tmp}/../secret')",
        "select * from glob('/etc/*')",
        "select * from read_parquet('http://127.0.0.1:1/x.parquet')",
        "select nothing from pages",
        "selec",
    ],
)
def test_a_query_can_only_read_the_archive(sql: str, tabled: Made, tmp_path: Path) -> None:
    with tabled.collection() as collection, collection.duckdb(locked=True) as database:
        with pytest.raises(UsageError) as refused:
            select_only(database, sql.format(tmp=tmp_path)).fetchall()
        assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_python_objects_are_out_of_reach_of_a_query(tabled: Made) -> None:
    secret = pyarrow.table({"answer": [42]})
    assert secret.num_rows == 1
    for locked in (True, False):
        with (
            tabled.collection() as collection,
            collection.duckdb(locked=locked) as database,
            pytest.raises(duckdb.CatalogException, match="secret does not exist"),
        ):
            database.execute("select * from secret")


@pytest.mark.parametrize(
    "program",
    [
        "import duckdb; print(duckdb.sql(f\"select count(*) from '{D}/pages/*.parquet'\").fetchall()[0][0])",
        "import polars; print(polars.scan_parquet(D + '/pages/*.parquet').collect().height)",
        "import pyarrow.dataset as d; print(d.dataset(D + '/pages').count_rows())",
        "import duckdb; print(duckdb.sql(f\"select count(*) from '{D}/links/*.parquet'\").fetchall()[0][0])",
        "import polars; print(polars.scan_parquet(D + '/text/*.parquet').select('text').collect().height)",
    ],
)
def test_the_tables_are_read_without_skitter(program: str, tabled: Made) -> None:
    """Isolated: no PYTHONPATH, no folder of ours in reach."""
    pytest.importorskip("polars")
    guard = "import sys; sys.modules['skitter'] = None\n"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"{guard}D = {str(tabled.archive)!r}\n{program}"],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
        cwd="/",
        timeout=60,
    )
    assert (done.stdout.strip(), done.returncode) == (str(PAGES), 0), done.stderr


def test_hostile_heads_are_read_without_a_fault() -> None:
    from skitter.collection.record import Record

    for head in (b"", b"\r\n\r\n", b"HTTP/1.1 200\r\n\r\n", b"\x00\xff: \xfe\r\n\r\n", b"a" * 100):
        record = Record({"warc-type": "response"}, head + exchange().body)
        assert isinstance(record.decoded(), bytes)
        assert record.status in (0, 200)
