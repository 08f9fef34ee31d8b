"""A system clock that is set while a crawl runs and between two runs, and how its ledger is read nevertheless.

`_wall.c` gives each process a wall clock of its own; every other clock is left alone, as it is when an operator
sets the time. The web's log and the times of the runs are by the real clock: they are the truth.
"""

from __future__ import annotations

import atexit
import os
import shutil
import struct
import subprocess
import tempfile
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bench._account import CLOCKS
from bench._records import Fetch
from skitter.testing.request_log import Request

_SOURCE = Path(__file__).with_name("_wall.c")


class Run(NamedTuple):
    """One process of the crawl: how far its clock was off, and when it really began and ended. A clock that was
    set meanwhile makes one more of it: a crawl that pauses looks at the clock anew."""

    offset: float
    began: float
    ended: float


@cache
def library() -> Path | None:
    """Built when it is first asked for; None where there is no compiler."""
    folder = tempfile.mkdtemp(prefix="skitter-wall-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    built = Path(folder) / "wall.so"
    command = ["cc", "-std=gnu11", "-O2", "-shared", "-fPIC", "-o", str(built), str(_SOURCE), "-ldl"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None
    return built


class Wall:
    """The wall clock of a process and its children: the seconds it is off lie in a file that they all map."""

    def __init__(self) -> None:
        self.offset = 0.0
        self._file = tempfile.NamedTemporaryFile(prefix="skitter-wall-")  # noqa: SIM115
        self.set(0.0)

    def set(self, offset: float) -> None:
        self.offset = offset
        os.pwrite(self._file.fileno(), struct.pack("=q", round(offset * 1e9)), 0)

    @property
    def environ(self) -> dict[str, str]:
        """Empty where no clock can be set."""
        built = library()
        return {"LD_PRELOAD": str(built), "WALL_SHIFT": self._file.name} if built else {}


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
