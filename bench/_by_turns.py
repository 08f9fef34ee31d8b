"""Commands that are compared while the machine changes under them: each runs for a second, stopped in between.

A core of a virtual machine is worth a third more or less within a minute, and two crawls of half a minute one
after the other differ by that. By turns both meet the same machine. All processes of a command are stopped and go
on together, whoever started them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench._crawls import family, start
from bench._mirrors import machine_cpu

_TURN = 1.0


class Spent(NamedTuple):
    """`wall` is while it ran, `cpu` its own and its children's, `busy` what the machine did meanwhile, `read` the
    bytes that came from its disks then, whoever asked for them."""

    code: int
    wall: float
    cpu: float
    busy: float
    read: int


class _Running:
    def __init__(self, command: Sequence[str], output: Path) -> None:
        with output.open("wb") as stream:
            self._child = start(command, stream)
        self._ended = threading.Event()
        self._code, self._cpu = 0, 0.0
        self._wall = self._busy = 0.0
        self._read = 0
        self._waiting = threading.Thread(target=self._wait, daemon=True)
        self._waiting.start()
        self._signal(signal.SIGSTOP)

    def turn(self) -> bool:
        """Whether there is more to do."""
        began, busy, read = time.monotonic(), machine_cpu(), _read_from_disk()
        self._signal(signal.SIGCONT)
        is_over = self._ended.wait(_TURN)
        if not is_over:
            self._signal(signal.SIGSTOP)
        self._wall += time.monotonic() - began
        self._busy += machine_cpu() - busy
        self._read += _read_from_disk() - read
        return not is_over

    def spent(self) -> Spent:
        self._waiting.join()
        return Spent(self._code, self._wall, self._cpu, self._busy, self._read)

    def kill(self) -> None:
        if not self._ended.is_set():
            self._signal(signal.SIGKILL)

    def _wait(self) -> None:
        _, status, usage = os.wait4(self._child.pid, 0)
        self._child.returncode = self._code = os.waitstatus_to_exitcode(status)
        self._cpu = usage.ru_utime + usage.ru_stime
        self._ended.set()

    def _signal(self, number: signal.Signals) -> None:
        for pid in tuple(family(self._child.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _read_from_disk() -> int:
    lines = Path("/proc/vmstat").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("pgpgin "))


def by_turns(commands: Mapping[str, Sequence[str]], outputs: Path) -> dict[str, Spent]:
    """What each says is in a file of its name among the `outputs`."""
    running = {name: _Running(command, outputs / name) for name, command in commands.items()}
    try:
        left = [*running.values()]
        while left:
            left = [one for one in left if one.turn()]
        return {name: one.spent() for name, one in running.items()}
    finally:
        for one in running.values():
            one.kill()
