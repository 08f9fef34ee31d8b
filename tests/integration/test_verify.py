"""Verification finds every defect of the validators' matrix in a file of ours, and names its place."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from skitter.collection.verify import identities
from skitter.collection.verify.archive import verify
from skitter.collection.verify.findings import Finding, Ledger, Weight
from skitter.collection.verify.indexes import names_host
from skitter.model import SegmentMark
from tests.archives import Made, add_tables, is_gzip, make_crawl, members_of, packed
from tests.corpora import corpus
from tests.exchanges import unpacked

# In these files the members are: warcinfo, then request and response of each page.
RESPONSE = 4
LAST = -1


@pytest.fixture(scope="module", params=["gzip", "zstd"])
def sound(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_crawl(tmp_path_factory.mktemp("sound") / "crawl", compression=request.param)


@pytest.fixture
def crawl(sound: Made, tmp_path: Path) -> Made:
    """A copy of its own to damage."""
    shutil.copytree(sound.folder, tmp_path / "crawl")
    return Made(tmp_path / "crawl", tmp_path / "crawl" / "archive", sound.ledger)


def findings(crawl: Made, ledger: Ledger | None = None) -> list[Finding]:
    return verify(crawl.collection(), ledger or crawl.ledger).findings


def defects(crawl: Made) -> list[str]:
    return [f"{f.file}@{f.offset}: {f.what}" for f in findings(crawl) if f.weight is Weight.DEFECT]


def test_a_sound_archive_has_no_findings(sound: Made) -> None:
    report = verify(sound.collection(), sound.ledger)
    assert report.findings == []
    assert report.records == {"warcinfo": 1, "request": 8, "response": 7, "revisit": 1}
    assert report.index_lines == 8


def edit(number: int, change: Callable[[bytes], bytes]) -> Callable[[list[bytes]], list[bytes]]:
    def damage(members: list[bytes]) -> list[bytes]:
        record = unpacked(members[number])
        changed = change(record)
        assert changed != record
        members[number] = packed(changed, members[number])
        return members

    return damage


def without(field: bytes) -> Callable[[bytes], bytes]:
    return lambda record: re.sub(rb"%b: [^\r]*\r\n" % field, b"", record)


def longer(by: int) -> Callable[[bytes], bytes]:
    def change(record: bytes) -> bytes:
        return re.sub(
            rb"Content-Length: (\d+)", lambda n: b"Content-Length: %d" % (int(n[1]) + by), record, count=1
        )

    return change


def flipped(members: list[bytes], number: int, at: int) -> list[bytes]:
    member = bytearray(members[number])
    member[at] ^= 0x10
    members[number] = bytes(member)
    return members


def same_id(members: list[bytes]) -> list[bytes]:
    first, second = unpacked(members[2]), unpacked(members[RESPONSE])
    ident = re.search(rb"WARC-Record-ID: (<[^>]+>)", first)
    assert ident
    renamed = re.sub(rb"WARC-Record-ID: <[^>]+>", b"WARC-Record-ID: " + ident[1], second)
    members[RESPONSE] = packed(renamed, members[RESPONSE])
    return members


def no_digests(record: bytes) -> bytes:
    return without(b"WARC-Payload-Digest")(without(b"WARC-Block-Digest")(record))


def flip_payload(record: bytes) -> bytes:
    return record.replace(b"Words of page", b"Wards of page")


MATRIX: dict[str, tuple[Callable[[list[bytes]], list[bytes]], int | None, str]] = {
    # name in the corpus: the same defect, the member it lies in, what verify says
    "01-truncated-mid-last-record": (lambda m: [*m[:LAST], m[LAST][:-20]], 16, "breaks off"),
    "02-truncated-at-record-boundary": (lambda m: m[:LAST], None, "committed bytes are missing"),
    "03-payload-byte-flipped(recompressed)": (
        edit(RESPONSE, flip_payload),
        RESPONSE,
        "block digest is wrong",
    ),
    "04-gzip-crc-flipped": (
        lambda m: flipped(m, RESPONSE, -6 if is_gzip(m[0]) else -2),
        RESPONSE,
        "check sum",
    ),
    "05-gzip-deflate-bits-flipped": (lambda m: flipped(m, RESPONSE, 60), RESPONSE, "gzip"),
    "06-content-length-too-small": (edit(RESPONSE, longer(-5)), RESPONSE, "Content-Length is too small"),
    "07-content-length-too-large": (edit(RESPONSE, longer(50)), RESPONSE, "bytes follow"),
    "08-missing-WARC-Date": (edit(RESPONSE, without(b"WARC-Date")), RESPONSE, "no WARC-Date"),
    "09-missing-WARC-Record-ID": (edit(RESPONSE, without(b"WARC-Record-ID")), RESPONSE, "no WARC-Record-ID"),
    "10-duplicate-Record-ID": (same_id, RESPONSE, "is also that of"),
    "11-whole-file-one-gzip-member": (
        lambda m: [packed(b"".join(map(unpacked, m)), m[0])],
        0,
        "more than one record",
    ),
    "12-trailing-zeros": (lambda m: [*m, bytes(512)], 17, "zeros"),
    "13-trailing-garbage": (lambda m: [*m, b"garbage" * 20], 17, "not a gzip member"),
    "14-unknown-WARC-Type": (
        edit(RESPONSE, lambda r: r.replace(b"WARC-Type: response", b"WARC-Type: answers!")),
        RESPONSE,
        "WARC-Type is 'answers!'",
    ),
    "15-bad-WARC-Date-format": (
        edit(RESPONSE, lambda r: re.sub(rb"WARC-Date: [^\r]*", b"WARC-Date: 02/01/2026 03:04", r)),
        RESPONSE,
        "WARC-Date is '02/01/2026 03:04'",
    ),
    "16-missing-record-separator": (edit(RESPONSE, lambda r: r[:-4]), RESPONSE, "two line ends"),
    "17-record-dropped-from-middle": (lambda m: m[:3] + m[5:], None, "no response or revisit record begins"),
    "18-no-digest-headers": (edit(RESPONSE, no_digests), RESPONSE, "no WARC-Block-Digest"),
    "19-payload-flip-no-digests": (
        edit(RESPONSE, lambda r: flip_payload(no_digests(r))),
        RESPONSE,
        "no WARC-Payload-Digest",
    ),
    "20-empty-file": (lambda m: [], None, "the file is empty"),
}


def in_zstd(words: str) -> str:
    return words.replace("gzip member", "zstd frame").replace("gzip", "zstd")


def test_every_defect_of_the_matrix_is_tried_here() -> None:
    names = json.loads((corpus("warc-validator-matrix") / "exit_codes.json").read_text())
    assert set(names) - {"00-valid"} == set(MATRIX)


@pytest.mark.parametrize("name", MATRIX)
def test_a_defect_is_named_with_its_place(name: str, crawl: Made) -> None:
    damage, member, words = MATRIX[name]
    members = members_of(crawl.segment)
    words = words if is_gzip(members[0]) else in_zstd(words)
    place = sum(map(len, members[:member])) if member is not None else None
    crawl.segment.write_bytes(b"".join(damage(members)))
    found = [f for f in findings(crawl) if f.weight is Weight.DEFECT and words in f.what]
    assert found, defects(crawl)
    if place is not None:
        assert (found[0].file, found[0].offset) == (crawl.segment.name, place)


@pytest.mark.parametrize("name", MATRIX)
def test_a_defect_is_seen_by_another_means_than_the_frontier(name: str, crawl: Made) -> None:
    """An archive that was copied without its frontier is judged by itself and its indexes."""
    damage, _, _ = MATRIX[name]
    crawl.segment.write_bytes(b"".join(damage(members_of(crawl.segment))))
    assert verify(crawl.collection(), None).defects


def test_one_bad_member_does_not_hide_the_next(crawl: Made) -> None:
    members = flipped(flipped(members_of(crawl.segment), 4, 60), 8, 60)
    crawl.segment.write_bytes(b"".join(members))
    broken = [f for f in findings(crawl) if "unreadable" in f.what]
    assert [f.offset for f in broken] == [sum(map(len, members[:n])) for n in (4, 8)]


def test_reading_goes_on_at_a_record_not_at_any_member(crawl: Made) -> None:
    members = members_of(crawl.segment)
    junk = b"junk" + packed(b"a page that was served compressed", members[0])
    crawl.segment.write_bytes(b"".join([*members[:3], junk, *members[3:]]))
    (broken,) = [f for f in findings(crawl) if "unreadable" in f.what]
    what = f"not a gzip member ({len(junk)} bytes unreadable)"
    what = what if is_gzip(members[0]) else in_zstd(what)
    assert (broken.offset, broken.what) == (sum(map(len, members[:3])), what)


def test_a_revisit_of_nothing_is_found(crawl: Made) -> None:
    members = members_of(crawl.segment)
    damage = edit(LAST, lambda r: re.sub(rb"Refers-To: <urn:uuid:.", b"Refers-To: <urn:uuid:z", r))
    crawl.segment.write_bytes(b"".join(damage(members)))
    assert any("WARC-Refers-To names a record that is not" in text for text in defects(crawl))


def test_a_revisit_with_another_digest_than_its_original_is_found(crawl: Made) -> None:
    members = members_of(crawl.segment)
    damage = edit(LAST, lambda r: re.sub(rb"Payload-Digest: sha256:..", b"Payload-Digest: sha256:22", r))
    crawl.segment.write_bytes(b"".join(damage(members)))
    assert any("not its original's" in text for text in defects(crawl))


def test_a_request_without_its_response_is_found(crawl: Made) -> None:
    members = members_of(crawl.segment)
    crawl.segment.write_bytes(b"".join(members[:LAST]))
    assert any("a request without its response" in text for text in defects(crawl))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (rb'"offset": "(\d+)"', rb'"offset": "1\1"', "no response or revisit record begins"),
        (rb'"length": "(\d+)"', rb'"length": "1\1"', "length is not the record's"),
        (rb'"status": "200"', rb'"status": "404"', "status is not the record's"),
        (rb"org/p/3", rb"org/p/4", "URL is not the record's"),
        (rb"\)/p/3", rb")/p/4", "the key is not that of http://h0.example.org/p/3"),
        (
            rb'org,example,h0\)/p/3 (\d+ \{"url": "http://)h0.example',
            rb"org,wexample)/p/3 \1wwww.example",
            "the key is not that of http://wwww.example.org/p/3",
        ),
        (rb"\{", rb"[", "not an index line"),
    ],
)
def test_an_index_line_that_names_another_record_is_found(
    before: bytes, after: bytes, words: str, crawl: Made
) -> None:
    (index,) = (path for path in crawl.archive.glob("*.cdxj") if path.name != "index.cdxj")
    index.write_bytes(re.sub(before, after, index.read_bytes(), count=1))
    found = defects(crawl)
    assert any(words in text and text.startswith(index.name) for text in found), found
    assert any(text.startswith("index.cdxj@") for text in found), "the merged index differs from it now"


def test_lines_out_of_order_and_missing_lines_are_found(crawl: Made) -> None:
    (index,) = (path for path in crawl.archive.glob("*.cdxj") if path.name != "index.cdxj")
    lines = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(b"".join(reversed(lines[1:])))
    found = defects(crawl)
    assert any("not in order" in text for text in found)
    assert any("the record has no line" in text for text in found)


def test_rows_are_compared_with_their_records(crawl: Made) -> None:
    add_tables(crawl)
    assert defects(crawl) == []
    part = crawl.archive / "pages" / "part-0.parquet"
    table = parquet.read_table(part)
    rows = table.to_pylist()
    rows[1]["fetch_status"] = 500
    rows[2]["warc_record_offset"] += 1
    rows[3] = rows[4]
    parquet.write_table(pyarrow.Table.from_pylist(rows, schema=table.schema), part)
    found = defects(crawl)
    for words in ("status is not", "no record begins at", "a second row", "has no row in the pages table"):
        assert any(words in text for text in found), (words, found)


def test_a_row_under_the_key_of_another_host_is_found(crawl: Made) -> None:
    add_tables(crawl)
    part = crawl.archive / "pages" / "part-0.parquet"
    table = parquet.read_table(part)
    rows = table.to_pylist()
    rows[1]["url_surtkey"] = "org,other)/p/1"
    parquet.write_table(pyarrow.Table.from_pylist(rows, schema=table.schema), part)
    assert [text for text in defects(crawl) if "url_surtkey is not that of the URL" in text]


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("http://wwww.archive.org/", False),
        ("http://archive.org/", True),
        ("http://www12.archive.org:80/", True),
        ("http://archive.org./", True),
        ("http://x.archive.org/", False),
        ("http://xarchive.org/", False),
        ("http://warchive.org/", False),
    ],
)
def test_a_key_is_of_its_host_whatever_wrote_it(url: str, named: bool) -> None:
    assert names_host("org,archive)/", url) is named


def test_a_damaged_table_is_named(crawl: Made) -> None:
    add_tables(crawl)
    part = crawl.archive / "text" / "part-0.parquet"
    part.write_bytes(part.read_bytes()[:-100])
    assert [text for text in defects(crawl) if text.startswith("text/part-0.parquet@None: unreadable")]


def test_what_the_frontier_counts_is_compared(crawl: Made) -> None:
    more = Ledger(marks=crawl.ledger.marks, least=9, most=9)
    (found,) = findings(crawl, more)
    assert found.what == "8 answers are archived, the frontier counts 9"


def test_a_missing_segment_is_found(crawl: Made) -> None:
    crawl.segment.unlink()
    for index in crawl.archive.glob("*.cdxj"):
        index.unlink()
    assert any("is gone with" in text for text in defects(crawl))


def test_debris_is_noted_and_no_defect(crawl: Made) -> None:
    (crawl.archive / "index.cdxj.tmp").write_bytes(b"half")
    (crawl.archive / "notes.txt").write_bytes(b"mine")
    found = findings(crawl)
    assert {(f.file, f.weight) for f in found} == {
        ("index.cdxj.tmp", Weight.NOTE),
        ("notes.txt", Weight.NOTE),
    }


def test_a_growing_segment_is_verified_up_to_its_mark(tmp_path: Path) -> None:
    made = make_crawl(tmp_path / "crawl", grows=True)
    assert [f for f in findings(made) if f.weight is Weight.DEFECT] == []
    with made.segment.open("ab") as segment:
        segment.write(b"not committed")
    (note,) = findings(made)
    assert (note.weight, note.what) == (
        Weight.NOTE,
        "13 bytes follow the committed ones: the next crawl cuts them off",
    )


def test_a_segment_that_is_finished_while_it_is_verified_is_no_defect(tmp_path: Path) -> None:
    made = make_crawl(tmp_path / "crawl", grows=True)
    (journal,) = made.archive.glob("*.cdxj.open")
    (mark,) = made.ledger.marks
    cut = members_of(made.segment)[:7]
    earlier = Ledger(
        marks=(SegmentMark(mark.segment, sum(map(len, cut)), 700),), least=0, most=8, running=True
    )
    collection = made.collection()
    os.rename(made.segment, made.segment.with_suffix(""))
    journal.with_suffix("").write_bytes(b"".join(sorted(journal.read_bytes().splitlines(keepends=True))))
    journal.unlink()
    report = verify(collection, earlier)
    assert report.findings == []
    assert report.answers == 3


def test_ids_are_compared_across_segments_also_from_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identities, "_MOST_IN_MEMORY", 100)
    made = make_crawl(tmp_path / "crawl", pages=20, segment_size=2000)
    segments = sorted(made.archive.glob("*.warc.gz"))
    assert len(segments) > 3
    assert findings(made) == []
    (segments[2]).write_bytes(segments[1].read_bytes())
    assert any("WARC-Record-ID is also that of" in text for text in defects(made))
