"""A write-ahead log with garbage at its end: the store opens, at once, with all that was committed."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from skitter.errors import StoreFailed
from skitter.frontier.stores.rocks import RocksStore
from skitter.frontier.stores.rocks_log_tail import unreadable_from
from skitter.frontier.tables.memory_plan import MemoryPlan
from skitter.settings import FrontierSettings

MEMORY = MemoryPlan.of(FrontierSettings())
WRITE_AND_DIE = """
import os, sys
from pathlib import Path
from skitter.frontier.tables.memory_plan import MemoryPlan
from skitter.frontier.stores.rocks import RocksStore
from skitter.settings import FrontierSettings
store = RocksStore(Path(sys.argv[1]), MemoryPlan.of(FrontierSettings()))
for number in range(300):
    batch = store.changes()
    batch.put("meta", b"%03d" % number, os.urandom(number * 10))
    store.commit(batch)
os._exit(0)
"""
OPEN_AND_COUNT = """
import sys
from pathlib import Path
from skitter.frontier.tables.memory_plan import MemoryPlan
from skitter.frontier.stores.rocks import RocksStore
from skitter.settings import FrontierSettings
store = RocksStore(Path(sys.argv[1]), MemoryPlan.of(FrontierSettings()))
print(len(list(store.scan("meta", b"", bytes([255])))))
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of a store whose process died."""
    subprocess.run([sys.executable, "-c", WRITE_AND_DIE, str(tmp_path)], check=True)
    return max(tmp_path.glob("*.log"))


# The kinds of a recycled log's records, one that RocksDB knows, and one that nobody does.
@pytest.mark.parametrize("kind", [1, 5, 6, 7, 8, 11, 200])
def test_garbage_behind_the_last_record_neither_hangs_the_store_nor_costs_a_record(
    log: Path, kind: int
) -> None:
    garbage = bytearray(random.Random(kind).randbytes(100))
    garbage[6] = kind
    with log.open("ab") as file:
        file.write(garbage)
    # A process of its own: what is tried is a loop in native code that no signal of Python's ends.
    command = [sys.executable, "-c", OPEN_AND_COUNT, str(log.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    assert done.stdout == "300\n"


def test_looking_on_never_mends(log: Path) -> None:
    with log.open("ab") as file:
        file.write(b"\0\0\0\0\x10\0\x05garbage")
    before = log.read_bytes()
    with pytest.raises(StoreFailed, match="go on with the crawl"):
        RocksStore(log.parent, MEMORY, read_only=True)
    assert log.read_bytes() == before


def test_a_sound_log_has_no_such_end_wherever_it_is_cut(log: Path) -> None:
    whole = log.read_bytes()
    for length in range(0, len(whole), 997):
        log.write_bytes(whole[:length])
        assert unreadable_from(log) is None


def test_a_block_behind_garbage_that_rocksdb_would_not_come_back_from_is_taken_away(tmp_path: Path) -> None:
    """It leaves out the rest of a damaged block and reads on at the next, whatever that begins with."""
    damaged = b"\0\0\0\0\xff\xff\x63".ljust(32_768, b"x")  # a record that is longer than its block
    sound, recycled = (b"\0" * 6 + bytes((kind,)) for kind in (1, 5))
    log = tmp_path / "000004.log"
    log.write_bytes(damaged + sound.ljust(32_768, b"\0") + recycled.ljust(500, b"\0"))
    assert unreadable_from(log) == 2 * 32_768
    log.write_bytes(damaged + sound.ljust(32_768, b"\0"))
    assert unreadable_from(log) is None


def test_a_damaged_table_is_told_in_one_line_also_by_a_read(tmp_path: Path) -> None:
    memory = MemoryPlan.of(FrontierSettings())
    store = RocksStore(tmp_path, memory)
    changes = store.changes()
    changes.put_all("hosts", ((number.to_bytes(8, "big"), b"x" * 100) for number in range(2_000)))
    store.commit(changes)
    store.close()
    largest = max(tmp_path.glob("*.sst"), key=lambda file: file.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[50:90] = b"\0" * 40
    largest.write_bytes(content)
    store = RocksStore(tmp_path, memory)
    try:
        with pytest.raises(StoreFailed, match=r"is damaged \(.*put back a copy") as failed:
            [store.get("hosts", number.to_bytes(8, "big")) for number in range(2_000)]
        assert "\n" not in str(failed.value)
    finally:
        store.close()
