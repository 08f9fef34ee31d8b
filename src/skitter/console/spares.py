"""Workers made ready before the crawl begins: forks of its own process, which has loaded all and opened nothing.

Below `hired.py`. A fork takes 10 ms of CPU where a new interpreter takes 180, and it waits for its first host
while the crawl is still being opened. Made only from a process of one thread without an event loop, and where the
kernel tells of a process by a descriptor (Linux); whoever finds none starts a process anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

_THREADS = Path("/proc/self/task")
# By all workers: loaded once.
_NEEDED = ("skitter.console.worker", "uvloop")
_SEPARATOR, _END = b"\0", b"\n"
_A_BUG = 1

Main = Callable[[Sequence[str]], int]
"""A command line to its exit code."""


class Spare:
    """One fork, looked after as a `Process` of asyncio is.

    waiting   for a command line on its standard input
    working   as `main` does; it dies when we do, by that input or by the kernel
    ended     and waited for: both descriptors are closed
    """

    def __init__(self, pid: int, orders: int) -> None:
        self.pid = pid
        self._orders = orders
        self._self = os.pidfd_open(pid)
        self._code: asyncio.Future[int] | None = None

    def start(self, words: Sequence[str]) -> None:
        """Raises OSError when it has ended."""
        os.write(self._orders, _SEPARATOR.join(map(os.fsencode, words)) + _END)

    def send_signal(self, number: int) -> None:
        if self._code is not None and self._code.done():
            raise ProcessLookupError(self.pid)
        signal.pidfd_send_signal(self._self, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        if self._code is None:
            loop = asyncio.get_running_loop()
            self._code = loop.create_future()
            loop.add_reader(self._self, self._note_end, loop, self._code)
        return await asyncio.shield(self._code)

    def _note_end(self, loop: asyncio.AbstractEventLoop, code: asyncio.Future[int]) -> None:
        loop.remove_reader(self._self)
        code.set_result(self.dismiss())

    def dismiss(self) -> int:
        """One that waits ends by itself when nobody can tell it anything any more."""
        self.let_go()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def let_go(self) -> None:
        os.close(self._orders)
        os.close(self._self)


@contextlib.contextmanager
def spared(count: int, main: Main) -> Iterator[list[Spare]]:
    """So many, or none where they cannot be had. Whoever takes one from the list looks after it."""
    spares: list[Spare] = []
    if count and _can_fork():
        for name in _NEEDED:
            import_module(name)
        for _ in range(count):
            spares.append(_forked(main, spares))
    try:
        yield spares
    finally:
        for spare in spares:
            spare.dismiss()


def _can_fork() -> bool:
    return hasattr(os, "pidfd_open") and _THREADS.is_dir() and len(os.listdir(_THREADS)) == 1


def _forked(main: Main, others: Sequence[Spare]) -> Spare:
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        for other in others:
            other.let_go()  # else they would not hear that we are gone while this one lives
        os.close(writing)
        _serve(main, reading)
    os.close(reading)
    return Spare(pid, writing)


def _serve(main: Main, orders: int) -> NoReturn:
    """Never goes back to where it was forked, and ends without what an interpreter does at its end: what lies in
    buffers is its parent's."""
    code = _A_BUG
    try:
        os.setsid()  # Ctrl-C is for the crawl, which tells us what to do
        os.dup2(orders, 0)
        os.close(orders)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
        gc.freeze()  # a collection would write to memory that is still shared
        words = _ordered()
        code = main(words) if words else 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _ordered() -> list[str]:
    """Byte by byte: what comes after it is not ours. Empty when there is nobody any more."""
    line = bytearray()
    while (byte := os.read(0, 1)) != _END:
        if not byte:
            return []
        line += byte
    return [os.fsdecode(word) for word in bytes(line).split(_SEPARATOR)]
