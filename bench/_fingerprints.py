"""The index of fingerprints as it grows: what it costs to ask it and to add a page, with so many in it.

Filled in key order, which is fast and leaves what a long crawl leaves; then asked and added to through the
frontier's own code, in turns of twenty pages.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from bench._gauge import cpu_seconds, disk_bytes
from bench._report import progress
from skitter.frontier.engine.answers.near_duplicates import look_up, prepare, remember
from skitter.frontier.rows import Found, UrlRow
from skitter.frontier.stores.rocks import RocksChanges, RocksStore
from skitter.frontier.tables.memory_plan import MemoryPlan
from skitter.frontier.tables.near_index import LOWER, MOST_ALIKE, UPPER, WHOSE
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.transaction import Transaction
from skitter.model import Fetched, UrlState, Via
from skitter.settings import Settings

_BATCH = 20_000
_TURN = 20
_ASKED = 2_000
_ROUNDS = 15
_SETTLE = 60.0
_QUIET = 0.05


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """CPU: of the asking thread for a look-up, of the whole process for look-up, adding and commit."""

    fingerprints: int
    look_up_us: float
    add_us: float
    disk: int


class Index:
    """One of so many fingerprints, filled and at rest."""

    def __init__(self, folder: Path, count: int, seed: int) -> None:
        settings = Settings()
        memory = MemoryPlan.of(settings.frontier)
        self._folder, self._count = folder, count
        self._store = RocksStore(folder, memory)
        _fill(self._store, np.random.default_rng(seed).integers(0, 1 << 64, count, np.uint64))
        _wait_for_quiet()
        self._book = RowCache(self._store, folder, settings, memory, 0.0)
        self._rng = random.Random(seed)
        self._asking: list[float] = []
        self._adding: list[float] = []
        _look_ups(self._book, self._rng)

    def ask(self) -> None:
        self._asking.append(_look_ups(self._book, self._rng))

    def add(self) -> None:
        self._adding.append(_adds(self._book, self._rng))

    def close(self) -> Cost:
        disk = disk_bytes(self._folder)
        self._store.close()
        return Cost(
            fingerprints=self._count, look_up_us=min(self._asking), add_us=min(self._adding), disk=disk
        )


def measure(folder: Path, sizes: Sequence[int], seed: int) -> list[Cost]:
    """By turns, 30 ms each: what a read costs changes by a factor of two within a minute on some machines, with
    what else uses their memory, and must not fall on one of the sizes alone."""
    indexes = []
    for size in sizes:
        progress(f"an index of {size:,}")
        indexes.append(Index(folder / str(size), size, seed))
    for act in (Index.ask, Index.add):
        for _ in range(_ROUNDS):
            for index in indexes:
                act(index)
    return [index.close() for index in indexes]


def _look_ups(book: RowCache, rng: random.Random) -> float:
    asked = [rng.getrandbits(64) for _ in range(_ASKED)]
    began = time.thread_time()
    for start in range(0, _ASKED, _TURN):
        turn = Transaction.begin(book, 0.0)
        prepare(turn, [_page(fingerprint) for fingerprint in asked[start : start + _TURN]])
        for fingerprint in asked[start : start + _TURN]:
            look_up(turn, fingerprint)
    return (time.thread_time() - began) * 1e6 / _ASKED


def _adds(book: RowCache, rng: random.Random) -> float:
    rows = [UrlRow("http://a.test/", UrlState.COMPLETED, 50, Found(1, Via.LINK)) for _ in range(_ASKED)]
    asked = [(rng.getrandbits(64), rng.randbytes(16)) for _ in range(_ASKED)]
    began = cpu_seconds()
    for start in range(0, _ASKED, _TURN):
        with Transaction.begin(book, 0.0) as turn:
            prepare(turn, [_page(fingerprint) for fingerprint, _ in asked[start : start + _TURN]])
            for place in range(start, start + _TURN):
                fingerprint, key = asked[place]
                remember(turn, key, rows[place], fingerprint)
    return (cpu_seconds() - began) * 1e6 / _ASKED


def _page(fingerprint: int) -> Fetched:
    return Fetched(status=200, simhash=fingerprint)


def _fill(store: RocksStore, fingerprints: NDArray[np.uint64]) -> None:
    ordered = np.sort(fingerprints)
    raw = ordered.astype(">u8").tobytes()
    rows = (raw[at : at + 8] for at in range(0, len(raw), 8))
    _write(store, ((WHOSE + row, row * 2 + bytes(4)) for row in rows))
    half = np.uint64(32)
    _write(store, _by_half(UPPER, ordered, ordered >> half))
    ordered = ordered[np.argsort(ordered << half)]
    _write(store, _by_half(LOWER, ordered, ordered & np.uint64(0xFFFF_FFFF)))


def _by_half(
    prefix: bytes, ordered: NDArray[np.uint64], halves: NDArray[np.uint64]
) -> Iterator[tuple[bytes, bytes]]:
    raw = ordered.astype(">u8").tobytes()
    edges = [0, *(np.flatnonzero(halves[1:] != halves[:-1]) + 1).tolist(), len(halves)]
    for begin, end in itertools.pairwise(edges):
        yield (
            prefix + int(halves[begin]).to_bytes(4, "big"),
            raw[8 * begin : 8 * min(end, begin + MOST_ALIKE)],
        )


def _write(store: RocksStore, entries: Iterable[tuple[bytes, bytes]]) -> None:
    batch, size = RocksChanges(store), 0
    for key, value in entries:
        batch.put("near", key, value)
        size += 1
        if size == _BATCH:
            store.commit(batch)
            batch, size = RocksChanges(store), 0
    store.commit(batch)


def _wait_for_quiet() -> None:
    """Until compaction has caught up, as it does in a crawl; it is counted where it is caused, in `add_us`."""
    deadline = time.monotonic() + _SETTLE
    while time.monotonic() < deadline:
        before = cpu_seconds()
        time.sleep(0.5)
        if cpu_seconds() - before < _QUIET * 0.5:
            return
