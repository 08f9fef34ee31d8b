"""The share of a core that a worker's thread took lately.

A worker sends it with every request (`worker_messages.py`), and the registry shares out hosts by it. Measured
rarely: one look is a system call, and a share of less than half a second is noise. A span of more than a second
does not count either: the worker was stopped, or waited for the committer to come back.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from skitter.clock import Clock

_SPAN = 0.5
_LONGEST_SPAN = 2 * _SPAN


class CpuShare:
    """`spent` is the thread's CPU in seconds."""

    def __init__(self, clock: Clock, spent: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._spent = spent
        self._since = clock.now()
        self._before = spent()
        self._share = 0.0

    def measure(self) -> float:
        """Of the last whole span that was looked at in time; 0 before there was one."""
        now = self._clock.now()
        passed = now - self._since
        if not 0 <= passed < _SPAN:
            spent = self._spent()
            if _SPAN <= passed <= _LONGEST_SPAN:
                self._share = (spent - self._before) / passed
            self._since, self._before = now, spent
        return self._share
