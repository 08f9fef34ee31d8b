"""The worker processes of a crawl: forks that were made ready for it, or interpreters of their own.

Between `labour.py`, which has work for them, and the processes themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from pathlib import Path

from skitter.console.spares import Spare

# From so many workers on, the desk has a core's worth to do: it takes 150 to 300 us for a page of theirs, which
# they take 500 to 600 for. Reckoned, not measured: there were two cores. Below it the crawl's own process is the
# first of them.
DESK_ONLY_FROM = 4


def processes_for(workers: int) -> int:
    """Beside the crawl's own. The setting 0 is as many workers as there are cores, once they are needed."""
    return workers if workers >= DESK_ONLY_FROM else max(0, workers - 1)


class Hired:
    """By their ids, and where they are to join. `spares` are taken first."""

    def __init__(self, folder: Path, place: Path, spares: list[Spare]) -> None:
        self._folder = folder
        self._spares = spares
        self._started = 0
        self.place = place
        self.processes: dict[int, Process | Spare] = {}
        self._latest: dict[int, tuple[str, Process | Spare]] = {}

    async def start(self, place: int) -> None:
        self._started += 1
        name = f"worker-{place + 1}-{self._started}"
        log = str(self._folder / f"worker-{place + 1}.log")
        words = ("worker", "--join", f"unix:{self.place}", "--name", name, "--log", log, "--leashed")
        process = self._spare(words) or await _begun(words)
        self.processes[process.pid] = process
        self._latest[place] = name, process

    def _spare(self, words: Sequence[str]) -> Spare | None:
        while self._spares:
            spare = self._spares.pop()
            try:
                spare.start(words)
            except OSError:
                spare.dismiss()
            else:
                return spare
        return None

    async def ended(self, place: int) -> tuple[str, int]:
        """When the one that has this place has ended: its name and code."""
        name, process = self._latest[place]
        code = await process.wait()
        self.processes.pop(process.pid, None)
        return name, code

    def drain(self) -> None:
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)

    async def end(self) -> None:
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await asyncio.gather(*(process.wait() for process in self.processes.values()))
        self.processes.clear()


async def _begun(words: Sequence[str]) -> Process:
    """In a session of its own: Ctrl-C is for us, who tell it what to do. Its input ends when we do."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "skitter", *words, stdin=PIPE, stdout=DEVNULL, start_new_session=True
    )
