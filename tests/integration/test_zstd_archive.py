"""An archive compressed with zstd, wholly or in part, is read by whoever reads the other."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import subprocess
import sys
import zipfile
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import zstandard

import skitter
from skitter.archive.digests import digests_of
from skitter.archive.packing import Packer
from skitter.archive.store import Archive
from skitter.archive.warc.coding import CODINGS, GZIP, ZSTD, coding_of, is_segment, stem_of
from skitter.collection.export.wacz import write_wacz
from skitter.collection.members import Broken, inflate, read_members
from skitter.collection.source import FolderSource
from skitter.collection.verify.archive import verify
from skitter.collection.verify.findings import Ledger
from skitter.model import Copy, SegmentMark
from skitter.settings import ArchiveSettings
from skitter.settings.check import COMPRESSIONS
from skitter.testing.clock import FakeClock
from tests.archives import Made, make_crawl, members_of, page_body, page_exchange
from tests.exchanges import (
    SENT_AT,
    exchange,
    finished_records,
    read_with_fastwarc,
    read_with_warcio,
    segments_of,
    stored_in,
    unpacked,
)

PAGES = 10
FASTWARC = Path(sys.executable).parent / "fastwarc"


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_crawl(tmp_path_factory.mktemp("crawl") / "crawl", PAGES, compression="zstd")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Three runs of one crawl, the second with zstd; the last page of each is a revisit of the very first."""
    folder = tmp_path_factory.mktemp("mixed") / "crawl"
    marks: dict[str, SegmentMark] = {}
    original: Copy | None = None
    for run, compression in enumerate(("gzip", "zstd", "gzip")):
        settings = ArchiveSettings(compression=compression, tables=("pages",))
        archive = Archive.open(
            folder / "archive", settings, FakeClock(SENT_AT + run), tuple(marks.values()), {}, in_child=False
        )
        for number in range(run * 4, run * 4 + 3):
            stored = stored_in(archive, page_exchange(number))
            original = original or Copy(page_exchange(0).url, SENT_AT, stored.record_id)
        stored_in(archive, page_exchange(run * 4 + 3, body=page_body(0)), original=original)
        marks |= {mark.segment: mark for mark in archive.marks()}
        archive.committed()
        archive.close()
    (folder / "crawl.toml").write_text("")
    return Made(folder, folder / "archive", Ledger(marks=tuple(marks.values()), least=12, most=12))


def url(number: int) -> str:
    return f"http://h{number % 3}.example.org/p/{number}"


def test_every_record_is_a_frame_that_says_its_size_and_has_a_check_sum(crawl: Made) -> None:
    assert crawl.segment.name.endswith("-00000.warc.zst")
    frames = members_of(crawl.segment)
    assert len(frames) == 2 * PAGES + 1
    for frame in frames:
        told = zstandard.get_frame_parameters(frame)
        assert (told.has_checksum, told.dict_id) == (True, 0)
        record = unpacked(frame)
        assert told.content_size == len(record)
        assert (record.startswith(b"WARC/1.1\r\n"), record.count(b"WARC/1.1")) == (True, 1)


def test_the_zstd_command_reads_it_from_front_to_back(crawl: Made) -> None:
    command = shutil.which("zstd")
    if command is None:
        pytest.skip("the zstd command is not there: apt install zstd")
    subprocess.run([command, "-t", "-q", crawl.segment], check=True)
    done = subprocess.run([command, "-dc", crawl.segment], check=True, capture_output=True)
    assert [record.kind for record in read_with_warcio(done.stdout)].count("response") == PAGES - 1


def test_fastwarc_reads_it_and_finds_nothing_wrong(crawl: Made) -> None:
    by_fastwarc = read_with_fastwarc(crawl.segment.read_bytes())
    assert [read.payload for read in by_fastwarc] == [
        read.payload for read in finished_records(crawl.archive)
    ]
    subprocess.run([FASTWARC, "check", "--quiet", crawl.segment], check=True, capture_output=True)


