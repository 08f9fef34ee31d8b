"""The archive as a worker uses it, judged by the tools that will read it."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from skitter.archive import store as store_module
from skitter.archive.store import Archive, Archived
from skitter.clock import SystemClock
from skitter.errors import ArchiveFailed, FolderInUse, SettingsError
from skitter.model import Copy, Exchange, SegmentMark
from skitter.settings import ArchiveSettings
from tests.exchanges import BODY, SENT_AT, exchange, finished_records, stored_in

TOOLS = Path(sys.executable).parent


def opened(folder: Path, marks: tuple[SegmentMark, ...] = (), **settings: Any) -> Archive:
    about = {"operator": "Test", "http-header-user-agent": "skitter (+mailto:test@example.org)"}
    return Archive.open(folder, ArchiveSettings(**settings), SystemClock(), marks, about, in_child=False)


def stored(archive: Archive, given: Exchange, original: Copy | None = None) -> Archived:
    return stored_in(archive, given, original=original)


def commit(archive: Archive) -> tuple[SegmentMark, ...]:
    marks = archive.marks()
    archive.committed()
    return marks


def sync(archive: Archive) -> None:
    """As the worker does, until the background has nothing left to do."""
    archive.sync()
    archive.synced()
    archive.rest()


def pages() -> Iterator[Exchange]:
    yield exchange("https://www.example.org/robots.txt", b"User-agent: *\n")
    yield exchange(
        "http://example.org/gzip",
        gzip.compress(BODY, mtime=0),
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
    )
    yield exchange(
        "http://example.org/chunked", head=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    yield exchange("http://example.org/empty", b"", b"HTTP/1.1 404 Not Found\r\n\r\n", status=404)
    yield exchange("http://example.org/h2", head=b"HTTP/2 200 \r\n\r\n", http_version="2")
    yield exchange(
        "http://example.org/odd?b=2&A=%C3%A9",
        random.Random(7).randbytes(5000),
        b"HTTP/1.1 200\nbroken",
        truncated=True,
    )
    yield exchange("http://example.org/silent", request=b"", address="2001:db8::1")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """An archive of several segments with every kind of record."""
    archive = opened(tmp_path, segment_size=3000)
    *others, page = pages()
    for other in others:
        stored(archive, other)
        commit(archive)
    first = stored(archive, page)
    again = exchange("http://example.org/again", page.body, sent_at=SENT_AT + 60)
    stored(archive, again, Copy(page.url, SENT_AT, first.record_id))
    unchanged = exchange("http://example.org/silent", b"", b"HTTP/1.1 304 Not Modified\r\n\r\n", status=304)
    stored(archive, unchanged, Copy(page.url, SENT_AT, first.record_id))
    commit(archive)
    archive.close()
    return tmp_path


def index_lines(path: Path) -> list[tuple[str, str, dict[str, str]]]:
    split = (line.split(" ", 2) for line in path.read_text().splitlines())
    return [(key, stamp, json.loads(fields)) for key, stamp, fields in split]


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.warc.gz"))


def complaints(folder: Path, *command: str) -> str:
    run = [
        subprocess.run([*command, s.name], cwd=folder, capture_output=True, text=True)
        for s in segments(folder)
    ]
    assert len(run) > 2
    return "".join(done.stdout + done.stderr for done in run if done.returncode != 0)


@pytest.mark.parametrize(
    "command",
    [("gzip", "-t"), (str(TOOLS / "warcio"), "check"), (str(TOOLS / "fastwarc"), "check", "--quiet")],
)
def test_validators_find_nothing_wrong(written: Path, command: tuple[str, ...]) -> None:
    assert complaints(written, *command) == ""


def test_warcat_complains_of_nothing_but_what_the_standard_asks_of_revisits(written: Path) -> None:
    """WARC 1.1, 6.7.2: the payload digest of a revisit is that of the payload it leaves out; and it may refer
    to a record of another file. warcat's `VerifyTool` exempts neither (docs/adr/0006-archive.md)."""
    pytest.importorskip("warcat", reason="warcat is not installed")
    said = complaints(written, sys.executable, "-m", "warcat", "verify")
    problems = re.findall(r"VerifyProblem: \('([^']*)", said)
    identical = [r for r in finished_records(written) if r.fields.get("WARC-Profile", "").endswith("digest")]
    assert problems.count("Bad payload digest.") == len(identical) == 1
    assert all(p == "Bad payload digest." or p.startswith("Refer to record ID") for p in problems)


def test_validators_that_know_no_revisits_find_nothing_wrong_where_there_are_none(tmp_path: Path) -> None:
    # They digest the payload of a revisit record, which by its nature is not there.
    pytest.importorskip("warcat", reason="warcat is not installed")
    archive = opened(tmp_path, segment_size=3000)
    for page in pages():
        stored(archive, page)
    commit(archive)
    archive.close()
    assert complaints(tmp_path, str(TOOLS / "fastwarc"), "check", "--quiet", "--verify-payloads") == ""
    assert complaints(tmp_path, sys.executable, "-m", "warcat", "verify") == ""


