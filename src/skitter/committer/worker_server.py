"""The calls of workers over a unix socket: the HTTP/1.1 of `worker/remote/http_link.py`, and no more of it.

For the worker processes that a crawl starts itself. `service/` answers the same calls over TCP with a whole web
server, which takes 0.3 s to load and twice the time for a page. A body is read into memory that the connection
keeps. One request at a time; a client that breaks the rules is refused and its connection closed, others go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

import httptools
import msgspec

from skitter.committer.worker_messages import LARGEST_BATCH, MEDIA
from skitter.committer.worker_rpc import Call, Unacceptable, WorkerRpc
from skitter.errors import SkitterError, UsageError

_log = logging.getLogger(__name__)
_BACKLOG = 512
_LARGEST_HEAD = 8_192
# Bytes kept by each connection: a batch of usual pages takes 1 to 2 million.
_LARGEST_KEPT = 4_000_000
_END_OF_HEAD = b"\r\n\r\n"
_encode = msgspec.msgpack.Encoder().encode


@asynccontextmanager
async def serve_on_unix_socket(rpc: WorkerRpc, place: Path) -> AsyncIterator[None]:
    """Until the block is left; calls that are under way then are cancelled."""
    connections: set[Connection] = set()
    calls, bound = rpc.calls(), bind_unix(place)
    server = await asyncio.get_running_loop().create_unix_server(
        lambda: Connection(calls, connections), sock=bound
    )
    try:
        yield
    finally:
        server.close()
        ending = [connection.end() for connection in tuple(connections)]
        await asyncio.gather(*ending, return_exceptions=True)
        await server.wait_closed()
        place.unlink(missing_ok=True)


def bind_unix(path: Path) -> socket.socket:
    """Only its owner may connect. A socket that a killed server left behind is removed: the lock of the crawl's
    folder tells that nobody else serves it."""
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        path.unlink(missing_ok=True)
        bound.bind(str(path))
        bound.listen(_BACKLOG)
    except OSError as error:
        bound.close()
        raise UsageError(
            f"cannot listen at {path} ({error.strerror}): choose a short path you own"
        ) from error
    finally:
        os.umask(mask)
    bound.setblocking(False)
    return bound


class _Refusal(Exception):
    def __init__(self, status: HTTPStatus, detail: str = "") -> None:
        super().__init__(detail or status.phrase)
        self.status = status


class _Head:
    """The head of one request: its call and the length of its body. Raises `_Refusal` for any other."""

    def __init__(self, raw: bytes, calls: Mapping[str, Call]) -> None:
        self._path = b""
        self._length: bytes | None = None
        self._is_chunked = False
        parser = httptools.HttpRequestParser(self)
        try:
            parser.feed_data(raw)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            raise _Refusal(HTTPStatus.BAD_REQUEST, f"not HTTP/1.1: {error}") from None
        call = calls.get(self._path.decode("latin-1"))
        if call is None:
            raise _Refusal(HTTPStatus.NOT_FOUND)
        if parser.get_method() != b"POST":
            raise _Refusal(HTTPStatus.METHOD_NOT_ALLOWED)
        self.call = call
        self.length = self._body_length()

    def _body_length(self) -> int:
        # httptools refuses a length that is no number, and two lengths.
        if self._length is None or self._is_chunked:
            raise _Refusal(HTTPStatus.LENGTH_REQUIRED)
        if int(self._length) > LARGEST_BATCH:
            raise _Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {LARGEST_BATCH:,} bytes are read")
        return int(self._length)

    # -- the parser's calls

    def on_url(self, url: bytes) -> None:
        self._path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"content-length":
            self._length = value
        elif name == b"transfer-encoding":
            self._is_chunked = True


class Connection(asyncio.BufferedProtocol):
    """`_room` is filled next, up to its end.

    head        a head is being read, into `_head_room`
    body        the body that it announces is being read, into `_kept`
    answering   `_task` is under way; a client that sends more meanwhile is no worker of ours
    """

    def __init__(self, calls: Mapping[str, Call], connections: set[Connection]) -> None:
        self._calls = calls
        self._connections = connections
        self._transport: asyncio.Transport
        self._head_room = bytearray(_LARGEST_HEAD)
        self._kept = bytearray()
        self._read_head()

    async def end(self) -> None:
        self._transport.abort()
        if self._task is not None:
            self._task.cancel()
            await self._task

    def _read_head(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._head: _Head | None = None
        self._room, self._filled = memoryview(self._head_room), 0

    def _read_body(self, head: _Head, begun: bytes) -> None:
        """In the same memory as the last body: nothing refers to it once it is decoded, and fresh memory for each
        batch is slow."""
        if head.length > len(self._kept):
            self._kept = bytearray(head.length)
        self._head, self._room, self._filled = head, memoryview(self._kept)[: head.length], len(begun)
        self._room[: len(begun)] = begun
        if head.length > _LARGEST_KEPT:
            self._kept = bytearray()

    # -- the transport's calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """A call that is under way goes on: the worker repeats its request on another connection."""
        if self._task is None:
            self._connections.discard(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._room[self._filled :] if self._task is None else memoryview(bytearray(1))

    def buffer_updated(self, nbytes: int) -> None:
        if self._task is not None:
            self._transport.abort()
            return
        self._filled += nbytes
        try:
            if self._head is None:
                self._find_head(nbytes)
        except _Refusal as refusal:
            self._refuse(refusal)
            return
        if self._head is not None and self._filled == len(self._room):
            answering = self._answer(self._head.call, self._room)
            self._task = asyncio.get_running_loop().create_task(answering)

    def _find_head(self, nbytes: int) -> None:
        end = self._head_room.find(_END_OF_HEAD, max(0, self._filled - nbytes - 3), self._filled)
        if end < 0:
            if self._filled == len(self._room):
                raise _Refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return
        end += len(_END_OF_HEAD)
        head = _Head(bytes(self._head_room[:end]), self._calls)
        if self._filled - end > head.length:
            raise _Refusal(HTTPStatus.BAD_REQUEST, "more than one request at a time")
        self._read_body(head, bytes(self._head_room[end : self._filled]))

    def _refuse(self, refusal: _Refusal) -> None:
        self._write(refusal.status, str(refusal).encode(), "Connection: close\r\n")
        self._transport.close()

    def _write(self, status: HTTPStatus, content: bytes, more: str = "") -> None:
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {MEDIA}\r\n{more}"
        with contextlib.suppress(ConnectionError):
            self._transport.writelines((f"{head}Content-Length: {len(content)}\r\n\r\n".encode(), content))

    # -- one call

    async def _answer(self, call: Call, raw: memoryview) -> None:
        status, content = await _make(call, raw)
        if self._transport.is_closing():
            self._connections.discard(self)
            return
        self._write(status, content)
        self._read_head()


async def _make(call: Call, raw: memoryview) -> tuple[HTTPStatus, bytes]:
    try:
        return HTTPStatus.OK, _encode(await call.act(call.decode(raw)))
    except (Unacceptable, msgspec.ValidationError) as error:
        return HTTPStatus.UNPROCESSABLE_ENTITY, str(error).encode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return HTTPStatus.BAD_REQUEST, str(error).encode()
    except SkitterError as error:
        _log.error("%s: %s", call.path, error)
        return HTTPStatus.SERVICE_UNAVAILABLE, b"try again later; the crawl's output says why"
    except Exception:
        # The connection must survive for the worker; the committer stops by itself when it is broken.
        _log.exception("%s", call.path)
        return HTTPStatus.INTERNAL_SERVER_ERROR, b"a bug; the crawl's output has its details"
