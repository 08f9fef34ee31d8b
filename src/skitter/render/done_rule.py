"""When is a page done? Its clock is ours: it runs ahead, and stands while an answer is on its way.

First five seconds of the page's own time, which pass as fast as its scripts do. Then short rounds of real and of
page time, until three in a row changed nothing. A page with workers or running animations gets a second and a
half of real time: those run by the real clock. Figures: docs/adr/0026-rendering.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

FIRST_MS, ROUND_MS = 5000, 250
_REAL = 0.08
_MOST_ROUNDS, _QUIET_ROUNDS = 10, 3
_LONG_REAL, _LONG_ROUNDS = 0.3, 5

Seen = tuple[int, int, int]


class Watched(Protocol):
    """A page, as far as this rule knows it."""

    def grant(self, milliseconds: int) -> Awaitable[None]:
        """Lets its clock run so far; over when it has, and nothing is on its way."""
        ...

    def look(self) -> Awaitable[tuple[Seen, bool]]:
        """How much there is of it, and whether something in it moves by real time."""
        ...


async def until_done(page: Watched, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
    await page.grant(FIRST_MS)
    before, moves = await _rounds(page, _MOST_ROUNDS, _REAL, sleep)
    for _ in range(2):
        if not moves:
            return
        # Five rounds of it at least: a worker's timer of a second changes nothing before.
        seen, moves = before, False
        for _ in range(_LONG_ROUNDS):
            await sleep(_LONG_REAL)
            await page.grant(ROUND_MS)
        before, still = await page.look()
        if before == seen:
            return
        before, moves = await _rounds(page, _MOST_ROUNDS, _REAL, sleep)
        moves = moves or still


async def _rounds(
    page: Watched, most: int, real: float, sleep: Callable[[float], Awaitable[None]]
) -> tuple[Seen, bool]:
    before, moves = await page.look()
    quiet = 0
    for _ in range(most):
        await sleep(real)
        await page.grant(ROUND_MS)
        now, moves = await page.look()
        quiet = quiet + 1 if now == before else 0
        before = now
        if quiet == _QUIET_ROUNDS:
            break
    return before, moves
