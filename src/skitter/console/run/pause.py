"""A crawl or a server without room on its disk: it waits, says so, and goes on when there is room.

Everything is closed meanwhile: what was not committed is gone from memory and cut off the archive, so that a
pause is what a restart would be, and as safe. Never removes anything of the crawl's to make room.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from skitter.clock import Clock
from skitter.console.display.display import Display
from skitter.console.display.wording import size
from skitter.errors import SkitterError
from skitter.log import Log
from skitter.runtime.stop_signals import stop_event
from skitter.telemetry import Event, Snapshot

LOOK_AGAIN = 2.0
_REFRESH = 0.25
# Written and removed again: what a file system says is free may be kept from us by a quota or a limit.
_PROBE = 1_000_000
_PROBE_NAME = ".room.tmp"


async def wait_for_room(
    folders: Sequence[Path],
    min_free: int,
    why: str,
    display: Display,
    shown: Callable[[], Snapshot] | None,
    clock: Clock,
    log_file: Path,
    stopped: asyncio.Event | None = None,
) -> bool:
    """True when there is room again in all of the folders, which may lie on different disks; False when the
    operator has had enough: `stopped` is set, or a signal comes."""
    needed = max(min_free, _PROBE)
    display.note(
        f"paused: {why}; needs {size(needed)} free, looks again every {LOOK_AGAIN:.0f} s, Ctrl-C stops"
    )
    _tell(log_file, clock, Event.CRAWL_PAUSED, why=why, needed=needed, free=free_bytes(folders))
    stopped = stopped or stop_event()
    while True:
        await _look_on(stopped, display, shown)
        if stopped.is_set():
            return False
        if has_room(folders, needed):
            display.note("there is room again: going on")
            _tell(log_file, clock, Event.CRAWL_GOES_ON, free=free_bytes(folders))
            return True


async def _look_on(stopped: asyncio.Event, display: Display, shown: Callable[[], Snapshot] | None) -> None:
    for _ in range(round(LOOK_AGAIN / _REFRESH)):
        if shown is not None:
            display.update(shown())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REFRESH):
                await stopped.wait()
                return


def first_fault(error: BaseException) -> BaseException:
    """A full disk also fails the closing of what it filled: what came first is what has to be put right."""
    first, at = error, error.__context__
    while at is not None:
        if isinstance(at, SkitterError):
            first = at
        at = at.__context__
    return first


def _tell(log_file: Path, clock: Clock, event: Event, **fields: object) -> None:
    log = Log(log_file, clock)
    log.write(event, **fields)
    log.close()


def free_bytes(folders: Sequence[Path]) -> int:
    """On the fullest of their disks."""
    try:
        disks = [os.statvfs(folder) for folder in folders if folder.exists()]
    except OSError:
        return 0
    return min((disk.f_bavail * disk.f_frsize for disk in disks), default=0)


def has_room(folders: Sequence[Path], needed: int) -> bool:
    there = [folder for folder in folders if folder.exists()]
    return free_bytes(there) >= needed and all(_can_write(folder / _PROBE_NAME) for folder in there)


def _can_write(path: Path) -> bool:
    try:
        path.write_bytes(bytes(_PROBE))
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
    return True
