"""The child process that writes parts of the tables: stretches in on standard input, how far it came out.

Beside the path of a URL: `stretches.py` starts it with the first part, so that its memory and time are not those
of the process that serves all workers. Holds nothing that matters, and lives no longer than its parent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import IO

import msgspec

from skitter.archive.stretches import Stretch, Written, received, send
from skitter.archive.tables import write_stretch

_PR_SET_PDEATHSIG = 1
# Nobody waits for a part, and workers do for leases.
_NICENESS = 10


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    while True:
        try:
            asked = msgspec.msgpack.decode(received(requests), type=Stretch)
        except EOFError:
            return
        send(replies, msgspec.msgpack.encode(_written(asked)))


def _written(asked: Stretch) -> Written:
    try:
        return Written(write_stretch(asked))
    except OSError as error:
        return Written(errno=error.errno or 0, reason=error.strerror or str(error))


def _live_no_longer_than(parent: int) -> None:
    """A pipe that ends would be seen only between two parts."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above
        sys.exit(0)


if __name__ == "__main__":
    _live_no_longer_than(int(sys.argv[1]))
    os.nice(_NICENESS)
    serve(sys.stdin.buffer, sys.stdout.buffer)
