"""How much of the disk a crawl's folder takes: counted in a thread, and rarely, since it may have many files."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

_FRESH = 30.0


class DiskUse:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bytes = 0
        self._at = float("-inf")

    async def bytes(self, now: float) -> int:
        """Of less than half a minute ago."""
        if not 0 <= now - self._at < _FRESH:
            self._at = now
            self._bytes = await asyncio.to_thread(_taken, self._folder)
        return self._bytes


def _taken(folder: Path) -> int:
    """Blocks that the disk has given away; a file may go while it is looked at."""
    total, folders = 0, [str(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:
            continue
    return total
