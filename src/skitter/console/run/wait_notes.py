"""Says what a crawl waits for when it can ask nobody, so that no minute passes in silence.

Beside `skitter crawl`, on every refresh of its display. Never decides how long is waited: `crawl.linger` does.
"""

from __future__ import annotations

from collections.abc import Sequence

from skitter.console.display.display import Display
from skitter.console.display.wording import moment, plain
from skitter.frontier.base import Frontier, Upcoming
from skitter.log import Log, rfc3339
from skitter.telemetry import Event

# Shorter waits are the pace of a polite crawl.
_WORTH_A_WORD = 5.0
# A host with a long Crawl-delay is waited for again and again: after so many seconds that is worth saying again.
_SAY_AGAIN = 600.0
_SHOWN = 3


class WaitNotes:
    """`_told` is the end of the wait that was looked at last, `_hosts` who was named last, and
    `_said_at` when."""

    def __init__(self, frontier: Frontier, display: Display, log: Log) -> None:
        self._frontier = frontier
        self._display = display
        self._log = log
        self._told = 0.0
        self._hosts: list[str] = []
        self._said_at = -_SAY_AGAIN

    async def look(self, waiting_until: float | None, now: float) -> None:
        if waiting_until is None or waiting_until - now < _WORTH_A_WORD:
            return
        if abs(waiting_until - self._told) < 1.0:
            return
        self._told = waiting_until
        next_up = await self._frontier.upcoming(limit=_SHOWN)
        hosts = [one.host for one in next_up]
        if hosts == self._hosts and now - self._said_at < _SAY_AGAIN:
            return
        self._hosts, self._said_at = hosts, now
        self._display.note(
            f"nothing to do until the next is ready {moment(waiting_until, now)}; Ctrl-C ends, and the same "
            f"command goes on later. Waiting for {'; '.join(who_waits(next_up)) or 'a retry'}"
        )
        self._log.write(Event.CRAWL_WAITS, until=rfc3339(waiting_until), hosts=hosts)


def who_waits(next_up: Sequence[Upcoming]) -> list[str]:
    """Each host or URL that is asked next, and why not now."""
    return [f"{plain(one.url or one.host, 200)} ({plain(one.why, 200)})" for one in next_up]
