"""What happens to a crawl's folder behind its back: torn and dirtied tails of its files, a disk without room.

Only between two runs (the files) or from outside (the disk). Never makes a WARC file shorter than what was
committed: that is not the death of a process, and a crawl refuses to go on from it.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

MOST_TORN = 200
_ROOMY = "4g"
_SHRINK_TRIES = 20


class LogGrowth:
    """When the newest write-ahead log had which length: a torn-off tail may hold several small commits."""

    def __init__(self, frontier: Path) -> None:
        self._frontier = frontier
        self._seen: list[tuple[float, str, int]] = []

    def look(self) -> None:
        log = _newest(self._frontier, "*.log")
        if log is None:
            return
        try:
            size = log.stat().st_size
        except FileNotFoundError:  # the crawl had done with it
            return
        if not self._seen or self._seen[-1][1:] != (log.name, size):
            self._seen.append((time.time(), log.name, size))

    def after(self, log: Path, length: int) -> list[float]:
        """The moments at which it was seen to have grown beyond a length."""
        return [at for at, name, size in self._seen if name == log.name and size > length]


def tear_store(frontier: Path, growth: LogGrowth, choose: random.Random) -> list[float]:
    """Cut the tail off the newest write-ahead log: when that was written, nothing if the log is empty."""
    log = _newest(frontier, "*.log")
    if log is None or not (before := log.stat()).st_size:
        return []
    left = max(0, before.st_size - choose.randint(1, MOST_TORN))
    os.truncate(log, left)
    return [*growth.after(log, left), before.st_mtime]


def dirty_store(frontier: Path, choose: random.Random) -> bool:
    """Garbage behind the last record of the newest write-ahead log, as of a write that was under way."""
    return _append(_newest(frontier, "*.log"), choose)


def dirty_archive(archive: Path, choose: random.Random) -> bool:
    """Garbage at the end of a growing segment and of its journal."""
    segment, journal = _newest(archive, "*.warc.gz.open"), _newest(archive, "*.cdxj.open")
    return _append(segment, choose) and _append(journal, choose)


def _newest(folder: Path, pattern: str) -> Path | None:
    # By name: RocksDB counts its logs, the archive its segments, and the clock may have been set back.
    return max(folder.glob(pattern), key=lambda path: path.name.split("-")[-1], default=None)


def _append(path: Path | None, choose: random.Random) -> bool:
    if path is None:
        return False
    with path.open("ab") as file:
        file.write(choose.randbytes(choose.randint(1, MOST_TORN)))
    return True


class SmallDisk:
    """A tmpfs of its own whose size can be brought down to what is in use. Needs root."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def mount(self) -> str:
        """The reason why not, empty when it is there."""
        self.place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={_ROOMY}", "tmpfs", str(self.place)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return "there is no mount command"
        return done.stderr.strip() or "mount failed" if done.returncode else ""

    def fill(self, spare: int) -> None:
        """Leave about `spare` bytes of room. The crawl goes on writing meanwhile, so it may take some tries."""
        for _ in range(_SHRINK_TRIES):
            size = shutil.disk_usage(self.place).used + spare
            if self._resize(str(size)):
                return
        raise SystemExit(f"cannot take away the room of {self.place}")

    def free(self) -> None:
        if not self._resize(_ROOMY):
            raise SystemExit(f"cannot give {self.place} its room back")

    def unmount(self) -> None:
        subprocess.run(["umount", str(self.place)], check=True)

    def _resize(self, size: str) -> bool:
        command = ["mount", "-o", f"remount,size={size}", str(self.place)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
