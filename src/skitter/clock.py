"""The only way to ask the time.

`now()` is seconds since the epoch, taken from the wall once at start and carried forward by the monotonic
clock, so that a stepped system clock cannot shorten a host's delay or expire a lease while a crawl runs.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float: ...


class SystemClock:
    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        return self._offset + time.monotonic()
