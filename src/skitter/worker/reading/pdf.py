"""Asks a child process what a PDF says, and gives up on it in time.

On the path between the fetch and the archive record: a step waits here, and after its record no more. There is
one child, started at the first PDF and kept; when it crashes, hangs or runs out of memory it is killed and
the next PDF gets a new one. A PDF that cannot be read is an answer with a reason, never an exception.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process

import msgspec

from skitter.confinement import child_environment
from skitter.extras import advice, has
from skitter.parse.pdf import PdfReading
from skitter.settings import FetchSettings

_LENGTH = 8
_PATIENCE = 3  # times the limit of one PDF that another may wait for its turn
_PDFS_PER_CHILD = 500  # whatever pdfium leaks is given back then
_LONGEST_REPLY = 100_000_000


class PdfReader:
    """States: no child; a child that waits; a child that reads, while `_turn` is held. Whoever leaves a
    conversation before its end kills the child, so a reply never meets another question."""

    def __init__(self, settings: FetchSettings) -> None:
        self._seconds = settings.pdf_seconds
        self._memory = settings.pdf_memory
        self._turn = asyncio.Lock()
        self._child: Process | None = None
        self._asked = 0
        self._is_installed = has("pypdfium2")

    async def read(self, body: bytes) -> PdfReading:
        if not self._is_installed:
            return PdfReading(reason=advice("pypdfium2"))
        try:
            async with asyncio.timeout(_PATIENCE * self._seconds):
                await self._turn.acquire()
        except TimeoutError:
            return PdfReading(reason="too many PDFs were waiting to be read")
        try:
            return await self._read(body)
        finally:
            self._turn.release()

    async def close(self) -> None:
        await self._kill()

    async def _read(self, body: bytes) -> PdfReading:
        whole = False
        try:
            async with asyncio.timeout(self._seconds):
                reading = await self._converse(body)
            whole = True
            return reading
        except TimeoutError:
            return PdfReading(reason=f"not read within {self._seconds:g} s")
        except (asyncio.IncompleteReadError, OSError, msgspec.MsgspecError):
            return PdfReading(reason=f"its reader died: {await self._last_words()}")
        finally:
            if not whole or self._asked >= _PDFS_PER_CHILD:
                await self._kill()

    async def _converse(self, body: bytes) -> PdfReading:
        child = self._child = self._child or await self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        self._asked += 1
        child.stdin.write(len(body).to_bytes(_LENGTH, "big"))
        child.stdin.write(body)
        await child.stdin.drain()
        length = int.from_bytes(await child.stdout.readexactly(_LENGTH), "big")
        if length > _LONGEST_REPLY:
            raise msgspec.DecodeError("no reply of ours")
        return msgspec.msgpack.decode(await child.stdout.readexactly(length), type=PdfReading)

    async def _start(self) -> Process:
        """In a session of its own: Ctrl-C is for the crawl, which drains. -P: not whatever lies in the current
        folder under our name."""
        self._asked = 0
        program = ("-P", "-m", "skitter.worker.reading.pdf_child", str(self._memory), str(os.getpid()))
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *program,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,
            env=child_environment(),
        )

    async def _last_words(self) -> str:
        if self._child is None:
            return "it could not be started"
        code = await self._child.wait()
        return signal.Signals(-code).name if code < 0 else f"exit status {code}"

    async def _kill(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        if child.returncode is None:
            child.kill()
        if child.stdin is not None:
            child.stdin.close()
        await child.wait()
