"""The child process that writes parts of the tables: tasks come on standard input, replies go to standard output.

Beside the path of a URL: `table_writer.py` starts it with the first part, so that pyarrow's memory and time are
not those of the process that crawls. Holds nothing that matters, and lives no longer than its parent. Rows come
from pages of strangers: it has no environment, no socket, bounded memory, and no file but those of its archive.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib.abc import MetaPathFinder
from typing import IO

import msgspec

from skitter.archive.tables.table_writer import Done, InProcess, Task, receive, send
from skitter.confinement import confine

# Of address space. pyarrow's allocator reserves more than it touches; a stretch takes some 0.2 GB.
_MEMORY = 8_000_000_000
# Nobody waits for a part, and workers do for leases.
_NICENESS = 10


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    writer = InProcess()
    while True:
        try:
            task = msgspec.msgpack.decode(receive(requests), type=Task)
        except EOFError:
            return
        send(replies, msgspec.msgpack.encode(_run(writer, task)))


def _run(writer: InProcess, task: Task) -> Done:
    try:
        return Done(writer.run(task))
    except OSError as error:
        return Done(errno=error.errno or 0, reason=error.strerror or str(error))


class _NoExtras(MetaPathFinder):
    """pyarrow imports numpy and pandas where they are installed, which takes longer than pyarrow itself; nothing
    here needs them."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name in ("numpy", "pandas"):
            raise ImportError("not in this process")


if __name__ == "__main__":
    confine(int(sys.argv[1]), memory=_MEMORY, writes=(sys.argv[2],))
    os.nice(_NICENESS)
    # Rows are freed with their part, and none is part of a cycle.
    gc.disable()
    sys.meta_path.insert(0, _NoExtras())
    serve(sys.stdin.buffer, sys.stdout.buffer)