def test_its_index_leads_to_its_records(crawl: Made) -> None:
    lines = (crawl.archive / "index.cdxj").read_text().splitlines()
    assert len(lines) == PAGES
    raw = crawl.segment.read_bytes()
    for line in lines:
        told = json.loads(line.split(" ", 2)[2])
        assert told["filename"] == crawl.segment.name
        at = int(told["offset"])
        (record,) = read_with_warcio(unpacked(raw[at : at + int(told["length"])]))
        assert record.fields["WARC-Target-URI"] == told["url"]


def test_a_growing_one_is_read_up_to_its_last_whole_record(tmp_path: Path) -> None:
    made = make_crawl(tmp_path / "crawl", grows=True, compression="zstd")
    with made.segment.open("ab") as segment:
        segment.write(members_of(made.segment)[2][:100])
    with skitter.open(made.folder) as collection:
        assert [collection.body(url(number)) for number in range(7)] == [page_body(n) for n in range(7)]
    assert [finding.weight for finding in verify(made.collection(), made.ledger).findings] == ["note"]


def test_readers_in_several_threads_do_not_disturb_each_other(crawl: Made) -> None:
    def read(_: int) -> list[bytes]:
        with skitter.open(crawl.folder) as collection:
            return [record.block for _ in range(20) for _, record in collection.records()]

    with ThreadPoolExecutor(4) as threads:
        first, *rest = threads.map(read, range(4))
    assert len(first) == 20 * (2 * PAGES + 1)
    assert all(other == first for other in rest)


# -- both in one folder


def test_a_crawl_whose_setting_changed_is_sound_and_whole(mixed: Made) -> None:
    ends = [segment.name.rpartition("-")[2] for segment in segments_of(mixed.archive)]
    assert sorted(ends) == ["00000.warc.gz", "00001.warc.zst", "00002.warc.gz"]
    assert verify(mixed.collection(), mixed.ledger).findings == []
    with skitter.open(mixed.folder) as collection:
        for number in range(12):
            assert collection.body(url(number)) == page_body(0 if number % 4 == 3 else number)
        assert len(list(collection.pages())) == 12


def index_of(package: zipfile.ZipFile) -> list[dict[str, Any]]:
    lines = gzip.decompress(package.read("indexes/index.cdx.gz")).decode().splitlines()
    assert lines == sorted(lines)
    return [json.loads(line.split(" ", 2)[2]) for line in lines]


@pytest.mark.parametrize("where", ["", "url <> ''"])
def test_a_wacz_of_both_holds_gzip_alone_and_its_index_is_right(
    mixed: Made, tmp_path: Path, where: str
) -> None:
    with mixed.collection() as collection:
        write_wacz(collection, tmp_path / "x.wacz", where, lambda amount: None, SENT_AT)
    package = zipfile.ZipFile(tmp_path / "x.wacz")
    names = [name for name in package.namelist() if name.startswith("archive/")]
    assert len(names) == (1 if where else 3)
    assert all(name.endswith(".warc.gz") for name in names)
    lines = index_of(package)
    assert {line["url"] for line in lines} == {url(number) for number in range(12)}
    for line in lines:
        raw, at = package.read(f"archive/{line['filename']}"), int(line["offset"])
        (record,) = read_with_warcio(gzip.decompress(raw[at : at + int(line["length"])]))
        assert record.fields["WARC-Target-URI"] == line["url"]


def test_a_wacz_of_zstd_holds_the_records_byte_for_byte(crawl: Made, tmp_path: Path) -> None:
    with crawl.collection() as collection:
        write_wacz(collection, tmp_path / "x.wacz", "", lambda amount: None, SENT_AT)
    name = stem_of(crawl.segment.name) + ".warc.gz"
    made = gzip.decompress(zipfile.ZipFile(tmp_path / "x.wacz").read(f"archive/{name}"))
    assert made.replace(name.encode(), crawl.segment.name.encode()) == unpacked(crawl.segment.read_bytes())
    info = next(iter(read_with_warcio(made)))
    assert info.fields["WARC-Filename"] == name


