"""The parts of the tables: one Parquet file of each table per stretch of a segment's journal of rows.

A part is called `STEM-START-END.parquet` in the folder of its table, after the segment and the bytes of the
journal that it covers: so the names alone say what is in Parquet, what has yet to be written, and what a power
loss left behind of rows that were never committed. A table is known by its folder. Knows nothing of Parquet
itself; never shows a final name for a part that is not whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from skitter.archive.page_cache import leave_cache

PARQUET = ".parquet"
TEMPORARY = ".tmp"
_NAME = re.compile(r"(.+)-(\d{12})-(\d{12})\.parquet")


class Part(NamedTuple):
    start: int
    end: int
    path: Path


def part_path(folder: Path, table: str, stem: str, start: int, end: int) -> Path:
    return folder / table / f"{stem}-{start:012d}-{end:012d}{PARQUET}"


def table_folders(folder: Path) -> list[Path]:
    """Of every table that the archive has a part of, or had."""
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def parts_of(folder: Path, table: str, stem: str) -> list[Part]:
    """The parts of one segment, in the order of its rows."""
    return sorted(part for of, part in _parts(folder / table) if of == stem)


def all_parts_of(folder: Path, stem: str) -> list[Part]:
    """Those of every table."""
    return [part for table in table_folders(folder) for part in parts_of(folder, table.name, stem)]


def _parts(table: Path) -> Iterator[tuple[str, Part]]:
    for path in table.glob(f"*{PARQUET}"):
        if found := _NAME.fullmatch(path.name):
            yield found[1], Part(int(found[2]), int(found[3]), path)


def discard_parts(folder: Path, stem: str) -> None:
    for part in all_parts_of(folder, stem):
        os.unlink(part.path)


def discard_unfinished(folder: Path) -> None:
    for table in table_folders(folder):
        for path in table.glob(f"*{TEMPORARY}"):
            os.unlink(path)


def recover_parts(folder: Path, tables: Collection[str], stem: str, committed: int) -> int:
    """Up to where all of the tables hold a growing segment's rows; parts beyond that go, and are written again.

    A kill between two tables leaves one of them ahead; a power loss leaves parts of rows that were never
    committed."""
    end = committed
    for table in tables:
        reached = 0
        for part in parts_of(folder, table, stem):
            if part.start == reached and part.end <= committed:
                reached = part.end
        end = min(end, reached)
    for part in all_parts_of(folder, stem):
        if part.end > committed or (part.path.parent.name in tables and part.end > end):
            os.unlink(part.path)
    return end


def write_part(path: Path, content: memoryview) -> None:
    """Whole, on the disk and by its final name, or not at all."""
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_name(path.name + TEMPORARY)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        try:
            at = 0
            while at < len(content):
                at += os.pwrite(fd, content[at:], at)
            os.fsync(fd)
            leave_cache(fd, len(content))
        finally:
            os.close(fd)
    except OSError:
        # On a full disk the half-written file is what stands in the way of the next attempt.
        os.unlink(temporary)
        raise
    os.rename(temporary, path)


def sync_tables(folder: Path) -> None:
    for table in table_folders(folder):
        fd = os.open(table, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
