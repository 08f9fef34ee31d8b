"""Tries whether a browser can reach anybody: a page with many ways out, and listeners that wait for it.

Run once before the first page, by the renderer. TCP and UDP listeners on the loopback addresses are all that is
opened. A browser from which anything arrives is not used.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from skitter.render.base import Answer, Asked, PageToRender

# The real time that sockets get to be opened in, beside the time that the page takes anyway.
_WAIT = 1.0
_HOSTS = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
URL = "http://canary.invalid/"
_DONE = "every way was tried"


class Canary:
    """Open between `async with`; `hits` is what arrived, in words."""

    def __init__(self) -> None:
        self.hits: list[str] = []
        self.addresses: list[str] = []
        self._sockets: list[socket.socket] = []

    async def __aenter__(self) -> Canary:
        loop = asyncio.get_running_loop()
        for family, address in _HOSTS:
            try:
                stream = socket.socket(family, socket.SOCK_STREAM)
                stream.bind((address, 0))
            except OSError:
                continue  # a machine without this family
            port = stream.getsockname()[1]
            stream.listen(64)
            packets = socket.socket(family, socket.SOCK_DGRAM)
            packets.bind((address, port))
            for each in (stream, packets):
                each.setblocking(False)
                self._sockets.append(each)
            loop.add_reader(stream, self._on_stream, stream)
            loop.add_reader(packets, self._on_packet, packets)
            self.addresses.append(f"[{address}]:{port}" if ":" in address else f"{address}:{port}")
        return self

    async def __aexit__(self, *_: object) -> None:
        for each in self._sockets:
            asyncio.get_running_loop().remove_reader(each)
            each.close()

    async def wait(self, seconds: float = _WAIT) -> None:
        await asyncio.sleep(seconds)

    def _on_stream(self, listener: socket.socket) -> None:
        try:
            connection, peer = listener.accept()
        except OSError:
            return
        connection.setblocking(False)
        self.hits.append(f"a connection from {peer[0]}")
        asyncio.get_running_loop().call_later(0.2, self._read, connection, len(self.hits) - 1)

    def _read(self, connection: socket.socket, place: int) -> None:
        try:
            said = connection.recv(200)
        except OSError:
            said = b""
        connection.close()
        first = said.split(b"\r\n")[0].decode("latin-1")
        self.hits[place] = f"TCP: {first if first.isprintable() else 'binary'}"

    def _on_packet(self, packets: socket.socket) -> None:
        try:
            packets.recvfrom(2000)
        except OSError:
            return
        self.hits.append("UDP: a packet")


def page(addresses: Sequence[str]) -> PageToRender:
    """Ways out that interception does not see come first among them."""
    parts = ["<!DOCTYPE html><title>canary</title><body>"]
    parts += [_WAYS.replace("ADDRESS", address) for address in addresses]
    parts.append(f"<script>document.body.append('{_DONE}')</script>")
    body = "".join(parts).encode()
    answer = Answer(status=200, headers=(("content-type", "text/html; charset=utf-8"),), body=body)
    return PageToRender(url=URL, answer=answer, fetched_at=1_700_000_000)


def is_tried(html: str) -> bool:
    """Whether the page's scripts ran at all: silence of one that did not proves nothing."""
    return _DONE in html.rpartition("</script>")[2]


_WAYS = """
<link rel=preconnect href="http://ADDRESS/"><link rel=dns-prefetch href="http://ADDRESS/">
<link rel=prefetch href="http://ADDRESS/prefetch"><img src="http://ADDRESS/image">
<script type=speculationrules>{"prefetch":[{"source":"list","urls":["http://ADDRESS/spec"],"eagerness":"immediate"}]}
</script>
<script>
for (const way of [
  () => new WebSocket("ws://ADDRESS/ws"), () => new WebSocket("wss://ADDRESS/wss"),
  () => new WebTransport("https://ADDRESS/transport"), () => new EventSource("http://ADDRESS/events"),
  () => fetch("http://ADDRESS/fetch", {mode: "no-cors"}),
  () => navigator.sendBeacon("http://ADDRESS/beacon", "x"),
  () => { const peer = new RTCPeerConnection({iceServers: [{urls: "stun:ADDRESS"}, {urls:
      "turn:ADDRESS?transport=tcp", username: "a", credential: "b"}]});
    peer.createDataChannel("x"); peer.createOffer().then((offer) => peer.setLocalDescription(offer)); },
]) try { Promise.resolve(way()).catch(() => {}); } catch {}
</script>
"""


class NoAnswers:
    async def find(self, asked: Asked) -> Answer | None:
        return None
