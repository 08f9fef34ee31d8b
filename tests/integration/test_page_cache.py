"""What the archive has on the disk does not stay in the system's page cache."""

from __future__ import annotations

import ctypes
import mmap
import os
import random
from pathlib import Path

import pytest

from skitter.archive.page_cache import leave_cache
from skitter.archive.store import Archive
from skitter.archive.tables.parts import write_part
from skitter.clock import SystemClock
from skitter.settings import ArchiveSettings
from tests.exchanges import exchange, stored_in

PAGES = 40
BODY = 100_000


def cached(path: Path) -> int:
    """Pages of a file that are in memory, by `mincore`."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        mapped = mmap.mmap(file.fileno(), size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    count = -(-size // mmap.PAGESIZE)
    found = (ctypes.c_ubyte * count)()
    place = ctypes.c_char.from_buffer(mapped)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mincore(ctypes.c_void_p(ctypes.addressof(place)), ctypes.c_size_t(size), found) == 0
    del place
    mapped.close()
    return sum(one & 1 for one in found)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """On a disk whose files can leave the cache at all: those of a disk in memory cannot."""
    sample = tmp_path / "sample"
    sample.write_bytes(bytes(BODY))
    fd = os.open(sample, os.O_RDWR)
    os.fsync(fd)
    assert cached(sample)
    leave_cache(fd, BODY)
    os.close(fd)
    if cached(sample) > 1:
        pytest.skip("this disk keeps its files in memory")
    return tmp_path


def test_records_leave_the_cache_with_the_sync_and_rows_when_they_are_in_parquet(folder: Path) -> None:
    archive = Archive.open(folder / "archive", ArchiveSettings(), SystemClock(), (), {}, in_child=False)
    rng = random.Random(1)
    for number in range(PAGES):
        stored_in(archive, exchange(f"http://a.test/{number}", rng.randbytes(BODY)))
    archive.marks()
    archive.committed()
    (records,) = (folder / "archive").glob("*.warc.gz.open")
    assert cached(records) > PAGES * BODY // mmap.PAGESIZE
    archive.sync()
    # what lies behind the last whole page of memory may stay
    assert cached(records) <= 1
    (rows,) = (folder / "archive").glob("*.rows.open")
    assert cached(rows), "the next part of the tables is made of them"
    archive.close()
    (finished,) = (folder / "archive").glob("*.warc.gz")
    assert cached(finished) <= 1


def test_a_part_of_a_table_leaves_the_cache(folder: Path) -> None:
    path = folder / "pages" / "part.parquet"
    write_part(path, memoryview(bytes(BODY)))
    assert path.stat().st_size == BODY
    assert cached(path) <= 1


def test_what_was_dropped_is_read_again_from_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * BODY)
    fd = os.open(path, os.O_RDWR)
    os.pwrite(fd, b"b", BODY // 2)  # dirty: advice does not lose it
    leave_cache(fd, BODY)
    os.close(fd)
    content = path.read_bytes()
    assert content.count(b"a") == BODY - 1
    assert content[BODY // 2 : BODY // 2 + 1] == b"b"
