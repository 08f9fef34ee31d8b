"""The browser's debugging protocol over two pipes: calls and their answers, events by session.

Below `browser.py` and `tab.py`. Messages are JSON, each ended by a zero byte. Knows no method by its name. What
comes from the browser is not trusted: a message that is none, or too long, ends the connection, and every call
that waits then raises `BrowserGone`.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec

Params = dict[str, Any]
Listener = Callable[[str, Params], None]

# A DOM of 2 MB in JSON is at most 12; a screenshot in base64 is some 15.
_LONGEST = 64 << 20
_PIPE = 1 << 20
_F_SETPIPE_SZ = 1031


class BrowserGone(Exception):
    """It died, was killed, or closed its pipe."""


class CallFailed(Exception):
    """The browser answered a call with an error."""


class _Message(msgspec.Struct):
    id: int = 0
    method: str = ""
    params: Params = {}
    result: Params = {}
    error: Params | None = None
    session: str = msgspec.field(name="sessionId", default="")


_decode = msgspec.json.Decoder(_Message).decode
_encode = msgspec.json.Encoder().encode


class Connection(asyncio.Protocol):
    """`is_open` until the browser's end is closed or `close` is called. Events of a session that nobody listens
    to are dropped."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[Params]] = {}
        self._listeners: dict[str, Listener] = {}
        self._pieces: list[bytes] = []
        self._size = 0
        self._reading: asyncio.ReadTransport | None = None
        self._writing: asyncio.WriteTransport | None = None
        self.is_open = False
        self.lost = asyncio.Event()

    async def open(self, read: int, write: int) -> None:
        """Takes over both descriptors."""
        loop = asyncio.get_running_loop()
        for pipe in (read, write):
            with contextlib.suppress(OSError):  # as much as this user may have
                fcntl.fcntl(pipe, _F_SETPIPE_SZ, _PIPE)
        self.is_open = True
        self._writing, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(write, "wb", 0))
        self._reading, _ = await loop.connect_read_pipe(lambda: self, os.fdopen(read, "rb", 0))

    def listen(self, session: str, listener: Listener) -> None:
        self._listeners[session] = listener

    def forget(self, session: str) -> None:
        self._listeners.pop(session, None)

    def send(self, method: str, params: Params | None = None, session: str = "") -> asyncio.Future[Params]:
        """On its way when this returns; the answer comes by the future, which nobody has to wait for."""
        answer: asyncio.Future[Params] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_look_at)
        if not self.is_open or self._writing is None:
            answer.set_exception(BrowserGone("the browser is gone"))
            return answer
        number = next(self._numbers)
        self._waiting[number] = answer
        message: Params = {"id": number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        self._writing.write(_encode(message) + b"\0")
        return answer

    def close(self) -> None:
        # Closed, not aborted: uvloop cannot abort one that reads, nor asyncio one that is closed already.
        for transport in (self._reading, self._writing):
            if transport is not None:
                transport.close()
        self._end()

    # -- what the event loop calls

    def data_received(self, data: bytes) -> None:
        first, *rest = data.split(b"\0")
        self._pieces.append(first)
        self._size += len(first)
        if self._size > _LONGEST:
            self.close()
            return
        for piece in rest:
            message = b"".join(self._pieces)
            self._pieces, self._size = [piece], len(piece)
            self._take(message)

    def eof_received(self) -> None:
        self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._end()

    def _take(self, content: bytes) -> None:
        try:
            message = _decode(content)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            self.close()
            return
        if message.id:
            answer = self._waiting.pop(message.id, None)
            if answer is not None and not answer.done():
                if message.error is not None:
                    answer.set_exception(CallFailed(str(message.error.get("message", ""))))
                else:
                    answer.set_result(message.result)
        elif listener := self._listeners.get(message.session):
            listener(message.method, message.params)

    def _end(self) -> None:
        if not self.is_open:
            return
        self.is_open = False
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            if not answer.done():
                answer.set_exception(BrowserGone("the browser is gone"))
        self._listeners.clear()
        self.lost.set()


def _look_at(answer: asyncio.Future[Params]) -> None:
    """An error that nobody waited for is none."""
    if not answer.cancelled():
        answer.exception()
