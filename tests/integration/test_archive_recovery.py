"""Exactly what was committed, whatever killed the writer: real processes, real signals, a real full disk."""

from __future__ import annotations

import itertools
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pyarrow.parquet import ParquetFile

from skitter.archive import segments as segments_module
from skitter.archive.facts import Facts
from skitter.archive.store import Archive
from skitter.clock import SystemClock
from skitter.errors import ArchiveFailed, DiskFull
from skitter.model import Link, SegmentMark
from skitter.settings import ArchiveSettings
from tests.exchanges import exchange, finished_records, stored_in, unpacked

# The calls by which the archive changes the disk; a kill before each of them is every state it can leave.
DISK_CALLS = ("open", "pwrite", "ftruncate", "truncate", "fsync", "rename", "unlink")
SMALL = ArchiveSettings(segment_size=2200)
SMALL_ZSTD = ArchiveSettings(segment_size=2200, compression="zstd")
over_both = pytest.mark.parametrize("settings", [SMALL, SMALL_ZSTD], ids=["gzip", "zstd"])


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory where there is one: a killed process leaves the same there, and no sync waits."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        yield Path(folder)


class Ledger:
    """What a frontier does with marks: commits them with the pages, in one write. Kept in a file of lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._write = os.write

    def commit(self, marks: tuple[SegmentMark, ...], urls: list[str]) -> None:
        line = json.dumps([[[m.segment, m.length, m.index_length, m.rows_length] for m in marks], urls])
        with self._path.open("ab", buffering=0) as out:
            self._write(out.fileno(), line.encode() + b"\n")

    def _lines(self) -> list[Any]:
        written = self._path.read_bytes() if self._path.exists() else b""
        return [json.loads(line) for line in written.splitlines(keepends=True) if line.endswith(b"\n")]

    def marks(self) -> list[SegmentMark]:
        return list({m[0]: SegmentMark(*m) for marks, _ in self._lines() for m in marks}.values())

    def urls(self) -> list[str]:
        return [url for _, urls in self._lines() for url in urls]


def opened(folder: Path, ledger: Ledger, settings: ArchiveSettings = SMALL) -> Archive:
    return Archive.open(folder, settings, SystemClock(), ledger.marks(), {}, in_child=False)


def crawl(archive: Archive, ledger: Ledger, rounds: Iterator[int]) -> None:
    """Three pages a commit, as a worker would; the last page of a round is appended while it commits."""
    late: list[str] = []
    for number in rounds:
        urls = [f"http://a.test/{os.getpid()}/{number}/{page}" for page in range(3)]
        for url in urls[:2]:
            append(archive, url)
        marks = archive.marks()
        append(archive, urls[2])
        ledger.commit(marks, late + urls[:2])
        archive.committed()
        late = urls[2:]
        if number % 2:
            archive.sync()
            archive.synced()
            archive.rest()


def append(archive: Archive, url: str) -> None:
    body = url.encode() * 20
    facts = Facts(text=url, links=((f"{url}/next", Link("next", "Next")),))
    stored_in(archive, exchange(url, body), facts=facts)


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    """All of a table's rows, by another reader than the one that recovery uses."""
    parts = sorted((folder / table).glob("*"))
    assert all(part.suffix == ".parquet" for part in parts)
    return [row for part in parts for row in ParquetFile(part).read().to_pylist()]


def assert_tables_hold_exactly(folder: Path, urls: list[str]) -> None:
    for table in ("pages", "links", "text"):
        assert Counter(row["url"] for row in rows(folder, table)) == Counter(urls), table
    for row in rows(folder, "pages"):
        with (folder / row["warc_filename"]).open("rb") as segment:
            segment.seek(row["warc_record_offset"])
            record = unpacked(segment.read(row["warc_record_length"]))
        assert f"WARC-Target-URI: {row['url']}\r\n".encode() in record
    for row in rows(folder, "links"):
        assert [link["target"] for link in row["links"]] == [f"{row['url']}/next"]


