"""Tables of memory in files beside the store, each with the stamp of the close that saved it.

A file is believed only by the very stamp that the store has, which is written after the file and removed when the
crawl goes on: so what it says is what the store said when it was closed, whatever died or was copied since. Never
decides what to do without one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from mmap import mmap
from pathlib import Path


def save(path: Path, head: bytes, table: bytes | mmap) -> None:
    """`head` is the stamp, and what tells one version from another. A disk that has no room for it keeps none of
    it, and what was there before."""
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


def restored(path: Path, head: bytes, room: Callable[[int], mmap | None]) -> mmap | None:
    """The table that was saved with this very head, in the `room` for so many bytes; None when there is no such
    file, or no room for it. What the room holds then is not to be used."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size - len(head)
            if file.read(len(head)) != head or (table := room(size)) is None:
                return None
            return table if file.readinto(table) == size else None
    except OSError:
        return None
