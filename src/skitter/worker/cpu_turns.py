"""Turns of the event loop for reading pages: a little in one go, then other requests, timers and commits.

Between the fetch of a page and its reading. Answers that arrive together would all be read in one round of the
event loop, and nothing else would happen meanwhile: eight pages of 10 MB once held up every other host for 4.9 s.
Never says how long one page may take: the limits of what is read do.
"""

from __future__ import annotations

import asyncio
from collections import deque

from skitter.clock import Clock

_LONGEST = 0.02
# Woken together, when pages wait; who finds that the turn is over already waits for the next one. One a turn is
# too few where the rest of a turn takes long: answers waited there to be read, and a kill took them.
_AT_ONCE = 16


class CpuTurns:
    """`_began` is when the first page of this turn of the event loop began to be read, None while there was
    none. Who comes when a turn is over, or while others wait, waits: first come, first served."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began: float | None = None
        self._is_ending = False
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._too_late: list[asyncio.Future[None]] = []

    def try_take(self) -> bool:
        """Whether a page may be read at once: then it is our turn, and nothing may be awaited before."""
        if self._waiting or self._is_over():
            return False
        self._begin()
        return True

    async def take(self) -> None:
        """Returns when a page may be read; from there on nothing may be awaited before it is."""
        if self.try_take():
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn
        while self._is_over():
            turn = asyncio.get_running_loop().create_future()
            self._too_late.append(turn)
            await turn
        self._begin()

    def _begin(self) -> None:
        if self._began is None:
            self._began = self._clock.now()
            self._end_soon()

    def _is_over(self) -> bool:
        return self._began is not None and self._clock.now() - self._began > _LONGEST

    def _end_soon(self) -> None:
        if not self._is_ending:
            self._is_ending = True
            asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        """Of this turn; whoever is woken here runs in the next one, and before its end."""
        self._began, self._is_ending = None, False
        self._waiting.extendleft(reversed(self._too_late))
        self._too_late.clear()
        woken = 0
        while self._waiting and woken < _AT_ONCE:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                woken += 1
        if woken:
            self._end_soon()