def assert_holds_exactly(folder: Path, urls: list[str]) -> None:
    """No page more or less, whole files, true indexes, no debris."""
    responses = [read for read in finished_records(folder) if read.kind == "response"]
    assert Counter(read.fields["WARC-Target-URI"] for read in responses) == Counter(urls)
    names = {path.name for path in folder.iterdir()}
    segments = {name for name in names if name.endswith((".warc.gz", ".warc.zst"))}
    stems = {name.partition(".")[0] for name in segments}
    expected = segments | {f"{stem}.cdxj" for stem in stems}
    assert len(stems) == len(segments)
    assert names - {"pages", "links", "text"} == (expected | {"index.cdxj"} if stems else set())
    assert_tables_hold_exactly(folder, urls)
    lines = (folder / "index.cdxj").read_text().splitlines() if stems else []
    assert lines == sorted(
        line for stem in stems for line in (folder / f"{stem}.cdxj").read_text().splitlines()
    )
    rows = [json.loads(line.split(" ", 2)[2]) for line in lines]
    assert Counter(row["url"] for row in rows) == Counter(urls)
    for row in rows:
        with (folder / row["filename"]).open("rb") as segment:
            segment.seek(int(row["offset"]))
            record = unpacked(segment.read(int(row["length"])))
        assert f"WARC-Target-URI: {row['url']}\r\n".encode() in record