def test_a_closed_archive_holds_segments_their_indexes_and_one_merged_index(written: Path) -> None:
    names = {path.name for path in written.iterdir()}
    stems = {path.name.removesuffix(".warc.gz") for path in segments(written)}
    tables = {"pages", "links", "text"}
    assert names == {f"{s}.{end}" for s in stems for end in ("warc.gz", "cdxj")} | {"index.cdxj"} | tables
    for table in tables:
        assert {part.name[:-34] for part in (written / table).iterdir()} == stems


def test_every_index_line_leads_to_the_record_it_names(written: Path) -> None:
    bodies = {page.url: page.body for page in pages()}
    lines = index_lines(written / "index.cdxj")
    assert len(lines) == len(bodies) + 2
    for _, stamp, line in lines:
        with (written / line["filename"]).open("rb") as segment:
            segment.seek(int(line["offset"]))
            member = segment.read(int(line["length"]))
        record = next(iter(ArchiveIterator(io.BytesIO(member), check_digests="raise")))
        assert record.rec_headers["WARC-Target-URI"] == line["url"]
        assert record.rec_headers["WARC-Payload-Digest"] == line.get("digest")
        assert record.http_headers.get_statuscode() == line["status"]
        assert record.rec_headers["WARC-Date"].translate({ord(c): None for c in "-:T"})[:14] == stamp
        if line["mime"] == "warc/revisit":
            assert record.rec_type == "revisit"
            assert record.raw_stream.read() == b""
        else:
            assert record.raw_stream.read() == bodies[line["url"]]


def is_metadata(line: str) -> bool:
    return '"mime": "application/warc-fields"' in line


def test_the_index_is_what_the_indexer_of_pywb_makes_of_the_segments(written: Path) -> None:
    command = [str(TOOLS / "cdx-indexer"), "--cdxj", "--sort", *(path.name for path in segments(written))]
    done = subprocess.run(command, cwd=written, capture_output=True, text=True, check=True)
    theirs = sorted(line.split(" ", 2) for line in done.stdout.splitlines() if not is_metadata(line))
    ours = index_lines(written / "index.cdxj")
    assert len(theirs) == len(ours)
    by_place = {(line["filename"], line["offset"]): (key, stamp, line) for key, stamp, line in ours}
    for key, stamp, fields in theirs:
        line = json.loads(fields)
        our_key, our_stamp, our_line = by_place[line["filename"], line["offset"]]
        assert (our_key, our_stamp) == (key, stamp)
        # pywb names no status of a revisit; ours is in the head it stores.
        assert {**line, "status": our_line["status"]} == our_line


def test_indexes_are_sorted_bytewise(written: Path) -> None:
    for index in written.glob("*.cdxj"):
        lines = index.read_bytes().splitlines()
        assert lines == sorted(lines)
        assert lines


def test_every_segment_begins_with_the_only_warcinfo_record_that_its_records_can_mean(written: Path) -> None:
    for segment in segments(written):
        first, *rest = [
            dict(record.rec_headers.headers) for record in ArchiveIterator(io.BytesIO(segment.read_bytes()))
        ]
        assert first["WARC-Type"] == "warcinfo"
        assert first["WARC-Filename"] == segment.name
        assert rest
        assert {fields["WARC-Type"] for fields in rest}.isdisjoint({"warcinfo"})
        assert not any("WARC-Warcinfo-ID" in fields for fields in rest)


def test_a_request_stands_before_its_response_and_is_named_by_it(written: Path) -> None:
    records = [read for read in finished_records(written) if read.kind not in ("warcinfo", "metadata")]
    requests = [read for read in records if read.kind == "request"]
    assert len(requests) == len(list(pages())) - 1 + 2
    for request in requests:
        response = records[records.index(request) + 1]
        assert response.fields["WARC-Concurrent-To"] == request.fields["WARC-Record-ID"]
        assert response.fields["WARC-Target-URI"] == request.fields["WARC-Target-URI"]


def test_a_revisit_record_points_at_the_first_copy(written: Path) -> None:
    records = finished_records(written)
    same, unchanged = [read for read in records if read.kind == "revisit"]
    (first,) = (r for r in records if r.fields["WARC-Record-ID"] == same.fields["WARC-Refers-To"])
    assert same.fields["WARC-Refers-To-Target-URI"] == first.fields["WARC-Target-URI"]
    assert same.fields["WARC-Refers-To-Date"] == first.fields["WARC-Date"]
    assert same.fields["WARC-Payload-Digest"] == first.fields["WARC-Payload-Digest"]
    assert same.fields["WARC-Profile"].endswith("/identical-payload-digest")
    assert unchanged.fields["WARC-Profile"].endswith("/server-not-modified")
    assert "WARC-Payload-Digest" not in unchanged.fields


def test_a_full_segment_is_not_finished_before_its_last_record_is_committed(tmp_path: Path) -> None:
    archive = opened(tmp_path, segment_size=1)
    stored(archive, exchange("http://a.test/1"))
    offered = archive.marks()
    stored(archive, exchange("http://a.test/2"))
    sync(archive)
    assert segments(tmp_path) == []
    archive.committed()
    sync(archive)
    assert [path.name for path in segments(tmp_path)] == [offered[0].segment]
    commit(archive)
    sync(archive)
    assert len(segments(tmp_path)) == 2
    archive.close()


