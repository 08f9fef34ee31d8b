"""The tables as a child process writes them: the same rows, whoever is killed in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import pytest
from pyarrow.parquet import ParquetFile

from skitter.archive import segments as segments_module
from skitter.archive.facts import Facts
from skitter.archive.schema import TABLES as SCHEMA
from skitter.archive.store import Archive
from skitter.archive.tables.parts import part_path
from skitter.archive.tables.table_writer import InChild, Stretch
from skitter.clock import SystemClock
from skitter.errors import ArchiveFailed, FolderInUse
from skitter.faultpoints import ENVIRONMENT
from skitter.model import Link, SegmentMark
from skitter.settings import ArchiveSettings
from tests.exchanges import exchange, stored_in

FACTS = Facts(text="Some text.", links=(("http://a.test/", Link("/", "Home")),))


@pytest.fixture(autouse=True)
def parts_of_ten_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments_module, "ROWS_A_PART", 10)


def opened(folder: Path, marks: tuple[SegmentMark, ...] = (), *, in_child: bool = True) -> Archive:
    return Archive.open(folder, ArchiveSettings(), SystemClock(), marks, {}, in_child=in_child)


def commit(archive: Archive, numbers: range) -> tuple[SegmentMark, ...]:
    for number in numbers:
        stored_in(archive, exchange(f"http://a.test/{number}"), facts=FACTS)
    marks = archive.marks()
    archive.committed()
    archive.rest()
    return marks


TABLES = tuple(table.name for table in SCHEMA)


def told(folder: Path, table: str) -> list[str]:
    rows = [row for path in (folder / table).glob("*") for row in ParquetFile(path).read().to_pylist()]
    return sorted(row["url"] for row in rows)


def urls(count: int) -> list[str]:
    return sorted(f"http://a.test/{number}" for number in range(count))


def child_of(archive: Archive) -> int:
    assert archive.child is not None
    return archive.child


def test_a_child_writes_what_this_process_would(tmp_path: Path) -> None:
    tables = {}
    for name, in_child in (("child", True), ("here", False)):
        archive = opened(tmp_path / name, in_child=in_child)
        commit(archive, range(12))
        assert (archive.child is None) is not in_child
        archive.close()
        tables[name] = [told(tmp_path / name, table) for table in TABLES]
    assert tables["child"] == tables["here"] == [urls(12)] * 3


def test_a_child_stands_back_for_those_who_wait_for_leases(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    commit(archive, range(12))
    child, here = (os.getpriority(os.PRIO_PROCESS, pid) for pid in (child_of(archive), 0))
    archive.close()
    assert child == min(here + 10, 19)


def test_a_killed_child_is_replaced_and_nothing_is_lost_or_told_twice(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    commit(archive, range(12))
    first = child_of(archive)
    os.kill(first, signal.SIGKILL)
    commit(archive, range(12, 24))
    assert child_of(archive) != first
    archive.close()
    assert [told(tmp_path, table) for table in TABLES] == [urls(24)] * 3


def test_children_that_die_between_two_tables_are_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT, "between_parts:1")
    archive = opened(tmp_path)
    commit(archive, range(12))
    assert archive.child is None
    assert [told(tmp_path, table) for table in TABLES] == [urls(12)] * 3
    archive.close()
    assert [told(tmp_path, table) for table in TABLES] == [urls(12)] * 3


def test_the_disks_fault_is_told_by_the_child_as_it_would_be_here(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    (tmp_path / "links").write_text("in the way")
    with pytest.raises(ArchiveFailed, match="cannot be written"):
        commit(archive, range(12))
    (tmp_path / "links").unlink()
    archive.close()


def test_a_journal_that_is_too_short_is_a_fault_and_no_endless_wait(tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(b"\xc1\xff\xff\xff\x7f")
    lock = os.open(tmp_path, os.O_RDONLY)
    writer = InChild(lock, tmp_path)
    stretch = Stretch(str(tmp_path / "rows"), 0, 99, 1000, str(tmp_path), "a.warc.gz", "a", SCHEMA)
    with pytest.raises(OSError, match="shorter"):
        writer.run(stretch)
    writer.close()
    os.close(lock)
    assert not part_path(tmp_path, "pages", "a", 0, 99).exists()


def test_the_child_ends_with_the_archive_and_keeps_others_out_as_long_as_it_lives(tmp_path: Path) -> None:
    archive = opened(tmp_path)
    commit(archive, range(12))
    held = {os.readlink(fd) for fd in Path(f"/proc/{child_of(archive)}/fd").iterdir()}
    assert str(tmp_path) in held
    with pytest.raises(FolderInUse):
        opened(tmp_path)
    child = child_of(archive)
    archive.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    opened(tmp_path / "another").close()


KILLED = """
import os, signal, sys
import msgspec
from pathlib import Path
from skitter.archive import segments
from tests.integration.test_table_writer import commit, opened, stored_in, exchange, FACTS
segments.ROWS_A_PART = 10
archive = opened(Path(sys.argv[1]))
marks = commit(archive, range(12))
for number in range(12, 24):
    stored_in(archive, exchange(f"http://a.test/{number}"), facts=FACTS)
(mark,) = archive.marks()
print(msgspec.json.encode(mark).decode(), flush=True)
archive.committed()
if sys.argv[2] == "stopped":
    os.kill(archive.child, signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("child", ["stopped", "writing"])
def test_a_killed_parent_takes_its_child_along_and_every_row_is_told_once(tmp_path: Path, child: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), tmp_path, child],
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert run.returncode == -signal.SIGKILL
    mark = run.stdout
    archive = opened(tmp_path, (msgspec.json.decode(mark, type=SegmentMark),))
    archive.close()
    assert [told(tmp_path, table) for table in TABLES] == [urls(24)] * 3