def in_a_process(work: Callable[[], None]) -> int:
    """Runs the work in a child; the signal that ended it, or 0."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def kill_before_disk_call(number: int) -> None:
    """From here on, this process dies by SIGKILL before, or in the middle of, its `number`th disk call."""
    left, pwrite = number, os.pwrite

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                if call is pwrite:
                    call(args[0], args[1][: len(args[1]) // 2], args[2])
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return instead

    for name in DISK_CALLS:
        setattr(os, name, dying(getattr(os, name)))


def test_a_kill_before_any_change_to_the_disk_loses_and_doubles_nothing(memory: Path) -> None:
    """Every other time, who comes after wants another compression."""
    number, killed = 0, True
    while killed:
        number += 1
        folder, ledger = memory / f"{number}", Ledger(memory / f"{number}.ledger")

        def work(folder: Path = folder, ledger: Ledger = ledger, number: int = number) -> None:
            kill_before_disk_call(number)
            archive = opened(folder, ledger)
            crawl(archive, ledger, iter(range(2)))
            archive.close()

        killed = in_a_process(work) == signal.SIGKILL
        opened(folder, ledger, (SMALL, SMALL_ZSTD)[number % 2]).close()
        assert_holds_exactly(folder, ledger.urls())
    assert number > 80


@over_both
def test_a_kill_during_recovery_loses_and_doubles_nothing(memory: Path, settings: ArchiveSettings) -> None:
    number, killed = 0, True
    while killed:
        number += 1
        folder, ledger = memory / f"{number}", Ledger(memory / f"{number}.ledger")

        def interrupted(folder: Path = folder, ledger: Ledger = ledger) -> None:
            archive = opened(folder, ledger, replace(settings, segment_size=1500))
            for page in range(3):
                append(archive, f"http://a.test/{page}")
            ledger.commit(archive.marks(), [f"http://a.test/{page}" for page in range(3)])
            append(archive, "http://a.test/uncommitted")
            os.kill(os.getpid(), signal.SIGKILL)

        def recovering(folder: Path = folder, ledger: Ledger = ledger, number: int = number) -> None:
            kill_before_disk_call(number)
            opened(folder, ledger).close()

        assert in_a_process(interrupted) == signal.SIGKILL
        killed = in_a_process(recovering) == signal.SIGKILL
        opened(folder, ledger).close()
        assert_holds_exactly(folder, ledger.urls())
    assert number > 15


def test_kills_at_random_moments_leave_exactly_the_committed_records(memory: Path) -> None:
    """Every other run wants another compression than the one before."""
    folder, ledger, pause = memory / "archive", Ledger(memory / "ledger"), random.Random(11)
    for run in range(8):
        before = len(ledger.urls())
        child = os.fork()
        if child == 0:
            crawl(opened(folder, ledger, (SMALL, SMALL_ZSTD)[run % 2]), ledger, iter(range(1_000_000)))
            os._exit(1)
        wanted = before + pause.randrange(1, 40)
        while len(ledger.urls()) < wanted:
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    opened(folder, ledger).close()
    assert len(ledger.urls()) > 30
    assert_holds_exactly(folder, ledger.urls())


@over_both
def test_commits_lost_in_a_power_loss_take_their_records_along_even_from_finished_segments(
    tmp_path: Path, settings: ArchiveSettings
) -> None:
    """The log of commits is cut after each of its lines in turn, as if the disk had not kept the rest."""
    whole = Ledger(tmp_path / "whole")
    archive = opened(tmp_path / "archive", whole, settings)
    crawl(archive, whole, iter(range(12)))
    archive.close()
    lines = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    for kept in range(1, len(lines)):
        folder = tmp_path / f"{kept}"
        shutil.copytree(tmp_path / "archive", folder)
        ledger = Ledger(tmp_path / f"ledger-{kept}")
        (tmp_path / f"ledger-{kept}").write_bytes(b"".join(lines[:kept]))
        opened(folder, ledger).close()
        assert_holds_exactly(folder, ledger.urls())


def test_segments_of_an_earlier_frontier_are_left_alone(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    archive = opened(tmp_path / "archive", ledger)
    crawl(archive, ledger, iter(range(4)))
    archive.close()
    before = sorted(path.name for path in (tmp_path / "archive").iterdir())
    opened(tmp_path / "archive", Ledger(tmp_path / "new")).close()
    assert sorted(path.name for path in (tmp_path / "archive").iterdir()) == before


def test_the_newest_segment_with_room_is_continued_and_the_others_are_finished(tmp_path: Path) -> None:
    folder, ledger = tmp_path / "archive", Ledger(tmp_path / "ledger")

    def work() -> None:
        archive = opened(folder, ledger)
        for page in range(5):
            append(archive, f"http://a.test/{page}")
        ledger.commit(archive.marks(), [f"http://a.test/{page}" for page in range(5)])
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_a_process(work) == signal.SIGKILL
    growing = sorted(folder.glob("*.warc.gz.open"))
    assert len(growing) == 3
    archive = opened(folder, ledger)
    assert list(folder.glob("*.warc.gz.open")) == growing[2:]
    append(archive, "http://a.test/5")
    (mark,) = archive.marks()
    assert growing[2].name == f"{mark.segment}.open"
    ledger.commit((mark,), ["http://a.test/5"])
    archive.committed()
    archive.close()
    assert_holds_exactly(folder, ledger.urls())


def abandoned(folder: Path, settings: ArchiveSettings = SMALL) -> SegmentMark:
    """A committed segment whose writer was killed."""
    ledger = Ledger(folder.with_suffix(".ledger"))

    def work() -> None:
        archive = opened(folder, ledger, settings)
        append(archive, "http://a.test/")
        ledger.commit(archive.marks(), ["http://a.test/"])
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_a_process(work) == signal.SIGKILL
    (mark,) = ledger.marks()
    return mark


@pytest.mark.parametrize("end", [".warc.gz.open", ".warc.zst.open", ".cdxj.open", ".rows.open"])
def test_bytes_that_a_power_loss_took_are_reported_and_nothing_is_removed(tmp_path: Path, end: str) -> None:
    folder = tmp_path / "archive"
    mark = abandoned(folder, SMALL_ZSTD if ".zst" in end else SMALL)
    path = folder / (mark.segment.partition(".")[0] + end)
    os.truncate(path, path.stat().st_size - 7)
    before = {each.name: each.read_bytes() for each in folder.iterdir()}
    with pytest.raises(ArchiveFailed, match=rf"{end} lacks 7 of its \d+ committed bytes.*put back") as failed:
        Archive.open(folder, SMALL, SystemClock(), [mark], {}, in_child=False)
    assert "\n" not in str(failed.value)
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == before


def test_a_committed_segment_that_is_gone_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ArchiveFailed, match="is gone with its 900 committed bytes"):
        Archive.open(
            tmp_path,
            SMALL,
            SystemClock(),
            [SegmentMark("a-20260101000000-00000.warc.gz", 900, 90)],
            {},
            in_child=False,
        )


@over_both
def test_a_segment_that_does_not_begin_as_one_is_reported(tmp_path: Path, settings: ArchiveSettings) -> None:
    folder = tmp_path / "archive"
    mark = abandoned(folder, settings)
    (folder / f"{mark.segment}.open").write_bytes(b"\0" * mark.length)
    with pytest.raises(ArchiveFailed, match="does not begin with a warcinfo record"):
        Archive.open(folder, SMALL, SystemClock(), [mark], {}, in_child=False)


@pytest.mark.parametrize("before", [SMALL, SMALL_ZSTD], ids=["to zstd", "to gzip"])
def test_a_segment_is_finished_in_the_compression_it_was_begun_with(
    tmp_path: Path, before: ArchiveSettings
) -> None:
    folder = tmp_path / "archive"
    begun = abandoned(folder, before).segment
    ledger = Ledger(folder.with_suffix(".ledger"))
    archive = opened(folder, ledger, SMALL if before is SMALL_ZSTD else SMALL_ZSTD)
    assert (folder / begun).exists()
    append(archive, "http://a.test/after")
    (mark,) = archive.marks()
    assert mark.segment.partition(".")[2] != begun.partition(".")[2]
    commit(archive, ledger, "http://a.test/after")
    archive.close()
    assert_holds_exactly(folder, ledger.urls())


def test_rows_of_another_version_are_refused_in_words_and_nothing_is_changed(tmp_path: Path) -> None:
    """The version before wrote rows without a heading, as frames of an array of 33 values."""
    folder = tmp_path / "archive"
    mark = abandoned(folder)
    (journal,) = folder.glob("*.rows.open")
    earlier = b"\xc1" + (mark.rows_length - 5).to_bytes(4, "little") + b"\xdc\0\x21"
    journal.write_bytes(earlier.ljust(mark.rows_length, b"\xa0"))
    before = {each.name: each.read_bytes() for each in folder.iterdir()}
    with pytest.raises(
        ArchiveFailed, match=r"another version of skitter.*run the crawl once more with that version"
    ):
        Archive.open(folder, SMALL, SystemClock(), [mark], {}, in_child=False)
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == before


def commit(archive: Archive, ledger: Ledger, url: str) -> None:
    ledger.commit(archive.marks(), [url])
    archive.committed()


def test_a_file_size_limit_refuses_the_commit_and_leaves_nothing_of_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    archive = opened(tmp_path / "archive", ledger, ArchiveSettings())
    append(archive, "http://a.test/1")
    (before,) = archive.marks()
    commit(archive, ledger, "http://a.test/1")
    append(archive, "http://a.test/refused")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (before.length + 600, hard))
    try:
        with pytest.raises(DiskFull, match=str(tmp_path)):
            archive.marks()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    archive.close()
    assert_holds_exactly(tmp_path / "archive", ["http://a.test/1"])
    archive = opened(tmp_path / "archive", ledger, ArchiveSettings())
    append(archive, "http://a.test/2")
    commit(archive, ledger, "http://a.test/2")
    archive.close()
    assert_holds_exactly(tmp_path / "archive", ledger.urls())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting a small tmpfs needs root")
    yield tmp_path
    # Lazily: a test that failed may hold files open.
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def append_without_end(archive: Archive, ledger: Ledger) -> None:
    noise = random.Random(3).randbytes(3000)
    for number in itertools.count():
        url = f"http://a.test/{number}"
        facts = Facts(text=url, links=((f"{url}/next", Link("next")),))
        sent = exchange(url=url, body=noise + url.encode())
        stored_in(archive, sent, facts=facts)
        commit(archive, ledger, url)


def test_a_full_disk_refuses_commits_until_there_is_room_again(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(500_000))
    folder, ledger = small_disk / "archive", Ledger(Path(f"{small_disk}.ledger"))
    archive = opened(folder, ledger, ArchiveSettings(segment_size=9_000))
    with pytest.raises(DiskFull, match=r"no room left in \S*archive "):
        append_without_end(archive, ledger)
    filled = len(ledger.urls())
    assert filled > 5
    with pytest.raises(DiskFull):
        append_without_end(archive, ledger)
    assert len(ledger.urls()) == filled
    ballast.unlink()
    archive.close()
    archive = opened(folder, ledger, ArchiveSettings(segment_size=9_000))
    append(archive, "http://a.test/after")
    commit(archive, ledger, "http://a.test/after")
    archive.close()
    assert_holds_exactly(folder, ledger.urls())


def test_every_other_error_of_the_disk_is_a_failure_of_the_archive(tmp_path: Path) -> None:
    error = segments_module.fault(tmp_path, OSError(5, "Input/output error"))
    assert type(error) is ArchiveFailed
    for number in (28, 122, 27):
        assert type(segments_module.fault(tmp_path, OSError(number, "full"))) is DiskFull
