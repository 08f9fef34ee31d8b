"""Undoing content coding: gzip, deflate, br and zstd, within limits that no bomb can pass.

After the fetch, before the page is read; the archive keeps the coded bytes. Output is taken in small steps up
to a limit of size or of ratio, so memory and time are bounded whatever the stream claims. Servers cut
streams, append junk and mislabel them: what could be decoded is returned with flags, as browsers show it.
Never raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol, cast

import brotlicffi
import msgspec
import zstandard
from isal import isal_zlib

# Not `brotli`: another distribution (brotlipy, which pywb pulls in) installs a package of that name, which
# shadows the real one and has no output limit.

# isal's stub has an instance where the module has the class.
_BROKEN = (
    cast("type[Exception]", isal_zlib.error),
    cast("type[Exception]", brotlicffi.error),
    zstandard.ZstdError,
)
# zstd costs no more to undo than gzip, br twice as much; all are offered.
ACCEPT_ENCODING = "gzip, deflate, br, zstd"
_MOST_LAYERS = 3
_IN_STEP = 16_384
_OUT_STEP = 65_536
_FINE_STEP = 1024  # brotlicffi clears a buffer of this size at every call
# A block of four bytes may stand for 128 KB (RFC 8878 3.1.1.2), and the library gives all that its input holds.
_ZSTD_STEP = 64
_ZSTD_WINDOW = 8 << 20  # RFC 9659 3: no more is needed to read any answer
_MOST_MEMBERS = 1000  # 10 MB can hold half a million empty ones; block gzip of 20 MB has 320
# A short page of blanks may compress 100,000 fold; only what is also large is suspicious.
_ALWAYS_ALLOWED = 1_048_576
_BINARY_BYTE = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


class Decoded(msgspec.Struct, frozen=True):
    """`complete`: the stream reached its end. `truncated`: it was cut at our limit. `mislabelled`: the body
    was not coded although a header said so, and is given as it came."""

    body: bytes
    complete: bool = True
    truncated: bool = False
    mislabelled: bool = False


class Undecodable(msgspec.Struct, frozen=True):
    """Nothing could be read; `reason` names the coding."""

    reason: str


class _Decoder(Protocol):
    finished: bool
    unused: int
    """Bytes given after the end of the stream, once it is finished."""

    def pull(self, data: bytes, most: int) -> bytes:
        """At most `most` bytes of output; fewer mean that all input so far is used up."""


class _Inflater:
    def __init__(self, wbits: int) -> None:
        self._stream = isal_zlib.decompressobj(wbits)
        self.finished = False
        self.unused = 0

    def pull(self, data: bytes, most: int) -> bytes:
        output: bytes = self._stream.decompress(self._stream.unconsumed_tail + data, most)
        if self._stream.eof:
            self.finished = True
            self.unused = len(self._stream.unused_data)
        return output


class _Unbrotli:
    def __init__(self) -> None:
        self._stream = brotlicffi.Decompressor()
        self.finished = False
        self.unused = 0

    def pull(self, data: bytes, most: int) -> bytes:
        output: bytes = self._stream.process(data, output_buffer_limit=most)
        self.finished = self._stream.is_finished()
        return output


class _Unzstd:
    """Output beyond what was asked for is held back: 2 MB at most."""

    def __init__(self) -> None:
        self._stream = _ZSTD.decompressobj()
        self._input = b""
        self._held = memoryview(b"")
        self.finished = False
        self.unused = 0

    def pull(self, data: bytes, most: int) -> bytes:
        self._input += data
        pieces, wanted = [], most
        while wanted:
            piece, self._held = self._held[:wanted], self._held[wanted:]
            pieces.append(piece)
            wanted -= len(piece)
            if not wanted or not self._input or self._stream.eof:
                break
            step, self._input = self._input[:_ZSTD_STEP], self._input[_ZSTD_STEP:]
            self._held = memoryview(self._stream.decompress(step))
        if self._stream.eof and not self._held:
            self.finished = True
            self.unused = len(self._stream.unused_data) + len(self._input)
        return b"".join(pieces)


class _Drained(msgspec.Struct, frozen=True):
    """What came out of one stream; `used` is how much of the input it took when it finished."""

    output: bytes
    finished: bool = False
    failed: bool = False
    full: bool = False
    used: int = 0


def decode_body(
    body: bytes, content_encoding: str, *, limit: int, max_ratio: int = 250
) -> Decoded | Undecodable:
    """`max_ratio` is of all layers together; none of 620 real pages came above 26 in any coding. Of a coded
    body that passes a limit the first megabyte is returned."""
    if not content_encoding:
        return Decoded(body) if len(body) <= limit else _as_it_came(body, limit)
    names = [name for member in content_encoding.split(",") if (name := member.strip().lower())]
    names = [name for name in names if name != "identity"]
    if len(names) > _MOST_LAYERS:
        return Undecodable(f"{len(names)} codings stacked")
    room = min(limit, max(_ALWAYS_ALLOWED, len(body) * max_ratio))
    if not names:
        return _as_it_came(body, limit)
    result = Decoded(body)
    for name in reversed(names):
        undone = _undo(name, result.body, room)
        if isinstance(undone, Undecodable):
            return undone
        result = Decoded(
            undone.body,
            result.complete and undone.complete,
            result.truncated or undone.truncated,
            result.mislabelled or undone.mislabelled,
        )
    # A parser takes up to 48 bytes of memory for a byte of what bombs are made of: their beginning is enough.
    return msgspec.structs.replace(result, body=result.body[:_ALWAYS_ALLOWED]) if result.truncated else result


def _undo(name: str, body: bytes, room: int) -> Decoded | Undecodable:
    undo = _CODINGS.get(name)
    if undo is None:
        return Undecodable(f"unknown coding {name[:40]}")
    if not body:
        return Decoded(b"")
    drained = undo(body, room)
    if drained.failed and _looks_plain(body):
        return _as_it_came(body, room, mislabelled=True)
    if drained.failed and not drained.output:
        return Undecodable(f"broken {name}")
    return Decoded(drained.output, drained.finished and not drained.full, drained.full)


def _as_it_came(body: bytes, room: int, *, mislabelled: bool = False) -> Decoded:
    fits = len(body) <= room
    return Decoded(body[:room], complete=fits, truncated=not fits, mislabelled=mislabelled)


def _looks_plain(body: bytes) -> bool:
    return not _BINARY_BYTE.search(body[:256])


def _drain(make: Callable[[], _Decoder], body: bytes, room: int, start: int = 0) -> _Drained:
    """Decode from `start`, in steps. When a library fails, the output of that step is lost; so that step is done
    again byte by byte, and what comes before the fault is kept."""
    decoder, output, at = make(), bytearray(), start
    while at < len(body) and not decoder.finished and len(output) <= room:
        try:
            _pull(decoder, body[at : at + _IN_STEP], output, room)
        except _BROKEN:
            return _retrace(make(), body, start, at, room)
        at += _IN_STEP
    return _finish(decoder, output, room, min(at, len(body)) - start - decoder.unused)


def _retrace(decoder: _Decoder, body: bytes, start: int, fault: int, room: int) -> _Drained:
    output = bytearray()
    _pull(decoder, body[start:fault], output, room)
    at = fault
    try:
        while at < len(body) and not decoder.finished and len(output) <= room:
            _pull(decoder, body[at : at + 1], output, room, _FINE_STEP)
            at += 1
    except _BROKEN:
        return _Drained(bytes(output[:room]), failed=True)
    return _finish(decoder, output, room, at - start)


def _finish(decoder: _Decoder, output: bytearray, room: int, used: int) -> _Drained:
    full = len(output) > room
    del output[room:]  # a slice would be another copy
    return _Drained(bytes(output), finished=decoder.finished, full=full, used=used)


def _pull(decoder: _Decoder, data: bytes, output: bytearray, room: int, step: int = _OUT_STEP) -> None:
    """All output that this input gives, up to one byte more than there is room for."""
    while (most := min(step, room + 1 - len(output))) > 0:
        piece = decoder.pull(data, most)
        output += piece
        if len(piece) < most or decoder.finished:
            return
        data = b""


def _gzip(body: bytes, room: int) -> _Drained:
    """The check sum is not compared: browsers do not compare it either, and often enough only it is wrong."""
    return _every(_gzip_member, body, room)


def _zstd(body: bytes, room: int) -> _Drained:
    return _every(_zstd_frame, body, room)


def _zstd_frame(body: bytes, start: int, room: int) -> _Drained:
    drained = _drain(_Unzstd, body, room, start)
    return msgspec.structs.replace(drained, used=start + drained.used)


def _every(one: Callable[[bytes, int, int], _Drained], body: bytes, room: int) -> _Drained:
    """All members or frames of a body (RFC 1952 2.2, RFC 8878 3); after the first one, anything else is junk.
    `one` decodes the member at a place; its `used` counts from the start of the body."""
    member = one(body, 0, room)
    outputs = [member.output]
    for _ in range(_MOST_MEMBERS):
        if not member.finished or member.full or member.used >= len(body):
            break
        room -= len(member.output)
        following = one(body, member.used, room)
        if following.failed:
            break
        member = following
        outputs.append(member.output)
    return msgspec.structs.replace(member, output=b"".join(outputs))


def _gzip_member(body: bytes, start: int, room: int) -> _Drained:
    header = _GZIP_HEADER.match(body, start)
    if not header:
        cut = len(body) - start < _SHORTEST_HEADER and b"\x1f\x8b\x08".startswith(body[start : start + 3])
        return _Drained(b"", failed=not cut)
    at = header.end()
    for flag, pattern in _GZIP_FIELDS:
        if header[1][0] & flag:
            field = pattern.match(body, at)
            if not field:
                return _Drained(b"")
            at = field.end() + (int.from_bytes(field[1], "little") if flag == _EXTRA else 0)
    drained = _drain(lambda: _Inflater(-15), body, room, at)
    return msgspec.structs.replace(drained, used=at + drained.used + _GZIP_TRAILER)


def _deflate(body: bytes, room: int) -> _Drained:
    """zlib as the name means (RFC 9110 8.4.1.2), or raw as some servers understood it."""
    wrapped = body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0
    drained = _drain(lambda: _Inflater(15 if wrapped else -15), body, room)
    if wrapped and drained.failed and not drained.output:
        return _drain(lambda: _Inflater(-15), body, room)
    return drained


def _brotli(body: bytes, room: int) -> _Drained:
    return _drain(_Unbrotli, body, room)


_ZSTD = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
_SHORTEST_HEADER = 10
_GZIP_TRAILER = 8
_EXTRA = 4
_GZIP_HEADER = re.compile(rb"\x1f\x8b\x08(.).{6}", re.DOTALL)
# RFC 1952 2.3: the optional fields in the order they come in: extra, name, comment, header check sum.
_GZIP_FIELDS = (
    (_EXTRA, re.compile(rb"(..)", re.DOTALL)),
    (8, re.compile(rb"[^\x00]*\x00")),
    (16, re.compile(rb"[^\x00]*\x00")),
    (2, re.compile(rb"..", re.DOTALL)),
)
_CODINGS: dict[str, Callable[[bytes, int], _Drained]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
