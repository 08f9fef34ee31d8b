"""A TCP proxy on loopback that hangs up when it likes: after so many bytes of asks, or of answers.

Between a worker and its server. Each connection draws its own end, so that asks arrive in part and answers to
what was committed get lost. It only passes bytes on; what they mean it looks at to count.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from types import TracebackType
from typing import NamedTuple, Self

_READ = 65_536
# What is asked are pages by the dozen, what is answered are verdicts and leases.
_MOST_ASKED, _MOST_ANSWERED = 20_000_000, 300_000
_NEVER = 1 << 60
# An answer to a settle is some hundred bytes: of the head, or in the verdicts.
_MOST_SETTLES, _SHORTER = 20, 250
_SETTLE = b"POST /v1/work/settle"


class CuttingProxy:
    """`cuts` are connections that it ended; `answers_lost` those of them that were being answered to a settle."""

    def __init__(self, to: int, choose: random.Random) -> None:
        self._to = to
        self._choose = choose
        self.port = 0
        self.cuts = 0
        self.answers_lost = 0
        self._loop = asyncio.new_event_loop()
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._listening.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._ended = asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._listening.set()
        await self._ended.wait()
        server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.transport.abort()
            return
        wire = Wire(self._end())
        ways = [
            asyncio.create_task(wire.pass_on(reader, there[1], asked=True)),
            asyncio.create_task(wire.pass_on(there[0], writer, asked=False)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for side in (writer, there[1]):
                side.transport.abort()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        self.cuts += wire.is_cut
        self.answers_lost += wire.lost_answer

    def _end(self) -> Ending:
        """One of the ways to end."""
        match self._choose.randrange(3):
            case 0:
                return Ending(asked=self._choose.randrange(_MOST_ASKED))
            case 1:
                return Ending(answered=self._choose.randrange(_MOST_ANSWERED))
            case _:
                return Ending(
                    settles=self._choose.randint(1, _MOST_SETTLES), of_answer=self._choose.randrange(_SHORTER)
                )


class Ending(NamedTuple):
    """Bytes that may pass each way; or how many settles may be asked for, and how much of the last one's answer
    is heard."""

    asked: int = _NEVER
    answered: int = _NEVER
    settles: int = _NEVER
    of_answer: int = 0


class Wire:
    """Both ways of one connection."""

    def __init__(self, ending: Ending) -> None:
        self._left = {True: ending.asked, False: ending.answered}
        self._settles = ending.settles
        self._of_answer = ending.of_answer
        self.is_settling = False
        self.is_cut = False
        self.lost_answer = False

    async def pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, asked: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while received := await reader.read(_READ):
                if asked and received.startswith(b"POST "):
                    self._asked(received.startswith(_SETTLE))
                left = self._left[asked]
                self._left[asked] -= len(received)
                writer.write(received[:left])
                await writer.drain()
                if len(received) >= left:
                    self.is_cut = True
                    self.lost_answer = self.is_settling and not asked
                    return

    def _asked(self, is_settling: bool) -> None:
        self.is_settling = is_settling
        self._settles -= is_settling
        if is_settling and not self._settles:
            self._left[False] = self._of_answer
