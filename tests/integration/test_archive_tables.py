"""The Parquet tables as others read them: duckdb, polars and pyarrow, while the crawl runs and after."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow.parquet import ParquetFile

from skitter.archive import segments as segments_module
from skitter.archive.facts import Facts
from skitter.archive.schema import TABLES as SCHEMA
from skitter.archive.store import Archive
from skitter.archive.tables.journal import entries, whole_frames
from skitter.archive.tables.parts import parts_of, recover_parts
from skitter.clock import SystemClock
from skitter.errors import SettingsError
from skitter.model import Copy, Link, SegmentMark
from skitter.settings import ArchiveSettings
from skitter.testing.clock import FakeClock
from tests.exchanges import BODY, SENT_AT, exchange, finished_records, stored_in

TABLES = tuple(table.name for table in SCHEMA)
URL = "https://www.example.co.uk:8443/a/b?c=d"
FACTS = Facts(
    depth=3,
    media_type="text/html",
    charset="utf-8",
    language="en",
    title="A title",
    directives="noindex",
    text="Some text.",
    links=(
        ("http://a.test/", Link("/", "Home", "nofollow")),
        ("http://a.test/f", Link("f", "", "", "iframe")),
        ("http://a.test/é", Link("é", "Line\nfeed")),
    ),
)


def opened(folder: Path, marks: tuple[SegmentMark, ...] = (), **settings: Any) -> Archive:
    return Archive.open(folder, ArchiveSettings(**settings), SystemClock(), marks, {}, in_child=False)


def stored(archive: Archive, url: str = URL, facts: Facts = FACTS, **rest: Any) -> None:
    given = exchange(url, ended_at=SENT_AT + 0.25, **rest)
    stored_in(archive, given, facts=facts)


def commit(archive: Archive) -> tuple[SegmentMark, ...]:
    marks = archive.marks()
    archive.committed()
    return marks


def read(folder: Path, table: str) -> pa.Table:
    return pa.concat_tables([ParquetFile(path).read() for path in sorted((folder / table).iterdir())])


def test_a_page_is_told_by_the_names_of_common_crawl(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    stored(archive)
    commit(archive)
    archive.close()
    pages = read(tmp_path, "pages")
    (row,) = pages.to_pylist()
    (line,) = (tmp_path / "index.cdxj").read_text().splitlines()
    key, _, fields = line.split(" ", 2)
    indexed = json.loads(fields)
    assert row["url_surtkey"] == key
    assert row["url"] == URL
    assert row["url_host_name"] == "www.example.co.uk"
    assert row["url_host_tld"] == "uk"
    assert row["url_host_registered_domain"] == "example.co.uk"
    assert (row["url_protocol"], row["url_port"]) == ("https", 8443)
    assert (row["url_path"], row["url_query"]) == ("/a/b", "c=d")
    assert row["fetch_time"].timestamp() == SENT_AT
    assert (row["fetch_status"], row["fetch_redirect"], row["content_truncated"]) == (200, None, None)
    assert row["content_digest"] == indexed["digest"]
    assert row["warc_filename"] == indexed["filename"]
    assert (row["warc_record_offset"], row["warc_record_length"]) == (
        int(indexed["offset"]),
        int(indexed["length"]),
    )
    assert (row["kind"], row["size"], row["title"], row["depth"]) == ("page", len(BODY), "A title", 3)
    assert (row["fetch_ms"], row["revisit_of"], row["simhash"], row["failure"]) == (250.0, None, None, None)
    kinds = {name: pages.schema.field(name).type for name in ("fetch_time", "fetch_status", "simhash")}
    assert kinds == {
        "fetch_time": pa.timestamp("us", tz="UTC"),
        "fetch_status": pa.int16(),
        "simhash": pa.uint64(),
    }


def test_links_and_text_are_told_beside_it(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    stored(archive)
    stored(archive, "http://a.test/plain", Facts())
    commit(archive)
    archive.close()
    (links,) = read(tmp_path, "links").to_pylist()
    assert links["url"] == URL
    assert links["links"] == [
        {"target": "http://a.test/", "text": "Home", "rel": "nofollow", "tag": "a"},
        {"target": "http://a.test/f", "text": "", "rel": "", "tag": "iframe"},
        {"target": "http://a.test/é", "text": "Line feed", "rel": "", "tag": "a"},
    ]
    (text,) = read(tmp_path, "text").to_pylist()
    assert (text["url"], text["title"], text["language"], text["text"]) == (
        URL,
        "A title",
        "en",
        "Some text.",
    )


def test_addresses_defaults_and_odd_urls_have_no_parts_that_they_lack(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    for url in (
        "http://192.0.2.7/",
        "http://[2001:db8::1]:81/x",
        "http://localhost",
        "nonsense",
        "http://a:99999/",
    ):
        stored(archive, url, Facts())
    commit(archive)
    archive.close()
    rows = read(tmp_path, "pages").to_pylist()
    parts = ("url_host_name", "url_host_tld", "url_host_registered_domain", "url_port", "url_path")
    assert [[row[part] for part in parts] for row in rows] == [
        ["192.0.2.7", None, None, None, "/"],
        ["[2001:db8::1]", None, None, 81, "/x"],
        ["localhost", "localhost", "localhost", None, ""],
        [None, None, None, None, None],
        ["a", "a", "a", 99999, "/"],
    ]


def test_a_revisit_names_the_url_of_the_first_copy(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    again = exchange("http://a.test/2")
    original = Copy("http://a.test/1", SENT_AT, "urn:uuid:1")
    stored_in(archive, again, media_type="", original=original)
    commit(archive)
    archive.close()
    assert [row["revisit_of"] for row in read(tmp_path, "pages").to_pylist()] == ["http://a.test/1"]


def test_committed_rows_are_readable_while_the_crawl_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments_module, "ROWS_A_PART", 10)
    archive = opened(tmp_path)
    for number in range(25):
        stored(archive, f"http://a.test/{number}")
        if number == 11:
            commit(archive)
            archive.rest()
    assert read(tmp_path, "pages").num_rows == 12
    assert archive.parts_written == 1
    commit(archive)
    archive.rest()
    assert read(tmp_path, "links").num_rows == 25
    archive.close()
    assert [read(tmp_path, table).num_rows for table in TABLES] == [25, 25, 25]


def test_rows_of_a_slow_crawl_do_not_wait_for_company(tmp_path: Path) -> None:
    clock = FakeClock(SENT_AT)
    archive = Archive.open(tmp_path, ArchiveSettings(), clock, (), {}, in_child=False)
    stored(archive)
    commit(archive)
    archive.rest()
    assert not (tmp_path / "pages").exists()
    clock.advance(ArchiveSettings().table_seconds)
    stored(archive, "http://a.test/2")
    commit(archive)
    archive.rest()
    assert read(tmp_path, "pages").num_rows == 2
    archive.close()


def test_a_long_journal_becomes_parts_of_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments_module, "BYTES_A_PART", 1_000)
    archive = opened(tmp_path)
    for number in range(9):
        stored(archive, f"http://a.test/{number}", Facts(text="x" * (number * 400)))
    (mark,) = commit(archive)
    archive.close()
    parts = parts_of(tmp_path, "pages", mark.segment.removesuffix(".warc.gz"))
    assert len(parts) > 3
    assert [part.start for part in parts] == [0, *(part.end for part in parts[:-1])]
    assert [row["url"][-1] for row in read(tmp_path, "pages").to_pylist()] == list("012345678")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (("pages",), ("pages", "links", "text"), [2, 1, 1]),
        (("pages", "links", "text"), ("pages",), [2, 1, 1]),
        (("pages", "text"), (), [1, 0, 1]),
    ],
)
def test_tables_may_be_added_and_dropped_between_two_runs(
    tmp_path: Path, before: tuple[str, ...], after: tuple[str, ...], expected: list[int]
) -> None:
    archive = opened(tmp_path, tables=before)
    stored(archive)
    marks = archive.marks()
    archive.close()
    archive = opened(tmp_path, marks, tables=after)
    stored(archive, "http://a.test/2")
    commit(archive)
    archive.close()
    counted = [read(tmp_path, table).num_rows if (tmp_path / table).exists() else 0 for table in TABLES]
    assert counted == expected


def test_no_tables_no_folders(tmp_path: Path) -> None:
    archive = opened(tmp_path, tables=())
    stored(archive)
    commit(archive)
    archive.close()
    assert not any((tmp_path / table).exists() for table in TABLES)


@pytest.mark.parametrize("tables", [("links",), ("pages", "images")])
def test_tables_that_are_none_are_refused(tmp_path: Path, tables: tuple[str, ...]) -> None:
    with pytest.raises(SettingsError, match=r"archive\.tables"):
        opened(tmp_path, tables=tables)


def test_recovery_keeps_what_all_tables_hold_and_no_part_beyond_the_mark(tmp_path: Path) -> None:
    for table, ranges in {
        "pages": ((0, 9), (9, 20), (20, 30)),
        "text": ((0, 9), (9, 20)),
        "links": (),
    }.items():
        (tmp_path / table).mkdir()
        for start, end in ranges:
            (tmp_path / table / f"a-{start:012d}-{end:012d}.parquet").touch()
    assert recover_parts(tmp_path, ("pages", "text"), "a", 25) == 20
    assert recover_parts(tmp_path, ("pages", "text"), "a", 12) == 9
    assert [part.end for part in parts_of(tmp_path, "pages", "a")] == [9]
    (only,) = parts_of(tmp_path, "pages", "a")
    only.path.unlink()
    assert recover_parts(tmp_path, ("pages", "text"), "a", 12) == 0
    assert parts_of(tmp_path, "text", "a") == []


def test_a_cut_journal_is_read_up_to_its_last_whole_row(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    stored(archive)
    (first,) = archive.marks()
    stored(archive, "http://a.test/2")
    archive.marks()
    (journal,) = tmp_path.glob("*.rows.open")
    content = journal.read_bytes()
    for cut in range(first.rows_length, len(content)):
        assert whole_frames(content[:cut]) == first.rows_length
    hole = bytes(first.rows_length) + content[first.rows_length :]
    assert [entry.rows["links"][0][0] for entry in entries(hole)] == ["http://a.test/2"]
    archive.close()


def test_a_metadata_record_describes_the_response_before_it(tmp_path: Path) -> None:
    archive = opened(tmp_path, tables=())
    waits: dict[str, Any] = {"dns_ms": 3.2, "connect_ms": 1.0, "tls_ms": 12.6, "first_byte_ms": 0.4}
    stored(archive, tls_version="TLSv1.3", tls_cipher="TLS_AES_256_GCM_SHA384", **waits)
    commit(archive)
    archive.close()
    _, _, response, metadata = finished_records(tmp_path)
    assert metadata.kind == "metadata"
    assert metadata.fields["WARC-Refers-To"] == response.fields["WARC-Record-ID"]
    assert metadata.fields["WARC-Concurrent-To"] == response.fields["WARC-Record-ID"]
    assert metadata.fields["Content-Type"] == "application/warc-fields"
    assert metadata.payload.decode().split("\r\n") == [
        "fetchTimeMs: 250",
        "dnsTimeMs: 3",
        "connectTimeMs: 1",
        "tlsTimeMs: 13",
        "tls: TLSv1.3 TLS_AES_256_GCM_SHA384",
        "hopsFromSeed: LLL",
        "charsetForLinkExtraction: utf-8",
        "outlink: http://a.test/ L a/@href nofollow",
        "outlink: http://a.test/f E iframe/@src",
        "outlink: http://a.test/é L a/@href",
        "",
    ]


READERS = {
    "duckdb": "import duckdb; print(duckdb.sql(\"select count(*) from '{}/*.parquet'\").fetchall()[0][0])",
    "polars": "import polars; print(polars.scan_parquet('{}/*.parquet').collect().height)",
    "pyarrow": "import pyarrow.dataset as d; print(d.dataset('{}', format='parquet').count_rows())",
}


@pytest.mark.parametrize("reader", READERS)
def test_others_read_the_tables_without_us(tmp_path: Path, reader: str) -> None:
    pytest.importorskip(reader, reason=f"{reader} is not installed")
    archive = opened(tmp_path, segment_size=1)
    for number in range(3):
        stored(archive, f"http://a.test/{number}")
        commit(archive)
    archive.close()
    for table in TABLES:
        script = textwrap.dedent(READERS[reader].format(tmp_path / table))
        done = subprocess.run(
            [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True
        )
        assert done.stdout == "3\n"
