"""Ctrl-C and SIGTERM: how `skitter crawl`, `serve` and `worker` are told to drain.

Loads nothing: worker processes start with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable

_STOP_SIGNALS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


def on_stop_signal(act: Callable[[str], None]) -> None:
    """Calls `act` with the signal's name on every Ctrl-C and SIGTERM from now on. Replaces the last `act`."""
    loop = asyncio.get_running_loop()
    for number, name in _STOP_SIGNALS.items():
        loop.add_signal_handler(number, act, name)


def stop_event() -> asyncio.Event:
    """Set by the first Ctrl-C or SIGTERM."""
    stopped = asyncio.Event()
    on_stop_signal(lambda _: stopped.set())
    return stopped


@contextlib.asynccontextmanager
async def drain_when(stopped: asyncio.Event, drain: Callable[[], None]) -> AsyncIterator[None]:
    """While the block runs, `drain` is called once `stopped` is set."""

    async def wait() -> None:
        await stopped.wait()
        drain()

    waiting = asyncio.create_task(wait())
    try:
        yield
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
