"""A worker that a crawl started ends with the crawl, whatever ends it.

The crawl's next run believes that no worker of the last run still talks to hosts. A worker that outlived its
crawl would make that untrue.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading

_SET_PARENT_DEATH_SIGNAL = 1


def end_with_parent() -> None:
    """On Linux the kernel kills this process when its parent dies, even a stopped one. Elsewhere, and in case
    that the parent died just before, the end of standard input tells: the parent holds its other end."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    threading.Thread(target=_wait_for_end_of_input, daemon=True, name="parent-death").start()


def _wait_for_end_of_input() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGKILL)
