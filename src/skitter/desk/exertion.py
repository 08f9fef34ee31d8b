"""How hard a worker works: the share of a core that its thread took lately.

A part of what a worker says of itself with every ask (`wire.py`); the crew shares hosts by it. Read rarely: one
look is a system call, and a share of less than half a second is noise.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from skitter.clock import Clock

_SPAN = 0.5


class Exertion:
    """`spent` is the thread's CPU in seconds."""

    def __init__(self, clock: Clock, spent: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._spent = spent
        self._since = clock.now()
        self._before = spent()
        self._share = 0.0

    def look(self) -> float:
        """Of the last whole span; 0 before there was one."""
        now = self._clock.now()
        if now - self._since >= _SPAN:
            spent = self._spent()
            self._share = (spent - self._before) / (now - self._since)
            self._since, self._before = now, spent
        return self._share
