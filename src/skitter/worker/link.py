"""Connections to a server, kept open, one for each exchange under way: bytes are posted, bytes come back.

Below `remote.py`. HTTP/1.1 over TCP, TLS or a unix socket: the request is written by hand, the answer is read by
httptools; 70 us a call, where h11 took 300. Never retries, and never tells more of a failure than that nobody is
there (`Away`) or that the server will not have it (`Refused`).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable
from urllib.parse import urlsplit

import httptools

from skitter.errors import UsageError

UNIX = "unix:"
_LONGEST_DETAIL = 500
# More than 4,096 hosts with all their tasks, or anything else that a server of ours says.
_LARGEST_ANSWER = 256_000_000
_SEND_ROOM = 4_000_000


class Away(Exception):
    """Nobody answered, or not in time, or not in HTTP."""


class Refused(Exception):
    """The server answered, and not with 200."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"{status}: {detail}")
        self.status = status
        self.detail = detail


class Link:
    def __init__(self, where: str, token: str = "", *, patience: float = 30.0) -> None:
        self._patience = patience
        self._socket = where.removeprefix(UNIX) if where.startswith(UNIX) else ""
        parts = urlsplit("http://localhost" if self._socket else where)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{where!r} is no server to join: write http://HOST:PORT or unix:PATH")
        self._host, self._is_secure = parts.hostname, parts.scheme == "https"
        self._port = parts.port or (443 if self._is_secure else 80)
        fields = {"Content-Type": "application/msgpack", "Host": parts.netloc.rpartition("@")[2]}
        if token:
            fields["Authorization"] = f"Bearer {token}"
        self._fields = _written(fields)
        self._idle: list[Wire] = []

    async def post(self, path: str, body: bytes | bytearray) -> bytes:
        """The answer; by then all of the body has left."""
        wire: Wire | None = None
        try:
            async with asyncio.timeout(self._patience):
                wire = self._kept() or await self._connect()
                status, content = await wire.exchange(self._head(path, len(body)), body)
        except (OSError, TimeoutError, httptools.HttpParserError, EOFError) as error:
            self._hang_up(wire)
            raise Away(str(error) or type(error).__name__) from None
        except BaseException:
            self._hang_up(wire)  # an answer may still come, and would be taken for the next one
            raise
        self._idle.append(wire)
        if status != 200:
            raise Refused(status, content[:_LONGEST_DETAIL].decode("utf-8", "replace"))
        return content

    def _head(self, path: str, size: int) -> bytes:
        line, length = f"POST {path} HTTP/1.1\r\n", f"Content-Length: {size}\r\n\r\n"
        return line.encode() + self._fields + length.encode()

    async def close(self) -> None:
        """Nothing is under way."""
        wires, self._idle = self._idle, []
        for wire in wires:
            wire.close()
            with contextlib.suppress(OSError):
                await wire.closed

    def _kept(self) -> Wire | None:
        while self._idle:
            if not (wire := self._idle.pop()).is_closed:
                return wire
        return None

    def _hang_up(self, wire: Wire | None) -> None:
        """If one leads nowhere, neither do the others: who asks again is to ask on a new one."""
        for other in (*self._idle, *filter(None, (wire,))):
            other.close()
        self._idle.clear()

    async def _connect(self) -> Wire:
        loop = asyncio.get_running_loop()
        if self._socket:
            return await unix_wire(self._socket, _Http)
        tls = ssl.create_default_context() if self._is_secure else None
        return (await loop.create_connection(_Http, self._host, self._port, ssl=tls))[1]


async def unix_wire(path: str, speaking: Callable[[], Wire]) -> Wire:
    """With room for a whole batch where the system allows it (net.core.wmem_max; 0.2 MB if nobody asks): a
    process that reads pages comes back to write the rest between its turns, and the server waits meanwhile."""
    loop, unix = asyncio.get_running_loop(), socket.socket(socket.AF_UNIX)
    try:
        unix.setblocking(False)
        with contextlib.suppress(OSError):
            unix.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_ROOM)
        await loop.sock_connect(unix, path)
        return (await loop.create_unix_connection(speaking, sock=unix))[1]
    except BaseException:
        unix.close()
        raise


def _written(fields: dict[str, str]) -> bytes:
    if not all(value.isascii() and value.isprintable() for value in fields.values()):
        raise UsageError("the server's address and the token must be of printable ASCII")
    return "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode()


class Wire(asyncio.Protocol, ABC):
    """One exchange after the other: `_answer` is awaited while one is under way, and whatever comes otherwise
    ends the connection. What an answer looks like is for the kinds of it to say."""

    def __init__(self) -> None:
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: asyncio.Transport
        self._room = 0
        self._begin()

    @property
    def is_closed(self) -> bool:
        return self.closed.done() or self._transport.is_closing()

    async def exchange(self, head: bytes, body: bytes | bytearray) -> tuple[int, bytes]:
        self._begin()
        self._room = _LARGEST_ANSWER
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.writelines((head, body))
        try:
            return await self._answer
        finally:
            self._answer = None

    def close(self) -> None:
        self._transport.close()

    @abstractmethod
    def _begin(self) -> None:
        """An answer is about to be read."""

    @abstractmethod
    def _read(self, data: bytes) -> None:
        """A piece of it. Raises EOFError when it is none."""

    # -- the transport's calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._room -= len(data)
        if self._answer is None or self._answer.done() or self._room < 0:
            self._fail(EOFError("the server said more than it was asked"))
            return
        try:
            self._read(data)
        except EOFError as error:
            self._fail(error)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)
        self._fail(exc if isinstance(exc, OSError) else EOFError("the server hung up"))

    def _complete(self, status: int, content: bytes) -> None:
        if self._answer is None or self._answer.done():
            self._transport.close()  # one answer too many: the next one would be taken for another's
            return
        self._answer.set_result((status, content))

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
        self._transport.close()


class _Http(Wire):
    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._is_headed = self._is_measured = False

    def _read(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            raise EOFError(f"no HTTP: {error}") from None

    def eof_received(self) -> None:
        # RFC 9112 6.3: a body of no announced length ends with the connection.
        if self._is_headed and not self._is_measured:
            self._end()

    # -- the parser's calls

    def on_header(self, name: bytes, value: bytes) -> None:
        self._is_measured |= name.lower() in (b"content-length", b"transfer-encoding")

    def on_headers_complete(self) -> None:
        self._is_headed = self._parser.get_status_code() >= 200  # what is below only announces an answer

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        if self._is_headed:
            self._end()

    def _end(self) -> None:
        self._complete(self._parser.get_status_code(), b"".join(self._parts))
        if not self._parser.should_keep_alive():
            self._transport.close()
