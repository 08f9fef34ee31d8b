"""How fresh the crawl is expected to be, for whoever asks: the walk over all its pages, made rarely.

Beside `readings.py`. A walk looks at every page (some 20 us each), so one begins a minute after the last at the
soonest, and takes a twentieth of the time at most. Who asks meanwhile is told what the last one found. Nothing is
walked where a crawl is not kept fresh.
"""

from __future__ import annotations

import asyncio
import contextlib

from skitter.errors import SkitterError
from skitter.frontier.base import Freshness, Frontier

_SOONEST = 60.0
_SHARE = 0.05


class FreshnessReadings:
    def __init__(self) -> None:
        self.last: Freshness | None = None
        self.at = 0.0
        """When `last` was found."""
        self._next = 0.0
        self._walk: asyncio.Task[None] | None = None

    async def read(self, frontier: Frontier, now: float) -> Freshness | None:
        """What is known; the first time it is waited for."""
        self.begin(frontier, now)
        if self.last is None and self._walk is not None:
            await asyncio.wait((self._walk,))
        return self.last

    def begin(self, frontier: Frontier, now: float) -> None:
        """A walk, if it is time for one and none is under way."""
        if now >= self._next and (self._walk is None or self._walk.done()):
            self._next = now + _SOONEST
            self._walk = asyncio.get_running_loop().create_task(self._go(frontier, now))

    async def _go(self, frontier: Frontier, now: float) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        # a store that cannot be read has others to complain; the next walk is a minute later
        with contextlib.suppress(SkitterError):
            self.last = await frontier.freshness()
            self.at = now
        self._next = now + max(_SOONEST, (clock() - began) / _SHARE)

    async def end(self) -> None:
        """Before the store is closed."""
        walk, self._walk = self._walk, None
        if walk is not None:
            walk.cancel()
            await asyncio.wait((walk,))
