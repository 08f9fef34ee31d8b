"""Reading pages by turns: so much in one go, then everybody else's requests, timers and commits.

Between the fetch of a page and its reading. Answers that arrive together would be read in one turn of the event
loop, and nothing else would happen meanwhile: eight pages of 10 MB once held up every other host for 4.9 s. Never
says how long one page may take: the limits of what is read do.
"""

from __future__ import annotations

import asyncio
from collections import deque

from skitter.clock import Clock

_LONGEST = 0.02


class Turns:
    """`_began` is when the first page of this turn of the event loop began to be read, None while there was
    none. Who comes when a turn is over waits; of those who wait, one a turn, first come, first served."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began: float | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Returns when a page may be read; from there on nothing may be awaited before it is."""
        if self._began is None:
            self._begin()
        elif self._waiting or self._clock.now() - self._began > _LONGEST:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn

    def _begin(self) -> None:
        self._began = self._clock.now()
        asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        self._began = None
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._begin()
                return
