"""A socket that speaks TLS and still looks like a non-blocking one, for the synthetic web's hosts with https.

The bytes are received by `recvmsg` as on any other connection, so that the kernel's receive time of a request is
known here too; `ssl.SSLSocket` would hide it. Never blocks.
"""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

from skitter.errors import UsageError

_PIECE = 16_384

Received = tuple[bytes, list[tuple[int, int, bytes]], int, object]


def server_context(pem: Path) -> ssl.SSLContext:
    """`pem` holds a private key and its certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(pem)
    except OSError as fault:
        raise UsageError(f"cannot use {pem} as key and certificate: {fault}") from fault
    return context


class SecureSocket:
    """Raises `BlockingIOError` when nothing can be done yet, and other kinds of `OSError` for what is no TLS."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self._sock = sock
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._is_open = False
        self._unsent = b""
        self._sealed = 0

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self._sock.close()

    def recvmsg(self, size: int, ancillary_size: int) -> Received:
        received, ancillary, flags, address = self._sock.recvmsg(size, ancillary_size)
        if not received:
            return received, ancillary, flags, address
        self._incoming.write(received)
        try:
            plain = self._decrypt()
        finally:
            self._push()
        if not plain:
            raise BlockingIOError
        return plain, ancillary, flags, address

    def _decrypt(self) -> bytes:
        pieces = []
        try:
            if not self._is_open:
                self._tls.do_handshake()
                self._is_open = True
            while piece := self._tls.read(_PIECE):
                pieces.append(piece)
        except ssl.SSLWantReadError:
            pass
        return b"".join(pieces)

    def send(self, data: memoryview) -> int:
        """All of `data` or nothing: it is sealed once, and the caller comes back with it until it has left."""
        if not self._sealed and data:
            self._sealed = self._tls.write(data)
        if not self._push():
            raise BlockingIOError
        sent, self._sealed = self._sealed, 0
        return sent

    def _push(self) -> bool:
        self._unsent += self._outgoing.read()
        if self._unsent:
            try:
                self._unsent = self._unsent[self._sock.send(self._unsent) :]
            except BlockingIOError:
                return False
        return not self._unsent
