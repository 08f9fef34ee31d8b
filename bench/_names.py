"""A DNS server for a web on one machine: every name has an IPv4 address of its own on loopback, and none else.

    python -m bench._names

Listens on 127.0.0.1:53, so only in a network of its own (`_apart.py`). Crawlers that keep their pace by address
as well must not take all hosts for one.
"""

from __future__ import annotations

import socket
import struct
import sys
import zlib

_A = 1
_TTL = 3600


def address_of(name: str) -> bytes:
    """Within 127.0.0.0/8, by a hash: two of 3,000 hosts share one now and then, as on the web."""
    number = zlib.crc32(name.lower().encode()) & 0xFF_FFFF
    return bytes([127]) + max(number, 2).to_bytes(3, "big")


def answer(packet: bytes) -> bytes:
    """To any question about an address; an IPv6 one has no records."""
    labels, at = [], 12
    while packet[at]:
        labels.append(packet[at + 1 : at + 1 + packet[at]].decode("ascii", "replace"))
        at += 1 + packet[at]
    question = packet[12 : at + 5]
    kind = struct.unpack_from("!H", packet, at + 1)[0]
    record = b"\xc0\x0c" + struct.pack("!HHIH", _A, 1, _TTL, 4) + address_of(".".join(labels))
    records = [record] if kind == _A else []
    return packet[:2] + struct.pack("!HHHHH", 0x8580, 1, len(records), 0, 0) + question + b"".join(records)


def main() -> None:
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    server.bind(("127.0.0.1", 53))
    print("ready", flush=True)
    while True:
        packet, sender = server.recvfrom(1500)
        try:
            server.sendto(answer(packet), sender)
        except (IndexError, struct.error):
            print("not a question", file=sys.stderr)


if __name__ == "__main__":
    main()
