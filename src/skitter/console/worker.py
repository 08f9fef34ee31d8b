"""`skitter worker`: joins a server, and fetches for it until it is told to stop.

Stateless: what it holds is in memory and can be fetched again. SIGTERM and Ctrl-C drain it (what is in flight
ends, is delivered, and the rest is given back); a second one ends it at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import secrets
import signal
import socket
import sys
from pathlib import Path

from skitter.clock import Clock, SystemClock
from skitter.console.leash import hold_on
from skitter.errors import SkitterError, UsageError
from skitter.hands import GC_THRESHOLDS, open_hands, raise_descriptor_limit
from skitter.log import Log
from skitter.settings import Settings
from skitter.worker.framed import FramedLink
from skitter.worker.link import Away, Link
from skitter.worker.loop import Loop
from skitter.worker.remote import RemoteBrain

_ASK_AGAIN = 1.0
# On a leash: whoever holds it opens the crawl meanwhile.
_ASK_AGAIN_SOON = 0.02
_LONGEST_FAREWELL = 30.0


async def run_worker(
    server: str, token_file: Path | None, log_file: Path | None, *, name: str, leashed: bool
) -> int:
    if leashed:
        hold_on()
    clock = SystemClock()
    link = FramedLink(server) if leashed else Link(server, _token(token_file))
    name = name or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
    brain = RemoteBrain(link, clock, name)
    stopped = asyncio.Event()
    _on_signals(stopped)
    try:
        settings = await _joined(brain, "" if leashed else server, stopped)
        if settings is not None:
            await _work(brain, raise_descriptor_limit(settings), clock, name, log_file, stopped)
    finally:
        await link.close()
    return 0


def _token(file: Path | None) -> str:
    if file is None:
        return os.environ.get("SKITTER_TOKEN", "")
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the token from {file}: {error}") from error


def _on_signals(stopped: asyncio.Event) -> None:
    def told() -> None:
        if stopped.is_set():
            os._exit(130)
        stopped.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told)


async def _joined(brain: RemoteBrain, server: str, stopped: asyncio.Event) -> Settings | None:
    """A server that is not there yet is waited for: machines come up in any order. One without a name is about
    to come, and nobody is told."""
    said = not server
    while not stopped.is_set():
        try:
            return await brain.join()
        except Away as error:
            if not said:
                print(f"skitter: {server} does not answer ({error}); asking again", file=sys.stderr)
                said = True
            await _pause(stopped, _ASK_AGAIN if server else _ASK_AGAIN_SOON)
    return None


async def _work(
    brain: RemoteBrain,
    settings: Settings,
    clock: Clock,
    name: str,
    log_file: Path | None,
    stopped: asyncio.Event,
) -> None:
    gc.set_threshold(*GC_THRESHOLDS)
    async with open_hands(settings, clock) as hands:
        brain.in_flight = lambda: hands.fetcher.in_flight
        brain.log = Log(log_file or Path(os.devnull), clock)
        loop = Loop(brain, hands.step, clock, settings, name=name)
        brain.held = lambda: loop.held
        running = asyncio.create_task(loop.run())
        draining = asyncio.create_task(_drain_when(stopped, loop))
        try:
            await running
            await _deliver_the_rest(brain)
        finally:
            draining.cancel()
            await asyncio.gather(draining, return_exceptions=True)
            brain.log.close()


async def _drain_when(stopped: asyncio.Event, loop: Loop) -> None:
    await stopped.wait()
    loop.drain()


async def _deliver_the_rest(brain: RemoteBrain) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LONGEST_FAREWELL):
            await brain.leave()
            while brain.undelivered:
                await brain.beat()
                await asyncio.sleep(0.1)
    if brain.undelivered:
        raise SkitterError(
            f"the server is away: {brain.undelivered} answers are lost, and will be fetched again"
        )


async def _pause(stopped: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stopped.wait()
