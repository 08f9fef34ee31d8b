"""Connections to a server, kept open, one for each exchange under way: bytes are posted, bytes come back.

Below `remote_work_source.py`. HTTP/1.1 over TCP, TLS or a unix socket: the request is written by hand, httptools
reads the answer. Never retries. A failure is told as one of two: nobody is there (`Away`), or the server will not
have it (`Refused`).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
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


class HttpLink:
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
        self._idle: list[Connection] = []

    async def post(self, path: str, body: bytes | bytearray) -> bytes:
        """The answer; by then all of the body has left."""
        connection: Connection | None = None
        try:
            async with asyncio.timeout(self._patience):
                connection = self._kept() or await self._connect()
                status, content = await connection.exchange(self._head(path, len(body)), body)
        except (OSError, TimeoutError, httptools.HttpParserError, EOFError) as error:
            self._hang_up(connection)
            raise Away(str(error) or type(error).__name__) from None
        except BaseException:
            self._hang_up(connection)  # an answer may still come, and would be taken for the next one
            raise
        self._idle.append(connection)
        if status != 200:
            raise Refused(status, content[:_LONGEST_DETAIL].decode("utf-8", "replace"))
        return content

    def _head(self, path: str, size: int) -> bytes:
        line, length = f"POST {path} HTTP/1.1\r\n", f"Content-Length: {size}\r\n\r\n"
        return line.encode() + self._fields + length.encode()

    async def close(self) -> None:
        """Nothing is under way."""
        connections, self._idle = self._idle, []
        for connection in connections:
            connection.close()
            with contextlib.suppress(OSError):
                await connection.closed

    def _kept(self) -> Connection | None:
        while self._idle:
            if not (connection := self._idle.pop()).is_closed:
                return connection
        return None

    def _hang_up(self, connection: Connection | None) -> None:
        """If one leads nowhere, neither do the others: who asks again is to ask on a new one."""
        for other in (*self._idle, *filter(None, (connection,))):
            other.close()
        self._idle.clear()

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        if self._socket:
            return await _connect_unix(self._socket)
        tls = ssl.create_default_context() if self._is_secure else None
        return (await loop.create_connection(Connection, self._host, self._port, ssl=tls))[1]


async def _connect_unix(path: str) -> Connection:
    """With room for a whole batch where the system allows it (net.core.wmem_max; 0.2 MB if nobody asks): a
    process that reads pages comes back to write the rest between its turns, and the server waits meanwhile."""
    loop, unix = asyncio.get_running_loop(), socket.socket(socket.AF_UNIX)
    try:
        unix.setblocking(False)
        with contextlib.suppress(OSError):
            unix.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_ROOM)
        await loop.sock_connect(unix, path)
        return (await loop.create_unix_connection(Connection, sock=unix))[1]
    except BaseException:
        unix.close()
        raise


def _written(fields: dict[str, str]) -> bytes:
    if not all(value.isascii() and value.isprintable() for value in fields.values()):
        raise UsageError("the server's address and the token must be of printable ASCII")
    return "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode()


class Connection(asyncio.Protocol):
    """One exchange after the other. `_answer` is awaited while one is under way; bytes that come otherwise end
    the connection."""

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

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._is_headed = self._is_measured = False

    # -- the transport's calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._room -= len(data)
        if self._answer is None or self._answer.done() or self._room < 0:
            self._fail(EOFError("the server said more than it was asked"))
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(EOFError(f"no HTTP: {error}"))

    def eof_received(self) -> None:
        # RFC 9112 6.3: a body of no announced length ends with the connection.
        if self._is_headed and not self._is_measured:
            self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)
        self._fail(exc if isinstance(exc, OSError) else EOFError("the server hung up"))

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
        self._transport.close()

    # -- the parser's calls

    def on_header(self, name: bytes, value: bytes) -> None:
        self._is_measured |= name.lower() in (b"content-length", b"transfer-encoding")

    def on_headers_complete(self) -> None:
        self._is_headed = self._parser.get_status_code() >= 200  # a lower one only announces an answer

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        if self._is_headed:
            self._end()

    def _end(self) -> None:
        if self._answer is None or self._answer.done():
            self._transport.close()  # one answer too many: the next one would be taken for another's
            return
        self._answer.set_result((self._parser.get_status_code(), b"".join(self._parts)))
        if not self._parser.should_keep_alive():
            self._transport.close()
