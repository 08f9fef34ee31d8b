"""A system clock that jumps between two runs of a crawl, and how its ledger is read nevertheless.

libfaketime gives each run a wall clock of its own; the monotonic clock is left alone, as it is when an operator
sets the time. The web's log and the times of the runs are by the real clock: they are the truth.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench._account import CLOCKS
from bench._records import Fetch
from skitter.testing.request_log import Request

_LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
)


class Run(NamedTuple):
    """One process of the crawl: how far its clock was off, and when it really began and ended."""

    offset: float
    began: float
    ended: float


def library() -> str | None:
    return next((path for path in _LIBRARIES if Path(path).is_file()), None)


def shifted(offset: float) -> dict[str, str]:
    """The environment of a process whose clock is off by so many seconds."""
    found = library()
    if not offset or found is None:
        return {}
    return {
        "LD_PRELOAD": found,
        "FAKETIME": f"{offset:+.3f}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }


def sweep(pid: int) -> None:
    """What libfaketime leaves of a process that was killed: the next one with that number could not start."""
    for name in (f"faketime_shm_{pid}", f"sem.faketime_sem_{pid}"):
        (Path("/dev/shm") / name).unlink(missing_ok=True)


def by_real_time(fetches: Sequence[Fetch], requests: Sequence[Request], runs: Sequence[Run]) -> list[Fetch]:
    """The ledger with real times. A time may be of several runs, whose clocks showed it one after the other: it
    was of the one in which the web saw that URL asked last before it."""
    starts: dict[str, list[float]] = defaultdict(list)
    for row in requests:
        starts[f"http://{row.host}{row.path}"].append(row.start)
    return [
        fetch._replace(sent_at=_real(fetch.sent_at, sorted(starts[fetch.url]), runs)) for fetch in fetches
    ]


def _real(shown: float, starts: list[float], runs: Sequence[Run]) -> float:
    times = [shown - run.offset for run in runs if run.began <= shown - run.offset <= run.ended]
    return min(times, key=lambda at: _since(at, starts), default=shown)


def _since(at: float, starts: list[float]) -> float:
    place = bisect_left(starts, at + CLOCKS)
    return at - starts[place - 1] if place else float("inf")
