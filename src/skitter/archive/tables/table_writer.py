"""Has committed rows turned into parts of the tables: by a child process, which alone loads pyarrow.

Between a segment, which knows what is committed, and `parquet_files.py`. A stretch of a journal is all that the
child is told, and a part is named after its stretch: a part that is written twice is the same file again. So a
child may die at any line, and another is asked. It holds the archive's lock beside its parent: nobody recovers a
folder in which an orphan still writes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Protocol

import msgspec

from skitter.archive.schema import Table
from skitter.confinement import child_environment

LENGTH = 4  # bytes that say how long the message after them is
_CHILDREN_A_TASK = 2
# The next part takes as much memory as the last: what was freed and is asked for again would be cleared by the
# kernel page by page. In one heap, of large pages where there are any: half of what the child cost a crawl of
# 10,000 pages was the kernel's time for the first use of memory.
_KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": "268435456",
    "MALLOC_TRIM_THRESHOLD_": "268435456",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}


class Stretch(msgspec.Struct, frozen=True, tag=True):
    """Rows to write: of the `journal`, from `start` on, as many whole ones as fit into `most` bytes, at least
    one, and none beyond `end`. `tables` are those of the journal."""

    journal: str
    start: int
    end: int
    most: int
    folder: str
    segment: str
    stem: str
    tables: tuple[Table, ...]


class Rollback(msgspec.Struct, frozen=True, tag=True):
    """Rows to take back from a finished segment: those beyond `rows_length` of its journal, whose records lie
    beyond `length`."""

    folder: str
    stem: str
    rows_length: int
    length: int


Task = Stretch | Rollback


class Done(msgspec.Struct, frozen=True):
    """How far the parts reach now; or the disk's fault."""

    end: int = 0
    errno: int = 0
    reason: str = ""


class TableWriter(Protocol):
    def run(self, task: Task) -> int:
        """Returns how far the parts of all tables reach then. Raises OSError."""

    def close(self) -> None: ...


class InProcess:
    """Writes in this process: in the child, in tests, and where no child can be started."""

    def run(self, task: Task) -> int:
        from skitter.archive.tables import parquet_files, parquet_rollback  # they load pyarrow

        if isinstance(task, Stretch):
            return parquet_files.write_stretch(task)
        return parquet_rollback.roll_back(task)

    def close(self) -> None:
        pass


class InChild:
    """Writes in a child process, which is started with the first task and kept.

    States: no child; one that waits; one that writes, during a call. A call that ends early kills the child, so a
    reply never meets another question. One call at a time, from threads that live as long as this does: the child
    dies with the thread that started it.
    """

    def __init__(self, lock: int, folder: Path) -> None:
        self._lock = lock
        self._folder = folder
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None else None

    def run(self, task: Task) -> int:
        for _ in range(_CHILDREN_A_TASK):
            done = self._ask(task)
            if done is not None:
                if done.errno:
                    raise OSError(done.errno, done.reason)
                return done.end
        # Two children died of it: pyarrow's memory here is better than rows that nobody can query.
        return InProcess().run(task)

    def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()

    def _ask(self, task: Task) -> Done | None:
        """None when there was no answer."""
        done = None
        try:
            child = self._child = self._child or self._start()
            assert child.stdin is not None
            assert child.stdout is not None
            send(child.stdin, msgspec.msgpack.encode(task))
            done = msgspec.msgpack.decode(receive(child.stdout), type=Done)
        except (OSError, EOFError, msgspec.MsgspecError):
            pass
        finally:
            if done is None:
                self.close()
        return done

    def _start(self) -> subprocess.Popen[bytes]:
        """In a session of its own: Ctrl-C is for the crawl, which drains. -P: not whatever lies in the current
        folder under our name."""
        program = ("-P", "-m", "skitter.archive.tables.child", str(os.getpid()), str(self._folder.absolute()))
        return subprocess.Popen(
            (sys.executable, *program),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=(self._lock,),
            env={**child_environment(), **_KEEP_MEMORY},
        )


def send(stream: IO[bytes], message: bytes) -> None:
    stream.write(len(message).to_bytes(LENGTH, "big") + message)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes:
    """Raises EOFError when it ends before the message does."""
    length = stream.read(LENGTH)
    message = stream.read(int.from_bytes(length, "big")) if len(length) == LENGTH else b""
    if not message:
        raise EOFError
    return message
