"""Files beside the store that hold filters of memory, each with the stamp of the close that saved it.

The store keeps the same stamp: written after the file, removed when the crawl goes on. A file is used only if
both stamps are equal. So it says exactly what the store said at its last close, whatever crashed or was copied
since. Never decides what to do when there is no such file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from mmap import mmap
from pathlib import Path


def save(path: Path, head: bytes, table: bytes | mmap) -> None:
    """`head` is the stamp and the version. On a full disk nothing is written, and the former file stays."""
    temporary = path.with_suffix(".new")
    try:
        with temporary.open("wb") as file:
            file.write(head)
            file.write(table)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def restore(path: Path, head: bytes, room: Callable[[int], mmap | None]) -> mmap | None:
    """Read the table that was saved with exactly this head into the memory that `room` gives for its size. None
    when there is no such file, or no room: then that memory must not be used."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size - len(head)
            if file.read(len(head)) != head or (table := room(size)) is None:
                return None
            return table if file.readinto(table) == size else None
    except OSError:
        return None
