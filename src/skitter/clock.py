"""The only way to ask the time.

`now()` is seconds since the epoch, taken from the wall once at start and carried forward by a clock that nobody
can set, so that a stepped system clock cannot shorten a host's delay or expire a lease while a crawl runs. That
clock goes on while the machine sleeps: a laptop that was shut for an hour must not date its pages an hour ago.
"""

from __future__ import annotations

import time
from typing import Protocol

# Linux stops CLOCK_MONOTONIC in sleep and has CLOCK_BOOTTIME beside it; elsewhere CLOCK_MONOTONIC goes on.
_UNSET = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    def now(self) -> float: ...


class SystemClock:
    def __init__(self) -> None:
        self._offset = time.time() - time.clock_gettime(_UNSET)

    def now(self) -> float:
        return self._offset + time.clock_gettime(_UNSET)
