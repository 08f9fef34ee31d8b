"""The frontier's figures for whoever asks, read once a second at most, however many do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from skitter.frontier.base import Frontier, Stats

FRESH = 1.0


class Readings:
    def __init__(self) -> None:
        self._reading = asyncio.Lock()
        self._stats: Stats | None = None
        self._at = 0.0

    async def stats(self, frontier: Frontier, now: float, measure: Callable[[], None]) -> Stats:
        """Of less than a second ago; `measure` does what else need not be done more often."""
        async with self._reading:
            if self._stats is None or not 0 <= now - self._at < FRESH:
                self._stats, self._at = await frontier.stats(), now
                measure()
            return self._stats
