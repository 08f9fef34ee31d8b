"""The worker processes that a crawl starts: each an interpreter of its own that runs `skitter worker`.

Below `process_pool.py`, which says when one is needed. They end with the crawl, whatever ends it
(`parent_death.py`). Never decides whether one that died is replaced.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from skitter.folder import CrawlFolder
from skitter.runtime.worker_settings import processes_for

_SOCKET = "workers.sock"
# Bytes of a unix socket's path: Linux takes 107, others 103.
_LONGEST_SOCKET = 100


@contextlib.asynccontextmanager
async def start_processes(
    folder: CrawlFolder, workers: int, *, log_json: bool = False
) -> AsyncIterator[WorkerProcesses]:
    """As many as so many workers need. They wait for the socket: the crawl may be opened meanwhile. With
    `log_json` they write their log to standard error too, as the crawl does."""
    with _place_for_socket(folder) as socket:
        processes = WorkerProcesses(folder.path, socket, ("--log-json",) if log_json else ())
        try:
            await asyncio.gather(*(processes.start(place) for place in range(processes_for(workers))))
            yield processes
        finally:
            await processes.kill()


@contextlib.contextmanager
def _place_for_socket(folder: CrawlFolder) -> Iterator[Path]:
    place = (folder.path / _SOCKET).absolute()
    if len(bytes(place)) <= _LONGEST_SOCKET:
        yield place
        return
    with tempfile.TemporaryDirectory(prefix="skitter-") as short:  # which nobody else may enter
        yield Path(short) / _SOCKET


class WorkerProcesses:
    """`running` has the processes by their ids. A place (0, 1, ...) is held by one process after the other."""

    def __init__(self, folder: Path, socket: Path, flags: Sequence[str] = ()) -> None:
        self._folder = folder
        self._flags = flags
        self._started = 0
        self._latest: dict[int, tuple[str, Process]] = {}
        self.socket = socket
        self.running: dict[int, Process] = {}

    async def start(self, place: int) -> None:
        self._started += 1
        name = f"worker-{place + 1}-{self._started}"
        log = str(self._folder / f"worker-{place + 1}.log")
        words = ("worker", "--join", f"unix:{self.socket}", "--name", name, "--log", log)
        process = await _start((*words, "--end-with-parent", *self._flags))
        self.running[process.pid] = process
        self._latest[place] = name, process

    async def wait(self, place: int) -> tuple[str, int]:
        """The name and exit code of the process at this place, once it has ended."""
        name, process = self._latest[place]
        code = await process.wait()
        self.running.pop(process.pid, None)
        return name, code

    def drain(self) -> None:
        for process in self.running.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)

    async def kill(self) -> None:
        for process in self.running.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await asyncio.gather(*(process.wait() for process in self.running.values()))
        self.running.clear()


async def _start(words: Sequence[str]) -> Process:
    """In a session of its own: Ctrl-C is for the crawl, which then drains its workers. Its standard input ends
    when the crawl does."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "skitter", *words, stdin=PIPE, stdout=DEVNULL, start_new_session=True
    )