def test_what_is_broken_is_not_exported_and_not_in_the_index(crawl: Made, tmp_path: Path) -> None:
    shutil.copytree(crawl.folder, tmp_path / "crawl")
    copy = Made(tmp_path / "crawl", tmp_path / "crawl" / "archive", crawl.ledger)
    frames = members_of(copy.segment)
    frames[4] = frames[4][:60] + b"\0" + frames[4][61:]
    copy.segment.write_bytes(b"".join(frames))
    with copy.collection() as collection:
        write_wacz(collection, tmp_path / "x.wacz", "", lambda amount: None, SENT_AT)
    lines = index_of(zipfile.ZipFile(tmp_path / "x.wacz"))
    assert {line["url"] for line in lines} == {url(number) for number in range(PAGES) if number != 1}


@pytest.mark.parametrize("worker", ["gzip", "zstd"])
@pytest.mark.parametrize("metadata", [True, False])
def test_parcels_of_a_worker_with_the_other_setting_are_compressed_anew(
    tmp_path: Path, worker: str, metadata: bool
) -> None:
    here = "gzip" if worker == "zstd" else "zstd"
    packer = Packer(ArchiveSettings(compression=worker, metadata=metadata))
    archive = Archive.open(
        tmp_path, ArchiveSettings(compression=here), FakeClock(SENT_AT), (), {}, in_child=False
    )
    for given in (exchange(), exchange("http://a.test/silent", request=b"")):
        archive.place(packer.pack(given, digests_of(given), media_type="text/html"))
    archive.marks()
    archive.committed()
    archive.close()
    (segment,) = segments_of(tmp_path)
    assert coding_of(segment.name).name == here
    kinds = ["warcinfo", "request", "response", "metadata", "response", "metadata"]
    wanted = [kind for kind in kinds if metadata or kind != "metadata"]
    assert [read.kind for read in finished_records(tmp_path)] == wanted
    assert len(members_of(segment)) == len(wanted)


# -- hostile bytes


class Bytes(FolderSource):
    def __init__(self, content: bytes) -> None:
        super().__init__(Path("/"))
        self._content = content

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        return self._content[offset : None if length is None else offset + length]


def frame_that_claims(size: int, content: bytes = b"") -> bytes:
    """RFC 8878 3.1.1: a single segment with a size of eight bytes, and one raw block."""
    block = (1 | len(content) << 3).to_bytes(3, "little")
    return ZSTD.magic + b"\xe0" + size.to_bytes(8, "little") + block + content


@pytest.mark.parametrize("size", [1 << 31, 1 << 50, (1 << 64) - 3])
def test_a_frame_that_claims_any_size_costs_nothing(size: int) -> None:
    raw = frame_that_claims(size, b"WARC/1.1\r\n")
    (found,) = read_members(Bytes(raw), "x.warc.zst", len(raw))
    assert isinstance(found, Broken)
    assert isinstance(inflate(raw, ZSTD), str)


def test_a_record_is_found_behind_damage_also_when_its_first_block_is_long() -> None:
    """Nothing of a compressed block can be read before all of it is there: here 96 KiB."""
    noise = b64encode(random.Random(5).randbytes(300_000))
    record = zstandard.ZstdCompressor(write_checksum=True).compress(b"WARC/1.1\r\n" + noise)
    raw = b"junk" * 20_000 + record
    broken, found = read_members(Bytes(raw), "x.warc.zst", len(raw))
    assert (broken.offset, broken.length, found.offset) == (0, 80_000, 80_000)


def test_names_tell_the_compression() -> None:
    assert tuple(CODINGS) == COMPRESSIONS
    for name, coding in (("a-1.warc.gz", GZIP), ("a-1.warc.zst", ZSTD)):
        assert coding_of(name) is coding_of(f"{name}.open") is coding
        assert (is_segment(name), is_segment(f"{name}.open"), stem_of(name)) == (True, False, "a-1")
    assert coding_of("a.warc.zst-1.warc.gz") is GZIP
