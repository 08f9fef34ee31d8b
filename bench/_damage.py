"""What happens to a crawl's folder behind its back: torn and dirtied tails of its files, a disk without room.

Only between two runs (the files) or from outside (the disk). Never makes a WARC file shorter than what was
committed: that is not the death of a process, and a crawl refuses to go on from it.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

MOST_TORN = 200
_ROOMY = "4g"
_SHRINK_TRIES = 20


def tear_store(frontier: Path, choose: random.Random) -> float | None:
    """Cut the tail off the newest write-ahead log: when it had been written last, None if it is empty."""
    log = _newest(frontier, "*.log")
    if log is None or not (before := log.stat()).st_size:
        return None
    os.truncate(log, max(0, before.st_size - choose.randint(1, MOST_TORN)))
    return before.st_mtime


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
