"""A ring on disk: rows of numbers by time, in a file of fixed size that is written once round, then over again.

Behind the history. A row is written by one system call into its own place, so it survives the process at once.
One that a power loss tore is noticed by its checksum and left out. Bounded by construction: no row is ever moved,
removed or rewritten but by a later one in its place.

    header   JSON, padded to HEADER bytes: columns, step, slots
    rows     float64: when the row's step began, a checksum, one value per column
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

HEADER = 8192
_MOST_READ = 64_000_000
Rows = npt.NDArray[np.float64]
# numbers without a pattern; a row of zeros must not have the checksum zero
_SALT, _SPREAD = np.uint64(0x736B697474657221), np.uint64(0x9E3779B97F4A7C14)


class _Head(msgspec.Struct):
    columns: list[str]
    step: int
    slots: int


class Ring:
    """`slots` rows of `step` seconds each. Of a file with other columns those are kept whose names are known."""

    def __init__(self, path: Path, columns: Sequence[str], step: int, slots: int) -> None:
        self.columns = tuple(columns)
        self.step = step
        self.slots = slots
        self.dropped = 0
        self._head = _Head(list(columns), step, slots)
        self._width = 8 * (2 + len(self.columns))
        earlier = _read(path)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if earlier is None or earlier[0] != self._head:
            self._begin()
            self._take_over(earlier)

    def close(self) -> None:
        os.close(self._file)

    def put(self, at: float, row: Sequence[float]) -> None:
        """The row of the step that `at` lies in, in place of the one from a round ago."""
        start = at // self.step * self.step
        words = np.array([start, 0.0, *row], dtype=np.float64)
        words.view(np.uint64)[1] = _checksum(words[None])[0]
        try:
            written = os.pwrite(self._file, words.tobytes(), self._offset(start))
        except OSError:
            written = 0
        # a crawl does not end because nobody can draw it
        self.dropped += written != self._width

    def get(self, at: float) -> list[float] | None:
        """The row of the step that `at` lies in, if it was put."""
        start = at // self.step * self.step
        found = self.between(start, start)
        return found[0, 1:].tolist() if len(found) else None

    def between(self, first: float, last: float) -> Rows:
        """Rows whose steps began from `first` to `last`, in order: when each began, then its columns."""
        first = first // self.step * self.step
        count = min(self.slots, max(0, int((last - first) // self.step) + 1))
        begin = int(first // self.step) % self.slots
        straight = min(count, self.slots - begin)
        raw = self._raw(begin, straight) + self._raw(0, count - straight)
        found = _whole(np.frombuffer(raw, dtype=np.float64).reshape(-1, 2 + len(self.columns)))
        there = found[(found[:, 0] >= first) & (found[:, 0] <= last)]
        return np.delete(there[np.argsort(there[:, 0])], 1, axis=1)

    # -- the file

    def _raw(self, slot: int, count: int) -> bytes:
        raw = os.pread(self._file, count * self._width, HEADER + slot * self._width)
        return raw[: len(raw) // self._width * self._width]

    def _offset(self, start: float) -> int:
        return HEADER + int(start // self.step) % self.slots * self._width

    def _begin(self) -> None:
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, msgspec.json.encode(self._head).ljust(HEADER), 0)
        # The room is taken now, where the disk has it: later a full one would cost rows.
        with contextlib.suppress(OSError):
            os.posix_fallocate(self._file, HEADER, self.slots * self._width)

    def _take_over(self, earlier: tuple[_Head, Rows] | None) -> None:
        if earlier is None or earlier[0].step != self.step:
            return
        head, rows = earlier
        places = {name: place for place, name in enumerate(head.columns)}
        newest_last = rows[np.argsort(rows[:, 0])][-self.slots :]
        for row in newest_last.tolist():
            self.put(row[0], [row[2 + places[name]] if name in places else 0.0 for name in self.columns])


def _read(path: Path) -> tuple[_Head, Rows] | None:
    """What an earlier process left, if it can be understood."""
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_READ)
        head = msgspec.json.decode(raw[:HEADER].rstrip(b"\0 "), type=_Head)
    except (OSError, msgspec.MsgspecError):
        return None
    width = 2 + len(head.columns)
    words = np.frombuffer(raw[HEADER : HEADER + (len(raw) - HEADER) // (8 * width) * 8 * width], np.float64)
    return head, _whole(words.reshape(-1, width))


def _whole(rows: Rows) -> Rows:
    """Without those that were never written, or not to their end."""
    stored = rows.view(np.uint64)[:, 1]
    whole: Rows = rows[(stored == _checksum(rows)) & (rows[:, 0] > 0)]
    return whole


def _checksum(rows: Rows) -> npt.NDArray[np.uint64]:
    """A sum of a row's words, each times an odd number of its own: one changed word always changes it, and two
    halves of different rows next to always."""
    words = rows.view(np.uint64)
    factors = np.arange(words.shape[1], dtype=np.uint64) * _SPREAD | np.uint64(1)
    factors[1] = 0
    found: npt.NDArray[np.uint64] = words @ factors + _SALT
    return found
