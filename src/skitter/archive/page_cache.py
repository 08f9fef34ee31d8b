"""Bytes that were written, are on the disk and are not read again soon leave the system's page cache.

Called after a file was synced. Else an archive fills all memory of a machine or a container, in the place of
what the frontier reads again and again, and on a virtual machine every write would ask the host for memory.
"""

from __future__ import annotations

import contextlib
import os


def leave_cache(fd: int, length: int) -> None:
    """The first `length` bytes, as far as they are on the disk. Advice: where it is not taken nothing is lost."""
    if length and hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):
            os.posix_fadvise(fd, 0, length, os.POSIX_FADV_DONTNEED)
