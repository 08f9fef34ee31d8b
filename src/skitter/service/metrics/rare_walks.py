"""What only a walk over all pages or all hosts can tell, for whoever asks: the walk is made rarely.

One begins so many seconds after the last at the soonest, and takes a small share of the time at most. Who asks
meanwhile is told what the last one found.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from skitter.errors import SkitterError
from skitter.frontier.base import Frontier

T = TypeVar("T")


class RareWalk(Generic[T]):
    def __init__(self, walk: Callable[[Frontier], Awaitable[T]], *, soonest: float, share: float) -> None:
        self.last: T | None = None
        self.at = 0.0
        """When `last` was found."""
        self._make = walk
        self._soonest = soonest
        self._share = share
        self._next = 0.0
        self._walk: asyncio.Task[None] | None = None

    async def read(self, frontier: Frontier, now: float) -> T | None:
        """What is known; the first time it is waited for."""
        self.begin(frontier, now)
        if self.last is None and self._walk is not None:
            await asyncio.wait((self._walk,))
        return self.last

    def begin(self, frontier: Frontier, now: float) -> None:
        """A walk, if it is time for one and none is under way."""
        if now >= self._next and (self._walk is None or self._walk.done()):
            self._next = now + self._soonest
            self._walk = asyncio.get_running_loop().create_task(self._go(frontier, now))

    async def _go(self, frontier: Frontier, now: float) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        # a store that cannot be read has others to complain; the next walk is a while later
        with contextlib.suppress(SkitterError):
            self.last = await self._make(frontier)
            self.at = now
        self._next = now + max(self._soonest, (clock() - began) / self._share)

    async def end(self) -> None:
        """Before the store is closed."""
        walk, self._walk = self._walk, None
        if walk is not None:
            walk.cancel()
            await asyncio.wait((walk,))
