"""Permits for requests in flight: so many that move, and so many in all.

The loop acquires one before each request. A request that hardly moves gives up its permit among those that move,
but keeps its connection; when it moves again it counts again, and new ones wait until there is room. Without this
2,000 hosts that drip a byte a second would stop a crawl of 256 permits. An answer that was read keeps its permit
as long as a kill would cost it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class RequestPermits:
    """`quiet` says how many of the requests in flight hardly move, `owed` how many were answered and still have
    their place. First come, first served."""

    def __init__(self, moving: int, most: int, quiet: Callable[[], int], owed: Callable[[], int]) -> None:
        self._moving = moving
        self._most = most
        self._quiet = quiet
        self._owed = owed
        self._held = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def try_acquire(self) -> bool:
        """Whether there is a place at once: then it is ours."""
        if self._waiting or not self._has_room():
            return False
        self._held += 1
        return True

    async def acquire(self) -> None:
        if self.try_acquire():
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()
            raise

    def change(self, moving: int) -> None:
        """So many may move from now on; whoever has a place keeps it."""
        self._moving = moving
        self.admit_waiting()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def release(self) -> None:
        self._held -= 1
        if self._waiting:
            self.admit_waiting()

    def admit_waiting(self) -> None:
        """Let in whom there is room for: called on every pulse too, because requests go quiet by themselves."""
        while self._waiting and self._has_room():
            turn = self._waiting.popleft()
            if not turn.done():
                self._held += 1
                turn.set_result(None)

    def _has_room(self) -> bool:
        taken = self._held + self._owed()
        return self._held < self._most and (taken < self._moving or taken - self._quiet() < self._moving)
