"""A DNS server on loopback that answers, lies, fails or keeps silent."""

from __future__ import annotations

import asyncio
import struct
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from ipaddress import ip_address

A, CNAME, SOA, AAAA = 1, 5, 6, 28
NXDOMAIN, SERVFAIL, REFUSED = 3, 2, 5

Record = tuple[str, int, int, str]


def packed_name(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def packed(record: Record) -> bytes:
    name, kind, ttl, value = record
    body = packed_name(value) if kind == CNAME else ip_address(value).packed
    return packed_name(name) + struct.pack("!HHIH", kind, 1, ttl, len(body)) + body


class Nameserver(asyncio.DatagramProtocol):
    """A zone in a dict; `asked` counts the questions, `gate` holds back answers until it is opened."""

    def __init__(self) -> None:
        self.zone: dict[tuple[str, int], list[Record]] = {}
        self.codes: dict[str, int] = {}
        self.silent: set[tuple[str, int]] = set()
        self.asked: Counter[tuple[str, int]] = Counter()
        self.open_questions: set[str] = set()
        self.most_open = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.arrived = asyncio.Event()
        self.lost = asyncio.Event()
        self.transport: asyncio.DatagramTransport | None = None
        self.address = ""
        self._answers: set[asyncio.Task[None]] = set()

    def add(self, name: str, ttl: int, *addresses: str) -> None:
        for address in addresses:
            kind = AAAA if ":" in address else A
            self.zone.setdefault((name, kind), []).append((name, kind, ttl, address))

    def connection_lost(self, _: Exception | None) -> None:
        self.lost.set()

    def datagram_received(self, packet: bytes, sender: tuple[str, int]) -> None:
        labels, at = [], 12
        while packet[at]:
            labels.append(packet[at + 1 : at + 1 + packet[at]].decode())
            at += 1 + packet[at]
        name, kind = ".".join(labels).lower(), struct.unpack_from("!H", packet, at + 1)[0]
        self.asked[name, kind] += 1
        self.open_questions.add(name)
        self.most_open = max(self.most_open, len(self.open_questions))
        self.arrived.set()
        task = asyncio.ensure_future(self._answer(packet[: at + 5], name, kind, sender))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _answer(self, question: bytes, name: str, kind: int, sender: tuple[str, int]) -> None:
        await self.gate.wait()
        self.open_questions.discard(name)
        if (name, kind) in self.silent or self.transport is None:
            return
        records = self.zone.get((name, kind), [])
        known = any(owner == name for owner, _ in self.zone)
        code = self.codes.get(name, 0 if known else NXDOMAIN)
        header = question[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(records), 0, 0)
        self.transport.sendto(header + question[12:] + b"".join(map(packed, records)), sender)


@asynccontextmanager
async def nameserver(port: int = 0) -> AsyncIterator[Nameserver]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(Nameserver, local_addr=("127.0.0.1", port))
    server.transport = transport
    server.address = f"127.0.0.1:{transport.get_extra_info('sockname')[1]}"
    try:
        yield server
    finally:
        transport.close()
        await server.lost.wait()


@contextmanager
def serving_names(zone: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """A DNS server with this zone, names to addresses, in a thread of its own; gives its address."""
    ready, over, address = threading.Event(), asyncio.Event(), [""]
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with nameserver() as server:
            for name, addresses in zone.items():
                server.add(name, 60, *addresses)
            address[0] = server.address
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(10)
    try:
        yield address[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
        loop.close()
