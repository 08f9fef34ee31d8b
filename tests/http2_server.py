"""A server that speaks HTTP/2 over TLS where the client offers it, and may break its rules on request."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived
from h2.exceptions import ProtocolError

from tests.raw_server import RawServer, Received, page, sends

Fields = Sequence[tuple[str, str]]
Reply = Callable[[H2Connection, int, Fields], bytes]
"""Answers the request on a stream; what it returns is sent as it is, behind the frames of the connection."""


class Http2Server(RawServer):
    """`fields` holds the header fields of every request over HTTP/2, in order."""

    def __init__(self, reply: Reply, tls: ssl.SSLContext) -> None:
        tls.set_alpn_protocols(["h2", "http/1.1"])
        self._reply = reply
        self.fields: list[Fields] = []
        super().__init__(sends(page(b"by HTTP/1.1"), keep=True), tls=tls)

    def _converse(self, connection: socket.socket, number: int) -> None:
        if not isinstance(connection, ssl.SSLSocket) or connection.selected_alpn_protocol() != "h2":
            super()._converse(connection, number)
            return
        settings = H2Configuration(
            client_side=False,
            header_encoding="utf-8",
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
        )
        speaker = H2Connection(settings)
        speaker.initiate_connection()
        connection.sendall(speaker.data_to_send())
        with contextlib.suppress(ProtocolError):  # a client may well talk on after we broke the rules
            while raw := connection.recv(65_536):
                extra = b"".join(self._answers(speaker, raw, number))
                connection.sendall(speaker.data_to_send() + extra)

    def _answers(self, speaker: H2Connection, raw: bytes, number: int) -> Iterator[bytes]:
        for event in speaker.receive_data(raw):
            if isinstance(event, RequestReceived):
                self.requests.append(Received(raw, time.time(), number))
                fields = [(str(name), str(value)) for name, value in event.headers or ()]
                self.fields.append(fields)
                yield self._reply(speaker, event.stream_id or 0, fields)


def replies(body: bytes, *fields: tuple[str, str], status: str = "200") -> Reply:
    def reply(speaker: H2Connection, stream: int, _: Fields) -> bytes:
        speaker.send_headers(stream, [(":status", status), ("content-type", "text/html"), *fields])
        speaker.send_data(stream, body, end_stream=True)
        return b""

    return reply


@contextmanager
def serving_http2(reply: Reply, tls: ssl.SSLContext) -> Iterator[Http2Server]:
    server = Http2Server(reply, tls)
    try:
        yield server
    finally:
        server.close()
