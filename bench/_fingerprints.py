"""The index of fingerprints as it grows: what it costs to ask it and to add a page, with so many in it.

Filled in key order, which is fast and leaves what a long crawl leaves; then asked and added to through the
frontier's own code, in turns of twenty pages.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from bench._gauge import cpu_seconds, disk_bytes
from skitter.frontier.rocks.book import Book
from skitter.frontier.rocks.memory import MemoryPlan
from skitter.frontier.rocks.near import MOST_IN_ROW, look_up, remember
from skitter.frontier.rocks.rows import UrlRow
from skitter.frontier.rocks.store import Batch, Store
from skitter.model import UrlState, Via
from skitter.schedule.near import near_keys
from skitter.settings import Settings

_BATCH = 20_000
_TURN = 20
_ASKED = 2_000
_ROUNDS = 5
_SETTLE = 60.0
_QUIET = 0.05


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """CPU: of the asking thread for a look-up, of the whole process for look-up, adding and commit."""

    fingerprints: int
    look_up_us: float
    add_us: float
    disk: int


def measure(folder: Path, count: int, seed: int) -> Cost:
    settings = Settings()
    memory = MemoryPlan.of(settings.frontier)
    store = Store(folder, memory)
    _fill(store, np.random.default_rng(seed).integers(0, 1 << 64, count, np.uint64))
    _wait_for_quiet()
    book = Book(store, settings, memory, 0.0)
    rng = random.Random(seed)
    _look_ups(book, rng)
    asking = min(_look_ups(book, rng) for _ in range(_ROUNDS))
    adding = min(_adds(book, rng) for _ in range(_ROUNDS))
    disk = disk_bytes(folder)
    store.close()
    return Cost(fingerprints=count, look_up_us=asking, add_us=adding, disk=disk)


def _look_ups(book: Book, rng: random.Random) -> float:
    asked = [rng.getrandbits(64) for _ in range(_ASKED)]
    began = time.thread_time()
    for start in range(0, _ASKED, _TURN):
        turn = book.turn(0.0)
        for fingerprint in asked[start : start + _TURN]:
            look_up(turn, fingerprint)
    return (time.thread_time() - began) * 1e6 / _ASKED


def _adds(book: Book, rng: random.Random) -> float:
    rows = [UrlRow("http://a.test/", UrlState.COMPLETED, 50, 1, Via.LINK) for _ in range(_ASKED)]
    asked = [(rng.getrandbits(64), rng.randbytes(16)) for _ in range(_ASKED)]
    began = cpu_seconds()
    for start in range(0, _ASKED, _TURN):
        with book.turn(0.0) as turn:
            for place in range(start, start + _TURN):
                fingerprint, key = asked[place]
                remember(turn, key, rows[place], fingerprint)
    return (cpu_seconds() - began) * 1e6 / _ASKED


def _fill(store: Store, fingerprints: NDArray[np.uint64]) -> None:
    ordered = np.sort(fingerprints)
    raw = ordered.astype(">u8").tobytes()
    _write(
        store, ((b"\0" + raw[at : at + 8], raw[at : at + 8] * 2 + bytes(4)) for at in range(0, len(raw), 8))
    )
    for number in range(6):
        masked = fingerprints & np.uint64(_mask(number))
        order = np.argsort(masked)
        rows, sorted_keys = fingerprints[order].astype(">u8").tobytes(), masked[order]
        changes = np.flatnonzero(sorted_keys[1:] != sorted_keys[:-1]) + 1
        edges = [0, *changes.tolist(), len(order)]
        firsts = sorted_keys[edges[:-1]].tolist()
        _write(store, _rows(number, firsts, edges, rows))


def _rows(number: int, firsts: list[int], edges: list[int], rows: bytes) -> Iterator[tuple[bytes, bytes]]:
    for first, (begin, end) in zip(firsts, itertools.pairwise(edges), strict=True):
        yield near_keys(first)[number], rows[begin * 8 : min(end, begin + MOST_IN_ROW) * 8]


def _mask(number: int) -> int:
    """The bits that a key depends on, found by asking."""
    base = near_keys(0)[number]
    return sum(1 << bit for bit in range(64) if near_keys(1 << bit)[number] != base)


def _write(store: Store, entries: Iterable[tuple[bytes, bytes]]) -> None:
    batch, size = Batch(store), 0
    for key, value in entries:
        batch.put("near", key, value)
        size += 1
        if size == _BATCH:
            store.write(batch)
            batch, size = Batch(store), 0
    store.write(batch)


def _wait_for_quiet() -> None:
    """Until compaction has caught up, as it does in a crawl; it is counted where it is caused, in `add_us`."""
    deadline = time.monotonic() + _SETTLE
    while time.monotonic() < deadline:
        before = cpu_seconds()
        time.sleep(0.5)
        if cpu_seconds() - before < _QUIET * 0.5:
            return
