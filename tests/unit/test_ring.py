"""The ring file of the history: fixed size, nothing lost but what a round overwrites, no bytes it chokes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skitter.service.metrics.ring import HEADER, Ring

COLUMNS = ("pages", "bytes", "workers")


def ring_at(path: Path, slots: int = 6, columns: tuple[str, ...] = COLUMNS) -> Ring:
    return Ring(path, columns, 10, slots)


def starts(ring: Ring, first: float = 0.0, last: float = 10_000.0) -> list[float]:
    return [float(start) for start in ring.between(first, last)[:, 0]]


def test_rows_come_back_in_order_with_the_start_of_their_step(tmp_path: Path) -> None:
    ring = ring_at(tmp_path / "ring")
    for at in (101.0, 119.9, 130.0):
        ring.put(at, [at, 2 * at, 3.0])
    assert ring.between(100, 130).tolist() == [
        [100, 101, 202, 3],
        [110, 119.9, 239.8, 3],
        [130, 130, 260, 3],
    ]
    assert starts(ring, 105, 125) == [100, 110]
    assert starts(ring, 130, 100) == []
    assert ring.get(105) == [101, 202, 3]
    assert ring.get(125) is None


def test_a_later_row_of_the_same_step_takes_its_place(tmp_path: Path) -> None:
    ring = ring_at(tmp_path / "ring")
    ring.put(100, [1, 1, 1])
    ring.put(109, [2, 2, 2])
    assert ring.get(100) == [2, 2, 2]


def test_the_file_never_grows_and_keeps_the_last_round(tmp_path: Path) -> None:
    ring = ring_at(tmp_path / "ring")
    size = os.path.getsize(tmp_path / "ring")
    for at in range(100, 1_000, 10):
        ring.put(at, [at, 0, 0])
        oldest = max(100, at - 50)
        assert starts(ring, 0, at) == list(range(oldest, at + 1, 10))
    assert os.path.getsize(tmp_path / "ring") == size == HEADER + 6 * 8 * 5


def test_what_was_put_is_there_after_a_kill(tmp_path: Path) -> None:
    source = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom skitter.service.metrics.ring import Ring\n"
        f"ring = Ring(Path(sys.argv[1]), {COLUMNS!r}, 10, 6)\n"
        "ring.put(100, [1, 2, 3])\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", source, str(tmp_path / "ring")], timeout=60)
    assert done.returncode == -9
    assert ring_at(tmp_path / "ring").get(100) == [1, 2, 3]


def test_columns_that_a_later_version_knows_are_kept_and_new_ones_are_zero(tmp_path: Path) -> None:
    old = ring_at(tmp_path / "ring")
    for at in (100, 110):
        old.put(at, [at, 7, 2])
    old.close()
    new = ring_at(tmp_path / "ring", slots=4, columns=("workers", "errors", "pages"))
    assert new.between(0, 200).tolist() == [[100, 2, 0, 100], [110, 2, 0, 110]]
    new.close()
    assert starts(ring_at(tmp_path / "ring", slots=4, columns=("workers", "errors", "pages"))) == [100, 110]


@pytest.mark.parametrize("place", range(0, 40, 8))
def test_a_torn_row_is_left_out_and_its_neighbours_are_not(tmp_path: Path, place: int) -> None:
    ring = ring_at(tmp_path / "ring")
    for at in (60, 70, 80):
        ring.put(at, [at, 5, 6])
    with open(tmp_path / "ring", "r+b") as file:
        file.seek(HEADER + 1 * 40 + place)
        file.write(b"\x01\x02\x03")
    assert starts(ring) == [60, 80]


@given(raw=st.binary(max_size=400), head=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
def test_no_bytes_keep_a_ring_from_opening(tmp_path: Path, raw: bytes, head: bool) -> None:
    path = tmp_path / "ring"
    path.write_bytes(b'{"columns":["pages"],"step":10,"slots":6}'.ljust(HEADER) + raw if head else raw)
    ring = ring_at(path)
    ring.put(100, [1, 2, 3])
    assert ring.get(100) == [1, 2, 3]
    ring.close()


@pytest.mark.parametrize(
    "header",
    [
        b'{"columns":["pages"],"step":0,"slots":-1}',
        b'{"columns":[],"step":10,"slots":6}',
        b'{"columns":["pages","pages"],"step":10,"slots":99999999999}',
        b'{"columns":["' + b"x" * 20_000 + b'"],"step":10,"slots":6}',
    ],
)
def test_no_header_keeps_a_ring_from_opening(tmp_path: Path, header: bytes) -> None:
    (tmp_path / "ring").write_bytes(header.ljust(HEADER) + bytes(range(256)))
    ring = ring_at(tmp_path / "ring")
    ring.put(100, [1, 2, 3])
    assert starts(ring) == [100]


def test_a_row_that_cannot_be_written_is_counted_and_harms_nobody(tmp_path: Path) -> None:
    ring = ring_at(tmp_path / "ring")
    held = ring._file
    ring._file = os.open("/dev/full", os.O_RDWR)
    ring.put(100, [1, 2, 3])
    assert ring.dropped == 1
    os.close(ring._file)
    ring._file = held
    assert starts(ring) == []
