"""PNG pictures, made and read: enough of the format for tests that look at pixels."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

Colour = tuple[int, int, int]
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def picture(width: int, height: int, colour: Colour) -> bytes:
    lines = (b"\0" + bytes(colour) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return _SIGNATURE + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(lines)) + _chunk(b"IEND", b"")


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def pixels(png: bytes) -> list[list[Colour]]:
    """The lines of an 8-bit RGB or RGBA picture, as browsers' screenshots are."""
    chunks = dict[bytes, bytes]()
    for name, content in _chunks(png):
        chunks[name] = chunks.get(name, b"") + content
    width, _, depth, kind, *_, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, interlaced) == (8, 0)
    step = {2: 3, 6: 4}[kind]
    raw = zlib.decompress(chunks[b"IDAT"])
    size = width * step
    above, found = bytearray(size), []
    for start in range(0, len(raw), size + 1):
        line = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + size]), above, step)
        found.append([(line[i], line[i + 1], line[i + 2]) for i in range(0, size, step)])
        above = line
    return found


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    assert png.startswith(_SIGNATURE)
    at = len(_SIGNATURE)
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += length + 12


def _unfiltered(kind: int, line: bytearray, above: bytearray, step: int) -> bytearray:
    for i in range(len(line)):
        left = line[i - step] if i >= step else 0
        corner = above[i - step] if i >= step else 0
        guess = (0, left, above[i], (left + above[i]) // 2, _paeth(left, above[i], corner))[kind]
        line[i] = (line[i] + guess) & 255
    return line


def _paeth(left: int, above: int, corner: int) -> int:
    guess = left + above - corner
    return min((left, above, corner), key=lambda value: abs(guess - value))
