"""Asks the process that runs users' code, and gives up on it in time.

Beside a worker, or beside `skitter extract`: whoever has a page waits here for what came of it. There is one
process. It is started again when it died or had to be killed, and then only the extractor that it was at loses
its page: the other extractors of that page, and the other pages, are asked again. Never raises for what users'
code does.
"""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import os
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import Mapping

import msgspec

from skitter.errors import SkitterError, UsageError
from skitter.extend.extractor import Described, Fault, PageResult
from skitter.extend.messages import (
    LENGTH,
    LONGEST_REPLY,
    PLACE,
    PageMessage,
    Start,
    decode_result,
    decode_started,
    encode,
    framed,
)
from skitter.model import FaultKind
from skitter.settings.plugins import ExtractRule, PluginSettings

_PAGES_AT_ONCE = 16
_BYTES_AT_ONCE = 4_000_000
# Seconds that loading users' code may take.
_LONGEST_START = 60.0
_ENVIRONMENT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")


class _Asked:
    """A page on its way; `result` has the faults of extractors that ended the process, if there were any."""

    __slots__ = ("done", "message", "result")

    def __init__(self, message: PageMessage, done: asyncio.Future[PageResult]) -> None:
        self.message = message
        self.done = done
        self.result: PageResult | None = None


class _Watch:
    """Kills a process that stays at one function of one page for too long. Whoever goes on to the next one is not
    late: answers come together. A timer, because a task for each answer would cost more than the answer."""

    def __init__(self, place: mmap.mmap, patience: float, process: Process | None) -> None:
        self._place, self._patience, self._process = place, patience, process
        self._seen = b""
        self.has_killed = False
        self._look()

    def _look(self) -> None:
        now = self._place[:]
        if now == self._seen and self._process is not None and self._process.returncode is None:
            self.has_killed = True
            self._process.kill()
            return
        self._seen = now
        self._timer = asyncio.get_running_loop().call_later(self._patience, self._look)

    def end(self) -> None:
        self._timer.cancel()


