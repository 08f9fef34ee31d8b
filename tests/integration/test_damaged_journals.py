"""Opening never fails for what lies in a journal: what cannot be read is set aside, and `verify` names it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from skitter.archive.set_aside import FOLDER
from skitter.archive.store import Archive
from skitter.clock import SystemClock
from skitter.collection.collection import Collection
from skitter.collection.verify.archive import verify
from skitter.collection.verify.findings import Ledger
from tests.fuzz.journals import AFTER, SETTINGS, Left, append, damage, go_on, leave_growing
from tests.fuzz.mutation import Mutator
from tests.integration.test_archive_recovery import rows

MARK = b"\xc1"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Left:
    return leave_growing(tmp_path_factory.mktemp("left") / "crawl")


@pytest.fixture
def left(template: Left, tmp_path: Path) -> Left:
    shutil.copytree(template.crawl, tmp_path / "crawl")
    return template._replace(crawl=tmp_path / "crawl")


def journal(left: Left, end: str) -> Path:
    (path,) = (left.crawl / "archive").glob(f"*{end}.open")
    return path


def frames(content: bytes) -> list[int]:
    """Where the frames of a journal begin."""
    found, at = [], 0
    while at < len(content):
        found.append(at)
        at += 5 + int.from_bytes(content[at + 1 : at + 5], "little")
    return found


def overwritten(content: bytes, at: int, new: bytes) -> bytes:
    return content[:at] + new + content[at + len(new) :]


def defects(left: Left) -> list[str]:
    ledger = Ledger(marks=(), least=0, most=1000, running=True)
    return [f"{one.file}: {one.what}" for one in verify(Collection.at(left.crawl), ledger).findings]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a row of garbage": lambda rows: overwritten(rows, frames(rows)[3] + 5, b"garbage" * 9),
    "a list for a URL": lambda rows: rows.replace(b"\xafhttp://a.test/2", b"\x9f" + b"\1" * 15, 1),
    "a length beyond the end": lambda rows: overwritten(rows, frames(rows)[3], MARK + b"\xff\xff\xff\x7f"),
    "a length that is too short": lambda rows: overwritten(rows, frames(rows)[3], MARK + b"\3\0\0\0"),
    "a length that takes the next row": lambda rows: overwritten(
        rows, frames(rows)[3], MARK + (frames(rows)[5] - frames(rows)[3] - 5).to_bytes(4, "little")
    ),
    "a mark that is gone": lambda rows: overwritten(rows, frames(rows)[3], b"x"),
    "a last row that breaks off": lambda rows: overwritten(rows, len(rows) - 40, b"\xdb\xff\xff\xff\xff"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_row_is_set_aside_and_every_other_row_is_in_the_tables(left: Left, name: str) -> None:
    path = journal(left, ".rows")
    before = path.read_bytes()
    path.write_bytes(DAMAGES[name](before))
    assert path.stat().st_size == len(before)
    assert path.read_bytes() != before
    go_on(left)
    told = {row["url"] for row in rows(left.crawl / "archive", "pages")}
    assert AFTER in told
    assert len({*left.urls, AFTER} - told) == 1
    (aside,) = (left.crawl / "archive" / FOLDER).iterdir()
    assert any(f"{FOLDER}/{aside.name}: " in line for line in defects(left))


def test_without_its_heading_a_journal_is_read_by_the_tables_of_now(left: Left) -> None:
    path = journal(left, ".rows")
    path.write_bytes(overwritten(path.read_bytes(), 20, b"\0" * 50))
    go_on(left)
    assert {row["url"] for row in rows(left.crawl / "archive", "pages")} == {*left.urls, AFTER}
    assert len([*(left.crawl / "archive" / FOLDER).iterdir()]) == 1


def test_zeros_where_a_heading_was_do_not_pass_for_rows_that_are_in_tables_already(left: Left) -> None:
    """A journal that was made anew begins with a hole, and has nothing behind it."""
    path = journal(left, ".rows")
    path.write_bytes(overwritten(path.read_bytes(), 0, b"\0" * 5))
    go_on(left)
    assert {row["url"] for row in rows(left.crawl / "archive", "pages")} == {*left.urls, AFTER}
    assert len([*(left.crawl / "archive" / FOLDER).iterdir()]) == 1


def test_a_heading_that_lost_its_check_is_not_believed_what_cannot_be(left: Left) -> None:
    path = journal(left, ".rows")
    content = path.read_bytes()
    changed = content.replace(b"\xa5check", b"\xa5chick", 1).replace(
        b"place.revisit_of", b"place.revisit_\0f", 1
    )
    assert changed.count(b"chick") == changed.count(b"revisit_\0f") == 1
    path.write_bytes(changed)
    go_on(left)
    assert {row["url"] for row in rows(left.crawl / "archive", "pages")} == {*left.urls, AFTER}


def test_a_heading_of_a_version_to_come_is_told_from_a_damaged_one(left: Left) -> None:
    """Of a version that is not this one the check fits; a changed byte leaves a check that does not."""
    path = journal(left, ".rows")
    content = path.read_bytes()
    path.write_bytes(content.replace(b"\xa6format\x02", b"\xa6format\x03", 1))
    assert path.read_bytes() != content
    go_on(left)


def test_a_damaged_index_line_is_set_aside_and_the_index_stays_in_order(left: Left) -> None:
    path = journal(left, ".cdxj")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = b"\0" * (len(lines[2]) - 1) + b"\n"
    path.write_bytes(b"".join(lines))
    go_on(left)
    (index,) = [file for file in (left.crawl / "archive").glob("*.cdxj") if file.name != "index.cdxj"]
    kept = index.read_bytes().splitlines()
    assert kept == sorted(kept)
    assert len(kept) == len(left.urls)
    assert any(f"{FOLDER}/" in line for line in defects(left))


def test_a_damaged_part_is_set_aside_when_a_power_loss_took_commits_of_a_finished_segment(left: Left) -> None:
    folder = left.crawl / "archive"
    archive = Archive.open(folder, SETTINGS, SystemClock(), left.marks, {}, in_child=False)
    append(archive, AFTER)
    archive.marks()
    archive.committed()
    archive.close()
    (part,) = (folder / "text").glob("*.parquet")
    part.write_bytes(b"PAR1" + b"\0" * (part.stat().st_size - 4))
    # the frontier remembers less than was finished
    Archive.open(folder, SETTINGS, SystemClock(), left.marks, {}, in_child=False).close()
    assert [file.name.partition("-")[0] for file in (folder / FOLDER).iterdir()] == ["text"]
    assert {row["url"] for row in rows(folder, "pages")} == {*left.urls}


@pytest.mark.parametrize("seed", range(3))
def test_mutated_journals_open_and_go_on(template: Left, tmp_path: Path, seed: int) -> None:
    mutator = Mutator(seed)
    for number in range(20):
        shutil.copytree(template.crawl, tmp_path / str(number))
        tried = template._replace(crawl=tmp_path / str(number))
        damage(tried, mutator)
        go_on(tried, verified=number == 0)
