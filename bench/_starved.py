"""When a process was ready to run and had no core: on a busy machine most of the time, and no fault of its own.

The kernel counts it for the main thread (Linux, /proc/PID/schedstat); elsewhere nobody was ever kept waiting.
"""

from __future__ import annotations

import contextlib
import time
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

Span = tuple[float, float]


class Hunger:
    """Looked at again and again, it has when one process after the other was kept waiting."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._pid = 0
        self._waited = 0.0

    def look(self, pid: int) -> None:
        now, waited = time.time(), _waited(pid)
        since = self._waited if pid == self._pid else 0.0
        if waited > since:
            self.spans.append((now - (waited - since), now))
        self._pid, self._waited = pid, max(since, waited)


def _waited(pid: int) -> float:
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    return 0.0


class Spans:
    """Seconds of spans that do not overlap, between any two moments; there are 20 a second of them."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = sorted(spans)
        self._before = [0.0, *accumulate(end - begin for begin, end in self._spans)]

    def between(self, since: float, until: float) -> float:
        return max(0.0, self._until(until) - self._until(since))

    def _until(self, at: float) -> float:
        place = bisect_left(self._spans, (at,))
        if not place:
            return 0.0
        begin, end = self._spans[place - 1]
        return self._before[place - 1] + min(at, end) - begin
