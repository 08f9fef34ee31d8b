"""Crawls as child processes: how `skitter crawl` is called, watched, and accounted for."""

from __future__ import annotations

import compileall
import contextlib
import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple

import skitter
from skitter.testing.web import SyntheticWeb

SOURCE = str(Path(skitter.__file__).parents[1])
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LOOKS = 0.2

# Quick to the end: what waits, waits for tenths of a second. A host that never yields its robots.txt is given
# up after ten failures in a row, which no other host reaches: five attempts of each of the few broken pages,
# and a good page in between resets the count.
ROBOTS_ATTEMPTS = 10
_QUICK = """\
[crawl]
scope = "any"
linger = 5.0

[politeness]
delay = {delay}

[retry]
backoff = [0.3]
quarantine_after = {robots_attempts}

[archive]
segment_size = {segment_size}

[frontier]
lease_duration = {lease}

# The web's plan knows every URL that is to be asked for; a path that is made up is none of them.
[traps]
probe = false
"""


def write_quick_settings(
    path: Path, *, delay: float = 0.2, segment_size: int = 4_000_000, lease: float = 60.0
) -> None:
    path.write_text(
        _QUICK.format(delay=delay, robots_attempts=ROBOTS_ATTEMPTS, segment_size=segment_size, lease=lease)
    )


class LogSize:
    """How many requests the web has logged, read on from where the last look ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self.rows = -1  # the first line is the plan

    def look(self) -> int:
        with self._path.open("rb") as stream:
            stream.seek(self._at)
            new = stream.read()
        self._at += len(new)
        self.rows += new.count(b"\n")
        return max(0, self.rows)


class Usage(NamedTuple):
    """What a child and its children took: by the kernel's own books, in seconds; resident together at most, as
    far as a look every fifth of a second tells, in bytes."""

    code: int
    wall: float
    cpu: float
    system: float
    """The part of `cpu` that the kernel spent for the child."""
    rss: int


def child_environment() -> dict[str, str]:
    _compile_once()
    paths = [SOURCE, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


@functools.cache
def _compile_once() -> None:
    """As pip does when it installs: where Python is told not to write bytecode, each start of a source tree
    compiles two hundred modules, 0.4 s of CPU."""
    compileall.compile_dir(str(Path(SOURCE) / "skitter"), quiet=1)


def skitter_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "skitter", *arguments]


def web_crawl(web: SyntheticWeb, folder: Path, config: Path, *more: str) -> list[str]:
    """The command that crawls a synthetic web, and that goes on with it when it is given again."""
    places = ["--into", str(folder), "--config", str(config), "--resolve", web.resolve]
    return skitter_command("crawl", *web.seeds, *places, "--allow-private", "--json", *more)


def start(
    command: Sequence[str],
    output: int | IO[bytes] = subprocess.DEVNULL,
    environ: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.Popen[bytes]:
    """`environ` is added to the environment that the child gets anyway."""
    environment = {**child_environment(), **environ}
    return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)


def run_with_usage(
    command: Sequence[str],
    output: int | IO[bytes] = subprocess.DEVNULL,
    *,
    stop_after: float | None = None,
    stop_by: signal.Signals = signal.SIGINT,
    environ: Mapping[str, str] = MappingProxyType({}),
) -> Usage:
    began = time.monotonic()
    child = start(command, output, environ)
    stop = threading.Timer(stop_after or 0.0, os.kill, (child.pid, stop_by))
    if stop_after is not None:
        stop.start()
    with _watched(child.pid) as memory:
        _, status, usage = os.wait4(child.pid, 0)
    stop.cancel()
    wall = time.monotonic() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime
    return Usage(child.returncode, wall, cpu, usage.ru_stime, memory.most)


class _Memory:
    """Of a process and all that come from it. Their `ru_maxrss` will not do: it is the largest one's alone, and
    at least what their parent had when it started them."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ended = threading.Event()
        self.most = 0

    def watch(self) -> None:
        while not self._ended.wait(_LOOKS):
            self.most = max(self.most, sum(map(_resident, family(self._pid))))

    def end(self) -> None:
        self._ended.set()


@contextmanager
def _watched(pid: int) -> Iterator[_Memory]:
    memory = _Memory(pid)
    watching = threading.Thread(target=memory.watch, daemon=True)
    watching.start()
    try:
        yield memory
    finally:
        memory.end()
        watching.join()


def family(pid: int) -> Iterator[int]:
    """A process and all that come from it."""
    yield pid
    with contextlib.suppress(OSError):  # it may end meanwhile
        for task in os.listdir(f"/proc/{pid}/task"):
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                yield from family(int(child))


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    return 0
