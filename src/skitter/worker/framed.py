"""Connections of a worker to the crawl that started it: asks and answers in frames (`desk/frames.py`).

A kind of `link.py`, below `remote.py`: bytes are posted, bytes come back, with the same two ways to fail.
"""

from __future__ import annotations

from skitter.desk.wire import ANSWER_HEAD, ASK_HEAD, KINDS
from skitter.worker.link import Link, Wire, unix_wire


class FramedLink(Link):
    """`where` is `unix:PATH`."""

    def _head(self, path: str, size: int) -> bytes:
        return ASK_HEAD.pack(KINDS.index(path), size)

    async def _connect(self) -> Wire:
        return await unix_wire(self._socket, _Frames)


class _Frames(Wire):
    def _begin(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def _read(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        if self._size < ANSWER_HEAD.size:
            return
        if len(self._parts[0]) < ANSWER_HEAD.size:
            self._parts = [b"".join(self._parts)]
        status, size = ANSWER_HEAD.unpack_from(self._parts[0])
        if self._size > ANSWER_HEAD.size + size:
            raise EOFError("the server said more than it announced")
        if self._size == ANSWER_HEAD.size + size:
            self._complete(status, b"".join(self._parts)[ANSWER_HEAD.size :])