def test_a_full_segment_is_not_finished_before_its_commits_are_on_the_disk(tmp_path: Path) -> None:
    """Else a power loss could leave a finished segment of which the frontier knows nothing."""
    archive = opened(tmp_path, segment_size=1)
    stored(archive, exchange("http://a.test/1"))
    archive.sync_later()()
    commit(archive)
    archive.synced()
    archive.rest()
    assert segments(tmp_path) == []
    sync(archive)
    assert len(segments(tmp_path)) == 1
    archive.close()


def test_an_archive_whose_frontier_could_not_be_synced_leaves_its_segments_open(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    stored(archive, exchange("http://a.test/1"))
    (mark,) = commit(archive)
    archive.close(durable=False)
    assert segments(tmp_path) == []
    opened(tmp_path, (mark,)).close()
    assert [path.name for path in segments(tmp_path)] == [mark.segment]


def test_an_index_that_is_merged_already_is_not_merged_again(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    stored(archive, exchange("http://a.test/1"))
    marks = commit(archive)
    archive.close()
    before = (tmp_path / "index.cdxj").stat().st_ino
    opened(tmp_path, marks).close()
    assert (tmp_path / "index.cdxj").stat().st_ino == before
    archive = opened(tmp_path, marks)
    stored(archive, exchange("http://a.test/2"))
    commit(archive)
    archive.close()
    assert len(index_lines(tmp_path / "index.cdxj")) == 2


def test_indexes_too_long_to_merge_at_every_stop_are_left_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = opened(tmp_path)
    stored(archive, exchange("http://a.test/1"))
    marks = commit(archive)
    archive.close()
    monkeypatch.setattr(store_module, "_MERGED_AT_MOST", 10)
    opened(tmp_path, marks).close()
    assert [path.name for path in tmp_path.glob("*.cdxj")] == [marks[0].segment.replace(".warc.gz", ".cdxj")]


def test_a_record_appended_between_marks_and_committed_waits_for_the_next_commit(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    stored(archive, exchange("http://a.test/1"))
    (first,) = archive.marks()
    late = stored(archive, exchange("http://a.test/2"))
    archive.committed()
    (second,) = archive.marks()
    assert second.segment == first.segment
    assert first.length <= late.record.offset < second.length
    archive.committed()
    assert archive.marks() == ()
    archive.close()


def test_closing_cuts_off_what_was_never_offered_for_commit(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    stored(archive, exchange("http://a.test/kept"))
    commit(archive)
    stored(archive, exchange("http://a.test/dropped"))
    archive.close()
    assert [line["url"] for _, _, line in index_lines(tmp_path / "index.cdxj")] == ["http://a.test/kept"]
    assert len(finished_records(tmp_path)) == 4


def test_closing_leaves_the_fate_of_offered_records_to_the_next_opening(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    stored(archive, exchange("http://a.test/1"))
    marks = archive.marks()
    archive.close()
    assert segments(tmp_path) == []
    reopened = opened(tmp_path, marks)
    reopened.close()
    assert [line["url"] for _, _, line in index_lines(tmp_path / "index.cdxj")] == ["http://a.test/1"]


def test_an_archive_without_records_leaves_an_empty_folder(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    assert archive.marks() == ()
    archive.committed()
    archive.sync()
    archive.close()
    archive.close()
    uncommitted = opened(tmp_path)
    stored(uncommitted, exchange())
    uncommitted.close()
    assert list(tmp_path.iterdir()) == []


def test_serial_numbers_go_on_after_segments_were_moved_away(tmp_path: Path) -> None:
    marks: tuple[SegmentMark, ...] = ()
    for _ in range(2):
        archive = opened(tmp_path, marks)
        stored(archive, exchange())
        marks += commit(archive)
        archive.close()
        for moved in segments(tmp_path):
            moved.unlink()
    assert [mark.segment[-14:] for mark in marks] == ["00000.warc.gz"[-14:].rjust(14, "-"), "-00001.warc.gz"]


def test_an_index_of_more_segments_than_are_opened_at_once_is_merged(tmp_path: Path) -> None:
    archive = opened(tmp_path, segment_size=1)
    for number in range(140):
        stored(archive, exchange(f"http://a.test/{number}", b"x"))
        commit(archive)
    archive.close()
    lines = (tmp_path / "index.cdxj").read_bytes().splitlines()
    assert len(lines) == 140
    assert lines == sorted(lines)
    assert list(tmp_path.glob("*.tmp")) == []


def test_one_archive_at_a_time_writes_to_a_folder(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    with pytest.raises(FolderInUse, match="another process"):
        opened(tmp_path)
    archive.close()
    opened(tmp_path).close()


def test_a_prefix_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="prefix"):
        opened(tmp_path / "a", prefix="../b")


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ArchiveFailed, match="cannot be written"):
        opened(tmp_path / "file" / "archive")
