"""Who turns committed rows into parts of the tables: this process, or a child that it starts for that.

Between a segment, which knows what is committed, and `tables.py`. A stretch of a journal is all that either is
told, and a part is named after its stretch: what is written twice is the same file again. So a child may die at
any line, and is asked again or done without. It holds the archive's lock beside its parent: nobody recovers a
folder in which an orphan still writes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import IO

import msgspec

LENGTH = 4  # bytes that say how long the message after them is
_CHILDREN_A_STRETCH = 2


class Stretch(msgspec.Struct, frozen=True, array_like=True):
    """Rows to write: of the `journal`, from `start` on, as many whole ones as fit into `most` bytes, at least
    one, and none beyond `end`."""

    journal: str
    start: int
    end: int
    most: int
    folder: str
    tables: tuple[str, ...]
    segment: str
    stem: str


class Written(msgspec.Struct, frozen=True, array_like=True):
    """How far the parts reach now; or the disk's fault."""

    end: int = 0
    errno: int = 0
    reason: str = ""


Writer = Callable[[Stretch], int]
"""Returns how far the parts of all tables reach then."""


def write_here(stretch: Stretch) -> int:
    from skitter.archive.tables import write_stretch  # not in the processes of workers, which write none

    return write_stretch(stretch)


class Apart:
    """Writes parts in a child process, which is started with the first and kept.

    States: no child; one that waits; one that writes, during a call. Whoever leaves a conversation before its end
    kills the child, so a reply never meets another question. One call at a time, from threads that live as long
    as this does: the child dies with the thread that started it.
    """

    def __init__(self, lock: int) -> None:
        self._lock = lock
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def child(self) -> int | None:
        """Its process id."""
        return self._child.pid if self._child is not None else None

    def __call__(self, stretch: Stretch) -> int:
        for _ in range(_CHILDREN_A_STRETCH):
            written = self._asked(stretch)
            if written is not None:
                if written.errno:
                    raise OSError(written.errno, written.reason)
                return written.end
        return write_here(stretch)

    def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()

    def _asked(self, stretch: Stretch) -> Written | None:
        """None when there was no answer."""
        written = None
        try:
            child = self._child = self._child or self._started()
            assert child.stdin is not None
            assert child.stdout is not None
            send(child.stdin, msgspec.msgpack.encode(stretch))
            written = msgspec.msgpack.decode(received(child.stdout), type=Written)
        except (OSError, EOFError, msgspec.MsgspecError):
            pass
        finally:
            if written is None:
                self.close()
        return written

    def _started(self) -> subprocess.Popen[bytes]:
        """In a session of its own: Ctrl-C is for the crawl, which drains. -P: not whatever lies in the current
        folder under our name."""
        program = ("-P", "-m", "skitter.archive.stretch_child", str(os.getpid()))
        return subprocess.Popen(
            (sys.executable, *program),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=(self._lock,),
        )


def send(stream: IO[bytes], message: bytes) -> None:
    stream.write(len(message).to_bytes(LENGTH, "big") + message)
    stream.flush()


def received(stream: IO[bytes]) -> bytes:
    """Raises EOFError when it ends before the message does."""
    length = stream.read(LENGTH)
    message = stream.read(int.from_bytes(length, "big")) if len(length) == LENGTH else b""
    if not message:
        raise EOFError
    return message