class ExtractorProcess:
    """States: no process; one that waits; one that answers, while `_answering` runs. `restarts` counts those that
    died or were killed."""

    def __init__(
        self, settings: PluginSettings, rules: Mapping[str, ExtractRule], pages_at_once: int = _PAGES_AT_ONCE
    ) -> None:
        self._settings = settings
        self._pages_at_once = pages_at_once
        self._start_message = encode(Start(settings.with_, dict(rules)))
        self._process: Process | None = None
        self._waiting: deque[_Asked] = deque()
        self._answering: asyncio.Task[None] | None = None
        self._asked_in_all = 0
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._file.truncate(PLACE)
        self._place = mmap.mmap(self._file.fileno(), PLACE)
        self.restarts = 0

    async def start(self) -> list[Described]:
        """What users' code offers; raises UsageError where it cannot be loaded."""
        await self._kill()
        self._asked_in_all = 0
        self._place[:] = bytes(PLACE)
        shared = self._file.fileno()
        words = (str(self._settings.memory), str(os.getpid()), str(shared), str(self._settings.seconds))
        # -P: not whatever lies in the current folder under our name. A session of its own: Ctrl-C is for the
        # crawl.
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-m", "skitter.extend.child", *words),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            pass_fds=(shared,),
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(_LONGEST_START):
                self._write(framed(self._start_message))
                started = decode_started(await self._read())
        except TimeoutError:
            raise UsageError(
                f"plugins were not loaded within {_LONGEST_START:g} s: what do they wait for?"
            ) from None
        except (asyncio.IncompleteReadError, OSError, msgspec.MsgspecError):
            said = await self._last_words()
            raise UsageError(f"plugins cannot be loaded: their process ended ({said})") from None
        if started.error:
            await self._kill()
            raise UsageError(started.error)
        return started.described

    async def run(self, message: PageMessage) -> PageResult:
        asked = _Asked(message, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if self._answering is None or self._answering.done():
            self._answering = asyncio.get_running_loop().create_task(self._answer_all())
        return await asked.done

    async def close(self) -> None:
        if self._answering is not None:
            self._answering.cancel()
            await asyncio.gather(self._answering, return_exceptions=True)
        await self._kill()
        self._place.close()
        self._file.close()

    # -- pages

    async def _answer_all(self) -> None:
        batch: list[_Asked] = []
        try:
            # all pages that were read in this turn of the event loop go together
            await asyncio.sleep(0)
            while batch := self._next_batch():
                if self._process is None:
                    await self.start()
                await self._answer(batch)
        except BaseException as error:
            for asked in (*batch, *self._waiting):
                if not asked.done.done():
                    asked.done.set_exception(
                        error if isinstance(error, SkitterError) else SkitterError("plugins were stopped")
                    )
            self._waiting.clear()
            if not isinstance(error, SkitterError):
                raise

    def _next_batch(self) -> list[_Asked]:
        batch: list[_Asked] = []
        size = 0
        while self._waiting and len(batch) < self._pages_at_once and size < _BYTES_AT_ONCE:
            asked = self._waiting.popleft()
            if not asked.done.done():  # else nobody waits any more
                batch.append(asked)
                size += len(asked.message.body)
        return batch

    async def _answer(self, batch: list[_Asked]) -> None:
        """Until every page has its answer, or the process is gone."""
        before, answered = self._asked_in_all, 0
        self._asked_in_all += len(batch)
        hooks = max(len(asked.message.numbers) for asked in batch)
        watch = _Watch(self._place, 2 * self._settings.seconds * hooks, self._process)
        try:
            self._write(b"".join([framed(encode(asked.message)) for asked in batch]))
            for asked in batch:
                result = decode_result(await self._read())
                answered += 1
                if asked.result is not None:
                    asked.result.add(result)
                if not asked.done.done():
                    asked.done.set_result(asked.result or result)
        except (asyncio.IncompleteReadError, OSError, msgspec.MsgspecError):
            if watch.has_killed:
                fault = FaultKind.LATE, "it did not end when its time was over, and was killed"
            else:
                fault = FaultKind.DIED, f"its process ended: {await self._last_words()}"
            await self._blame(batch, before, answered, *fault)
        finally:
            watch.end()

    async def _blame(
        self, batch: list[_Asked], before: int, answered: int, kind: FaultKind, why: str
    ) -> None:
        """The extractor that the process was at is at fault; all that has no answer is asked again without it."""
        await self._kill()
        self.restarts += 1
        page_number, extractor = (
            int.from_bytes(self._place[:8], "big"),
            int.from_bytes(self._place[8:], "big"),
        )
        at = page_number - before - 1
        culprit = batch[at if answered <= at < len(batch) else answered]
        numbers = culprit.message.numbers
        blamed = extractor if extractor in numbers else numbers[0]
        culprit.result = culprit.result or PageResult()
        culprit.result.faults.append(Fault(blamed, kind, why))
        culprit.message.numbers = tuple(number for number in numbers if number != blamed)
        again = [asked for asked in batch[answered:] if not asked.done.done()]
        if not culprit.message.numbers and not culprit.done.done():
            culprit.done.set_result(culprit.result)
            again.remove(culprit)
        self._waiting.extendleft(reversed(again))

    # -- the process

    def _write(self, content: bytes) -> None:
        """Not waited for: a process that does not read is seen by its not answering."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(content)

    async def _read(self) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        length = int.from_bytes(await self._process.stdout.readexactly(LENGTH), "big")
        if length > LONGEST_REPLY:
            raise msgspec.DecodeError("no reply of ours")
        return await self._process.stdout.readexactly(length)

    async def _last_words(self) -> str:
        if self._process is None:
            return "it could not be started"
        try:
            async with asyncio.timeout(1.0):
                code = await self._process.wait()
        except TimeoutError:
            return "it closed its pipe"
        return signal.Signals(-code).name if code < 0 else f"exit status {code}"

    async def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()
