"""A worker that a crawl started ends with the crawl, whatever ends it.

The crawl's next run believes that nobody of the last one talks to hosts any more; a worker that outlived it would
make that a lie.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading

_SET_PARENT_DEATH_SIGNAL = 1


def hold_on() -> None:
    """On Linux the kernel kills this process when its parent dies, even a stopped one; elsewhere, and in case
    that it died just before, the end of standard input, of which the parent holds the other end, tells."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    threading.Thread(target=_until_the_end, daemon=True, name="leash").start()


def _until_the_end() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGKILL)
