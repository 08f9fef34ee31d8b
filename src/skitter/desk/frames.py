"""Asks and answers in frames over a unix socket: how the workers that a crawl starts itself speak to its desk.

Beside `service/`, which speaks HTTP with all others. A batch is read into one buffer: with its decoding 10 us a
page, 22 through a web server, and 28 us a call instead of 110; and that server need not be loaded, 0.3 s. A kind
and a length lie before an ask, a status (HTTP's) and a length before an answer. One ask at a time on each
connection; who breaks the rules is hung up on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from skitter.desk.reception import Reception, Unacceptable
from skitter.desk.wire import (
    ANSWER_HEAD,
    ASK_HEAD,
    KINDS,
    LARGEST_BATCH,
    JoinAsk,
    LeaseAsk,
    LeasesAsk,
    SettleAsk,
)
from skitter.errors import SkitterError, UsageError

_log = logging.getLogger(__name__)
_BACKLOG = 512
# Bytes, by connection: a batch of usual pages takes 1 to 2 million.
_LONGEST_KEPT = 4_000_000
_OK, _MALFORMED, _INVALID, _FAULT, _UNAVAILABLE = 200, 400, 422, 500, 503
_ASKS = (JoinAsk, LeaseAsk, SettleAsk, LeasesAsk, LeasesAsk)
_DECODERS = tuple([msgspec.msgpack.Decoder(ask) for ask in _ASKS])
_encode = msgspec.msgpack.Encoder().encode

Act = Callable[[Any], Awaitable[object]]


@asynccontextmanager
async def listening(reception: Reception, place: Path) -> AsyncIterator[None]:
    """Until the block is left; what is under way then is not waited for."""
    acts = (reception.join, reception.lease, reception.settle, reception.renew, reception.release)
    talks: set[_Talk] = set()
    bound = bind_unix(place)
    server = await asyncio.get_running_loop().create_unix_server(lambda: _Talk(acts, talks), sock=bound)
    try:
        yield
    finally:
        server.close()
        await asyncio.gather(*[talk.end() for talk in tuple(talks)], return_exceptions=True)
        await server.wait_closed()
        place.unlink(missing_ok=True)


def bind_unix(path: Path) -> socket.socket:
    """Only its owner may connect. What a killed server left behind is in the way, and is removed: the lock of
    the crawl's folder tells that nobody else serves it."""
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


class _Talk(asyncio.BufferedProtocol):
    """One connection. `_room` is filled next, up to its end: first with a head, then with the ask that it
    announces.

    listening   an ask is being read
    answering   `_task` is under way; whoever says more meanwhile is no worker of ours
    """

    def __init__(self, acts: tuple[Act, ...], talks: set[_Talk]) -> None:
        self._acts = acts
        self._talks = talks
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport
        self._kept = bytearray(ASK_HEAD.size)
        self._listen()

    async def end(self) -> None:
        self._transport.abort()
        if self._task is not None:
            self._task.cancel()
            await self._task

    def _listen(self) -> None:
        self._kind: int | None = None
        self._task = None
        self._expect(ASK_HEAD.size)

    def _expect(self, size: int) -> None:
        """In the same memory as before: nothing of an ask refers to it once it is decoded, and fresh memory for a
        batch took 3 us a page."""
        if size > len(self._kept):
            self._kept = bytearray(size)
        self._room, self._filled = memoryview(self._kept)[:size], 0
        if size > _LONGEST_KEPT:
            self._kept = bytearray(ASK_HEAD.size)

    # -- the transport's calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._talks.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """What is being done for it goes on: it asks again on another connection."""
        if self._task is None:
            self._talks.discard(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._room[self._filled :] if self._task is None else memoryview(bytearray(1))

    def buffer_updated(self, nbytes: int) -> None:
        if self._task is not None:
            self._transport.abort()
            return
        self._filled += nbytes
        if self._filled < len(self._room):
            return
        if self._kind is None:
            self._kind, size = ASK_HEAD.unpack(self._room)
            if self._kind >= len(KINDS) or not 0 < size <= LARGEST_BATCH:
                self._transport.abort()
            else:
                self._expect(size)
            return
        self._task = asyncio.get_running_loop().create_task(self._answer(self._kind, self._room))

    # -- one ask

    async def _answer(self, kind: int, raw: memoryview) -> None:
        status, content = await self._answered(kind, raw)
        if self._transport.is_closing():
            self._talks.discard(self)
            return
        self._transport.writelines((ANSWER_HEAD.pack(status, len(content)), content))
        self._listen()

    async def _answered(self, kind: int, raw: memoryview) -> tuple[int, bytes]:
        try:
            ask = _DECODERS[kind].decode(raw)
            return _OK, _encode(await self._acts[kind](ask))
        except Unacceptable as error:
            return _INVALID, str(error).encode()
        except msgspec.ValidationError as error:
            return _INVALID, str(error).encode()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return _MALFORMED, str(error).encode()
        except SkitterError as error:
            _log.error("%s: %s", KINDS[kind], error)
            return _UNAVAILABLE, b"try again later; the crawl's output says why"
        except Exception:
            # A loop that must survive for the other workers; the desk stops by itself when it is broken.
            _log.exception("%s", KINDS[kind])
            return _FAULT, b"a bug; the crawl's output has its details"
