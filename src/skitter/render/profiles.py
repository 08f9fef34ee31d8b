"""The folders that browsers live in: one for each, removed with it.

Who makes a folder holds a lock on it, which ends with its process, however that dies. So whoever starts a browser
next knows which folders nobody needs any more, also where processes do not see each other, and removes them.
Never touches a folder whose owner lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "skitter-browser-"


class Profile:
    """Locked from the beginning until `remove`."""

    def __init__(self) -> None:
        self.path, self._lock = _make()

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _make() -> tuple[str, int]:
    while True:
        path = tempfile.mkdtemp(prefix=_PREFIX)
        # Somebody who sweeps may be quicker, before it is locked: then there is another one.
        with contextlib.suppress(OSError):
            lock = _locked(path)
            if os.path.isdir(path):
                return path, lock
            os.close(lock)


def sweep() -> int:
    """Removes what killed processes left, and says how many folders that were."""
    swept = 0
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # It is another user's, or somebody holds it.
        with contextlib.suppress(OSError):
            lock = _locked(str(folder))
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
            swept += 1
    return swept


def _locked(folder: str) -> int:
    """Raises OSError when it is held, gone or no folder of ours."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock
