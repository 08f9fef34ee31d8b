"""A lock with two queues: short calls go before long ones.

A part of every frontier: one call that writes at a time. A worker that asks for hosts waits for the batch that
is being committed, not for all batches that wait. After a long hold the event loop runs for a moment before the
next long one, because a short call may be among what has just arrived. A long call waits for at most eight
short ones, so it never starves. Within each queue the order is first come, first served. Reads no clock.
"""

from __future__ import annotations

import asyncio
from collections import deque

_MOST_SHORT_IN_A_ROW = 8
# Rounds of the event loop before the next long hold: in the first a call is read from its socket, in the second
# it asks for the lock. Without them a lease waited for two batches of every worker.
_ROUNDS = 2


class PriorityLock:
    """
    held      by one caller; on release it is handed to the next
    looking   held by nobody, and only a short call may take it, until `_look` has seen which calls arrived
    free      held by nobody, and nobody waits
    """

    def __init__(self) -> None:
        self._is_held = self._is_looking = False
        self._short: deque[asyncio.Future[None]] = deque()
        self._long: deque[asyncio.Future[None]] = deque()
        self._short_in_a_row = 0
        self.short = _Queue(self, self._short)
        self.long = _Queue(self, self._long)

    async def acquire(self, queue: deque[asyncio.Future[None]]) -> None:
        if not self._is_held and (not self._is_looking or self._may_pass(queue)):
            if queue is self._short:
                self._short_in_a_row += self._is_looking
            self._is_held = True
            return
        granted = asyncio.get_running_loop().create_future()
        queue.append(granted)
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():
                self.release(queue)  # it was granted before we were cancelled
            raise

    def _may_pass(self, queue: deque[asyncio.Future[None]]) -> bool:
        """Whether a call may take the lock while the others are looked at."""
        return queue is self._short and (self._short_in_a_row < _MOST_SHORT_IN_A_ROW or not self._long)

    def release(self, queue: deque[asyncio.Future[None]]) -> None:
        """`queue` is the one that the holder came from."""
        self._is_held = False
        if self._is_short_next():
            self._grant()
        elif not self._is_looking and (self._long or queue is self._long):
            self._is_looking = True
            self._look(_ROUNDS)

    def _look(self, rounds: int) -> None:
        if rounds:
            asyncio.get_running_loop().call_soon(self._look, rounds - 1)
            return
        self._is_looking = False
        if not self._is_held:
            self._grant()

    def _grant(self) -> None:
        while (granted := self._pop_next()) is not None:
            if not granted.done():
                self._is_held = True
                granted.set_result(None)
                return

    def _pop_next(self) -> asyncio.Future[None] | None:
        if self._is_short_next():
            self._short_in_a_row += 1
            return self._short.popleft()
        self._short_in_a_row = 0
        return self._long.popleft() if self._long else None

    def _is_short_next(self) -> bool:
        return bool(self._short) and (self._short_in_a_row < _MOST_SHORT_IN_A_ROW or not self._long)


class _Queue:
    """`async with lock.short:` or `async with lock.long:`"""

    def __init__(self, lock: PriorityLock, queue: deque[asyncio.Future[None]]) -> None:
        self._lock = lock
        self._queue = queue

    async def __aenter__(self) -> None:
        await self._lock.acquire(self._queue)

    async def __aexit__(self, *_: object) -> None:
        self._lock.release(self._queue)
