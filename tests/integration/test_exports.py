"""Exports: whole or not at all, read back by the tools of others."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from pyarrow import parquet

from skitter.collection.export import contents, tables, wacz
from skitter.collection.export.target import whole
from skitter.console.read.export import run_export
from skitter.errors import DiskFull, UsageError
from tests.archives import Made, add_tables, make_crawl, page_body
from tests.exchanges import SENT_AT, read_with_fastwarc, read_with_warcio

PAGES = 12


@pytest.fixture(scope="module", params=["index", "tables", "zstd"])
def crawl(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    compression = "zstd" if request.param == "zstd" else "gzip"
    made = make_crawl(
        tmp_path_factory.mktemp("crawl") / "crawl", PAGES, segment_size=8000, compression=compression
    )
    if request.param == "tables":
        add_tables(made)
    return made


def export(crawl: Made, to: str, path: Path, where: str = "", force: bool = False) -> Path:
    run_export(crawl.folder, to, path, where, force=force, as_json=True)
    return path


def url(number: int) -> str:
    return f"http://h{number % 3}.example.org/p/{number}"


def test_jsonl_has_a_line_for_each_page_with_its_text(crawl: Made, tmp_path: Path) -> None:
    lines = [
        json.loads(line) for line in export(crawl, "jsonl", tmp_path / "x.jsonl").read_text().splitlines()
    ]
    assert {line["url"] for line in lines} == {url(n) for n in range(PAGES)}
    first = next(line for line in lines if line["url"] == url(0))
    assert (first["title"], first["language"], first["status"]) == ("Page 0", "en", 200)
    assert "Words of page 0, and the next." in first["text"]
    revisit = next(line for line in lines if line["url"] == url(PAGES - 1))
    assert revisit["title"] == "Page 0", "a revisit has its original's text"


def test_markdown_has_the_main_content_and_front_matter(crawl: Made, tmp_path: Path) -> None:
    folder = export(crawl, "markdown", tmp_path / "md")
    files = sorted(folder.rglob("*.md"))
    assert len(files) == PAGES
    text = next(file for file in files if file.name.startswith("3-")).read_text()
    head, _, body = text.removeprefix("---\n").partition("---\n")
    assert 'title: "Page 3"' in head
    assert f'url: "{url(3)}"' in head
    assert "# Page 3" in body
    assert "[the next](http://h0.example.org/p/4)" in body
    assert "menu" not in body


def test_files_are_the_bodies_and_a_list_says_which_is_which(crawl: Made, tmp_path: Path) -> None:
    folder = export(crawl, "files", tmp_path / "files", "host = 'h1.example.org'")
    lines = (folder / "files.csv").read_text().splitlines()[1:]
    assert len(lines) == PAGES // 3
    for line in lines:
        name, address, *_ = line.split(",")
        number = int(address.rpartition("/")[2])
        assert (folder / name).read_bytes() == page_body(number)


def test_parquet_holds_the_rows_that_match(crawl: Made, tmp_path: Path) -> None:
    folder = export(crawl, "parquet", tmp_path / "p", "host = 'h1.example.org'")
    rows = parquet.read_table(folder / "pages.parquet").to_pylist()
    assert {row["url"] for row in rows} == {url(n) for n in range(PAGES) if n % 3 == 1}
    texts = parquet.read_table(folder / "text.parquet")
    assert texts.num_rows == (len(rows) if (crawl.archive / "text").is_dir() else 0)


def test_cdxj_is_sorted_whole_and_filtered(crawl: Made, tmp_path: Path) -> None:
    everything = export(crawl, "cdxj", tmp_path / "x.cdxj").read_bytes()
    assert everything == (crawl.archive / "index.cdxj").read_bytes()
    some = export(crawl, "cdxj", tmp_path / "y.cdxj", "host = 'h1.example.org'").read_bytes().splitlines()
    assert some == sorted(line for line in everything.splitlines() if b"example,h1)" in line)


def test_wacz_is_stored_listed_and_digested(crawl: Made, tmp_path: Path) -> None:
    package = zipfile.ZipFile(export(crawl, "wacz", tmp_path / "x.wacz"))
    described = json.loads(package.read("datapackage.json"))
    assert described["wacz_version"] == "1.1.1"
    listed = {resource["path"]: resource for resource in described["resources"]}
    assert set(listed) == set(package.namelist()) - {"datapackage.json", "datapackage-digest.json"}
    for path, resource in listed.items():
        content = package.read(path)
        assert resource["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
        assert resource["bytes"] == len(content)
        if path.startswith(("archive/", "indexes/")):
            assert package.getinfo(path).compress_type == zipfile.ZIP_STORED
    digest = json.loads(package.read("datapackage-digest.json"))
    assert digest["hash"] == f"sha256:{hashlib.sha256(package.read('datapackage.json')).hexdigest()}"
    first, *pages = map(json.loads, package.read("pages/pages.jsonl").splitlines())
    assert first["format"] == "json-pages-1.0"
    assert {page["url"] for page in pages} == {url(n) for n in range(PAGES)}


def test_a_line_of_the_wacz_index_leads_to_its_record(crawl: Made, tmp_path: Path) -> None:
    for name, where in (("all", ""), ("some", "host = 'h2.example.org'")):
        package = zipfile.ZipFile(export(crawl, "wacz", tmp_path / f"{name}.wacz", where))
        head, *blocks = package.read("indexes/index.idx").decode().splitlines()
        assert head.startswith("!meta 0 ")
        packed = package.read("indexes/index.cdx.gz")
        for block in blocks:
            place = json.loads(block.split(" ", 2)[2])
            piece = packed[place["offset"] : place["offset"] + place["length"]]
            lines = gzip.decompress(piece).decode().splitlines()
            assert block.split(" ")[:2] == lines[0].split(" ")[:2]
            for line in lines:
                facts = json.loads(line.split(" ", 2)[2])
                warc = package.read(f"archive/{facts['filename']}")
                at = int(facts["offset"])
                (record,) = read_with_warcio(warc[at : at + int(facts["length"])])
                assert record.fields["WARC-Target-URI"] == facts["url"]


def test_a_filtered_warc_has_requests_and_the_originals_of_revisits(crawl: Made, tmp_path: Path) -> None:
    last = PAGES - 1
    folder = export(crawl, "warc", tmp_path / "w", f"url = '{url(last)}'")
    raw = (folder / "data.warc.gz").read_bytes()
    for read in (read_with_warcio, read_with_fastwarc):
        records = read(raw)
        assert [record.kind for record in records] == "warcinfo request response request revisit".split()
        assert records[2].fields["WARC-Record-ID"] == records[-1].fields["WARC-Refers-To"]
    assert len((folder / "data.cdxj").read_bytes().splitlines()) == 2


def test_the_validator_of_the_wacz_project_agrees(crawl: Made, tmp_path: Path) -> None:
    """Its own environment: it asks for other versions of what we use."""
    validator = os.environ.get("SKITTER_WACZ") or shutil.which("wacz")
    if validator is None:
        pytest.skip("the wacz command is not there: pip install wacz elsewhere and set SKITTER_WACZ to it")
    for name, where in (("all", ""), ("some", "host = 'h2.example.org'")):
        path = export(crawl, "wacz", tmp_path / f"{name}.wacz", where)
        done = subprocess.run([validator, "validate", "-f", path], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "the passed WACZ is valid" in done.stdout


# -- whole or not at all


@pytest.mark.parametrize("to", ["jsonl", "markdown"])
def test_what_is_there_is_replaced_only_when_told(to: str, crawl: Made, tmp_path: Path) -> None:
    path = export(crawl, to, tmp_path / "x", "url = ''")
    with pytest.raises(UsageError, match="--force"):
        export(crawl, to, path)
    export(crawl, to, path, force=True)
    assert any(path.rglob("*")) if to == "markdown" else path.read_bytes()
    assert os.listdir(tmp_path) == ["x"]


def test_a_failing_export_leaves_what_was_there(crawl: Made, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("mine")
    with pytest.raises(UsageError, match="not found"):
        export(crawl, "jsonl", path, "nonsense = 1", force=True)
    assert (path.read_text(), os.listdir(tmp_path)) == ("mine", ["x"])


def test_a_place_that_cannot_be_is_told_of(crawl: Made, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="make the folder first"):
        export(crawl, "jsonl", tmp_path / "no" / "where")


@pytest.mark.parametrize("folder", [False, True])
def test_an_interrupted_export_leaves_nothing(folder: bool, tmp_path: Path) -> None:
    def interrupted() -> None:
        with whole(tmp_path / "x", force=False, folder=folder) as target:
            (target / "a" if folder else target).write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("to", ["jsonl", "wacz", "files", "parquet"])
def test_a_full_disk_is_one_line_and_leaves_nothing(to: str, tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk: the kernel refuses the write in the same way."""
    crawl = make_crawl(tmp_path / "crawl", 3)
    add_tables(crawl)
    program = (
        "import resource, signal, sys\n"
        "from skitter.cli import main\n"
        "import duckdb, pyarrow\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "export", crawl.folder, "--to", to, tmp_path / "x"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=60,
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("skitter: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert os.listdir(tmp_path) == ["crawl"]
    if to != "parquet":  # DuckDB tells of the failure in its own words
        assert "no room left" in done.stderr


def test_no_room_is_told_as_that(tmp_path: Path) -> None:
    def full() -> None:
        with whole(tmp_path / "x", force=False, folder=False):
            raise OSError(28, "No space left on device")

    with pytest.raises(DiskFull, match="nothing was left behind"):
        full()


def test_the_writers_can_be_used_without_the_command(crawl: Made, tmp_path: Path) -> None:
    done: list[int] = []
    with crawl.collection() as collection:
        assert contents.write_jsonl(collection, tmp_path / "a", "", done.append) == PAGES
        assert tables.write_cdxj(collection, tmp_path / "b", "", done.append) == PAGES
        assert wacz.write_wacz(collection, tmp_path / "c", "", done.append, SENT_AT) == PAGES
    assert sum(done) == 3 * PAGES
    assert io.BytesIO((tmp_path / "c").read_bytes()).read(2) == b"PK"
