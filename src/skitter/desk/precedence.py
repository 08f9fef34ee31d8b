"""Whose turn it is at the desk: one at a time, and who is short before who is long.

A part of the desk. A worker that asks for hosts waits for what is being committed, not for all that waits to be:
under full load that is the difference between 5 ms and the sum of everybody's pages. After a long turn what came
in meanwhile is read before the next, for a short one may be in it. What is long waits for eight of the others at
most, so it is never starved. Reads no clock, and is fair within each kind.
"""

from __future__ import annotations

import asyncio
from collections import deque

_MOST_IN_A_ROW = 8
# Rounds of the event loop before a long turn: a call is read from its socket, then asks for its own. Without them
# each of four workers had its turn in every round, and a lease waited for two rounds, eight batches.
_ROUNDS = 2


class Precedence:
    """
    held      by one; who ends passes it on
    looking   nobody has it, and only a short one may take it, until `_look` has seen who came
    free      nobody has it, and nobody waits
    """

    def __init__(self) -> None:
        self._is_held = self._is_looking = False
        self._short: deque[asyncio.Future[None]] = deque()
        self._long: deque[asyncio.Future[None]] = deque()
        self._in_a_row = 0
        self.short = _Place(self, self._short)
        self.long = _Place(self, self._long)

    async def take(self, queue: deque[asyncio.Future[None]]) -> None:
        if not self._is_held and (not self._is_looking or self._may_come_between(queue)):
            self._is_held = True
            return
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.pass_on(queue)  # it was ours already
            raise

    def _may_come_between(self, queue: deque[asyncio.Future[None]]) -> bool:
        if queue is self._long or (self._in_a_row >= _MOST_IN_A_ROW and self._long):
            return False
        self._in_a_row += 1
        return True

    def pass_on(self, queue: deque[asyncio.Future[None]]) -> None:
        """Who ends is one of this queue."""
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
        while (turn := self._next()) is not None:
            if not turn.done():
                self._is_held = True
                turn.set_result(None)
                return

    def _next(self) -> asyncio.Future[None] | None:
        if self._is_short_next():
            self._in_a_row += 1
            return self._short.popleft()
        self._in_a_row = 0
        return self._long.popleft() if self._long else None

    def _is_short_next(self) -> bool:
        return bool(self._short) and (self._in_a_row < _MOST_IN_A_ROW or not self._long)


class _Place:
    def __init__(self, precedence: Precedence, queue: deque[asyncio.Future[None]]) -> None:
        self._precedence = precedence
        self._queue = queue

    async def __aenter__(self) -> None:
        await self._precedence.take(self._queue)

    async def __aexit__(self, *_: object) -> None:
        self._precedence.pass_on(self._queue)
