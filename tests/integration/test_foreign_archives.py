"""WARC and WACZ files of others are opened, queried, shown, verified and exported as our own are."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

import skitter
from skitter.collection.export.wacz import Signing, write_wacz
from skitter.collection.verify.archive import verify
from skitter.errors import ArchiveFailed, NotACrawl, UsageError
from tests.e2e.command import serving_site
from tests.foreign_archives import SAMPLES, compress_whole, wget, write_warc

SITE = {
    "/": b"<title>Home</title><link rel=stylesheet href=/a.css><a href=/two>two</a>",
    "/two": b"<title>Zw\xc3\xb6</title><p>second page",
    "/a.css": b"HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nContent-Length: 4\r\n\r\na{ }",
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def defects(place: Path) -> list[str]:
    with skitter.open(place) as crawl:
        return [finding.what for finding in verify(crawl, None).findings]


@pytest.mark.parametrize("flags", [(), ("--no-warc-compression",)], ids=["gzip", "plain"])
def test_what_wget_archived_is_read(tmp_path: Path, flags: tuple[str, ...]) -> None:
    with serving_site(SITE) as server:
        made = wget(f"{server.url}/", tmp_path / "wget", "--page-requisites", *flags)
        before = made.read_bytes()
        with skitter.open(made) as crawl:
            pages = {page.url.removeprefix(server.url): page for page in crawl.pages("status = 200")}
            assert set(pages) == {"/", "/two", "/a.css"}
            assert (pages["/two"].title, pages["/a.css"].kind) == ("Zwö", "requisite")
            assert crawl.body(f"{server.url}/two") == SITE["/two"]
            links = crawl.duckdb().execute("select unnest(links).target from links").fetchall()
            assert (f"{server.url}/two",) in links
            assert "second page" in crawl.text(f"{server.url}/two")
        assert defects(made) == [] or all("also that of" in what for what in defects(made))
        assert made.read_bytes() == before


@pytest.mark.parametrize("form", ["gzip", "plain", "whole"])
def test_what_warcio_wrote_is_read(tmp_path: Path, form: str) -> None:
    made = tmp_path / ("made.warc.gz" if form == "gzip" else "made.warc")
    write_warc(made, compressed=form == "gzip")
    if form == "whole":
        made = compress_whole(made)
    with skitter.open(made) as crawl:
        assert crawl.count() == 4  # and no dns:
        assert crawl.body("http://site.test/chunked") == b"<title>In chunks</title><p>whole"
        assert crawl.body("http://site.test/again") == b"<title>In chunks</title><p>whole"
        assert crawl.body("http://site.test/data") == b'{"a": 1}'
        titles = [page.title for page in crawl.pages("url like '%chunked'")]
        assert titles == ["In chunks"]
        assert [page.redirect for page in crawl.pages("status = 302")] == ["http://site.test/chunked"]
        assert verify(crawl, None).findings == []


def test_a_folder_of_files_is_one_archive_whatever_they_are_called(tmp_path: Path) -> None:
    for name in ("a/same.warc.gz", "b/same.warc.gz", "b/other.warc"):
        (tmp_path / "all" / name).parent.mkdir(parents=True, exist_ok=True)
        write_warc(tmp_path / "all" / name, compressed=name.endswith("gz"))
    with skitter.open(tmp_path / "all") as crawl:
        assert crawl.count() == 12
        assert {page.record.segment for page in crawl.pages()} == {
            "same.warc.gz",
            "same-2.warc.gz",
            "other.warc",
        }
        bodies = {crawl.record(page.record).decoded() for page in crawl.pages("url like '%chunked'")}
        assert bodies == {b"<title>In chunks</title><p>whole"}


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="pywb has brought no samples along")
@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("iana.warc.gz", 171),
        ("dupes.warc.gz", 12),
        ("example.warc.gz", 3),
        ("example-wpull.warc.gz", 1),
        ("example-wget-1-14.warc.gz", 1),
        ("example2.warc.gz", 1),
        ("httpbin-resource.warc.gz", 1),
        ("post-test.warc.gz", 3),
    ],
)
def test_samples_of_other_crawlers_are_read_and_found_sound(name: str, answers: int) -> None:
    with skitter.open(SAMPLES / name) as crawl:
        assert crawl.count() == answers
        report = verify(crawl, None)
        assert report.defects == 0, report.findings
        for page in crawl.pages("revisit_of is null and status = 200"):
            assert len(crawl.record(page.record).payload()) == page.size


def test_damage_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    made = tmp_path / "made.warc.gz"
    write_warc(made)
    with skitter.open(made) as crawl:
        at = next(crawl.pages("url like '%chunked'")).record
    content = bytearray(made.read_bytes())
    content[at.offset + 40] ^= 0xFF
    made.write_bytes(content)
    with skitter.open(made) as crawl:
        assert crawl.count() == 3
        with pytest.raises(ArchiveFailed):
            crawl.body("http://site.test/again")
    assert any("gzip" in what for what in defects(made))


def test_a_wacz_of_a_foreign_archive_is_signed_opened_and_checked(tmp_path: Path) -> None:
    made, package = tmp_path / "made.warc.gz", tmp_path / "made.wacz"
    write_warc(made)
    with skitter.open(made) as crawl:
        written = write_wacz(crawl, package, "", lambda _: None, 1_700_000_000.0, Signing(wanted=True))
    assert written
    with skitter.open(package) as crawl:
        assert crawl.body("http://site.test/again") == b"<title>In chunks</title><p>whole"
    assert defects(package) == []
    with zipfile.ZipFile(package) as opened:
        lines = opened.read("pages/pages.jsonl").decode().splitlines()
        digest = json.loads(opened.read("datapackage-digest.json"))
    assert json.loads(lines[0])["hasText"] is True
    assert "whole" in json.loads(lines[1])["text"]
    assert set(digest["signedData"]) == {"hash", "signature", "publicKey", "created", "software"}
    assert any("digest" in what for what in defects(_changed(package, "pages/pages.jsonl", b"{}")))
    told = json.dumps({**digest, "signedData": {**digest["signedData"], "hash": "sha256:00"}}).encode()
    assert defects(_changed(package, "datapackage-digest.json", told)) == [
        "its signature is not of this content"
    ]


def _changed(package: Path, name: str, content: bytes) -> Path:
    """A copy in which one file is another; deflated, as some pack theirs."""
    copy = package.with_name(f"changed-{name.replace('/', '-')}.wacz")
    with zipfile.ZipFile(package) as old, zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, content if entry.filename == name else old.read(entry.filename))
    return copy


def test_what_is_no_archive_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(NotACrawl, match="WARC or WACZ"):
        skitter.open(tmp_path)
    (tmp_path / "bad.wacz").write_bytes(b"not a zip file")
    with pytest.raises(UsageError, match="no WACZ file"):
        skitter.open(tmp_path / "bad.wacz")
    (tmp_path / "bad.wacz").unlink()
    (tmp_path / "junk.warc.gz").write_bytes(b"\x1f\x8b\x08junk")
    with skitter.open(tmp_path / "junk.warc.gz") as crawl:
        assert crawl.count() == 0
        assert verify(crawl, None).defects == 1


def test_a_file_that_has_changed_is_indexed_again(tmp_path: Path) -> None:
    made = tmp_path / "made.warc.gz"
    write_warc(made)
    with skitter.open(made) as crawl:
        assert crawl.count() == 4
    with made.open("ab") as file:
        file.write((tmp_path / "made.warc.gz").read_bytes())
    with skitter.open(made) as crawl:
        assert crawl.count() == 8
    shutil.rmtree(tmp_path / "cache")
    with skitter.open(made) as crawl:
        assert crawl.count() == 8
