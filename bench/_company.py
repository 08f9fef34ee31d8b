"""A server and its workers as processes that are killed, stopped and started again, each with its own clock.

Under `_unrest.py`, which decides what happens to whom. Keeps the times that an account needs: when each server
ran, when nobody could settle, and when requests may have been lost.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from bench._crawls import child_environment, start
from bench._jumps import Run, Wall
from bench._torment import Torments


def without_pandas(folder: Path) -> dict[str, str]:
    """The environment of a process that finds no pandas. Only developers have it, and pyarrow imports it where it
    can, with the first segment that a server finishes: for up to ten seconds on busy cores it answered nobody."""
    folder.mkdir()
    (folder / "pandas.py").write_text("raise ImportError\n")
    return {"PYTHONPATH": os.pathsep.join([str(folder), child_environment()["PYTHONPATH"]])}


class Process:
    """States: not started, running, stopped (until `wakes_at`), ended."""

    def __init__(self, name: str, command: list[str], output: IO[bytes], environ: Mapping[str, str]) -> None:
        self.name = name
        self._environ = environ
        self._command = command
        self._output = output
        self._child: subprocess.Popen[bytes] | None = None
        self._wall = Wall()
        self.offset = 0.0
        self.began = 0.0
        self.stopped_at = 0.0
        self.wakes_at: float | None = None

    def start(self, offset: float) -> None:
        self.offset, self.began, self.wakes_at = offset, time.time(), None
        self._wall.set(offset)
        self._child = start(self._command, self._output, {**self._environ, **self._wall.environ})

    @property
    def code(self) -> int | None:
        """None while it runs."""
        assert self._child is not None
        return self._child.poll()

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def kill(self) -> None:
        assert self._child is not None
        self._child.kill()
        self._child.wait()

    def tell_to_end(self) -> None:
        assert self._child is not None
        self._child.send_signal(signal.SIGTERM)

    def ends_within(self, seconds: float) -> int | None:
        assert self._child is not None
        try:
            return self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, seconds: float) -> None:
        assert self._child is not None
        self._child.send_signal(signal.SIGSTOP)
        self.stopped_at = time.time()
        self.wakes_at = self.stopped_at + seconds

    def wake(self) -> None:
        assert self._child is not None
        self._child.send_signal(signal.SIGCONT)
        self.wakes_at = None


class Company:
    """The server comes first. `is_up` when it has answered since it was started."""

    def __init__(self, port: int, server: Process, workers: list[Process], done: Torments) -> None:
        self._port = port
        self.server = server
        self.workers = workers
        self.members = [server, *workers]
        self.done = done
        self.is_up = False
        self._down_since = time.time()

    def start(self, member: Process, offset: float) -> None:
        member.start(offset)
        if member is self.server:
            self.is_up = False

    def kill(self, member: Process) -> None:
        member.kill()
        self.note_end(member)

    def note_end(self, member: Process) -> None:
        """After it is gone: the kernel has closed its connections by then, and the web has noticed."""
        now = time.time()
        if member.wakes_at is not None:
            self.done.pauses.append((member.stopped_at, now))
            member.wakes_at = None
        self.done.deaths.append(now)
        if member is self.server:
            # Workers deliver to the next server what they fetched while there was none.
            since = self.done.runs[-1].began if self.done.runs else member.began
            self.done.runs.append(Run(member.offset, since, now))
            self._down_since = now if self.is_up else self._down_since
            self.is_up = False

    def stop(self, member: Process, seconds: float) -> None:
        if member.wakes_at is None:
            member.stop(seconds)
            self.done.deaths.append(member.stopped_at)

    def look(self) -> None:
        """Wakes whose time has come, and hears whether the server is back."""
        for member in self.members:
            if member.wakes_at is not None and time.time() >= member.wakes_at:
                self._wake(member)
        if not self.is_up and self.server.wakes_at is None and self.stats() is not None:
            self.is_up = True
            self.done.deaths.append(time.time())
            self.done.pauses.append((self._down_since, time.time()))

    def _wake(self, member: Process) -> None:
        member.wake()
        self.done.deaths.append(time.time())
        self.done.pauses.append((member.stopped_at, time.time()))

    def wake_all(self) -> None:
        for member in self.members:
            if member.wakes_at is not None:
                self._wake(member)

    def leave(self) -> None:
        """Whatever happened, nobody is left behind."""
        for member in self.members:
            if member.is_running:
                member.kill()

    def stats(self) -> Any:
        """None when nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/v1/stats", timeout=2) as answer:
                return json.load(answer)["stats"]
        except (OSError, ValueError):
            return None

    def is_done(self) -> bool:
        stats = self.stats() if self.is_up and self.server.wakes_at is None else None
        return stats is not None and not any(
            stats["urls"][state] for state in ("queued", "in_progress", "failed")
        )
