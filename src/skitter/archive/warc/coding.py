"""How the records of a segment are compressed, and what its file is therefore called: each record by itself.

Between the bytes of a record and those of a segment, for who writes and for who reads. gzip: a member a record.
zstd: a frame a record, with its size and a check sum, without a dictionary, so that any zstd reads the file from
front to back. A segment is of one coding from its first record to its last, and its name alone says of which.
Files of others may be plain: those are read, and never written.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import NamedTuple, Protocol, cast

import zstandard
from isal import igzip_lib, isal_zlib

OPEN = ".open"
_GZIP = 31
# Beyond what levels up to 19 use; as much as the zstd command takes without being told to.
_WINDOW = 1 << 27
# Of the settings' levels, those that are worth their time on pages: docs/lab/0006-archive.md has the table.
_ZSTD_LEVELS = (-1, 1, 3, 6)


class Coder(NamedTuple):
    """Compresses a record: a page's, or a short one, of which few bytes can be saved and much of the time.
    For one thread: zstd works outside of the interpreter's lock, on memory that is kept from record to record."""

    coding: Coding
    page: Callable[[bytes], bytes]
    short: Callable[[bytes], bytes]


class Decoder(Protocol):
    """Takes one compressed record apart, in pieces; `unused_data` is what follows it in the last one. To be used
    up before the next one is made in the same thread."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, piece: memoryview, /) -> bytes: ...


class Coding(NamedTuple):
    """`unit` is what the format calls a record's bytes, which begin with `magic`. `decoder` and `beginning` raise
    `fault` on what is none of it."""

    name: str
    suffix: str
    unit: str
    magic: bytes
    fault: type[Exception]
    coder: Callable[[int], Coder]
    decoder: Callable[[], Decoder]
    beginning: Callable[[bytes | memoryview, int], bytes]
    """The first so many bytes of a record, however little of it is given, and however much it inflates to."""
    inflate: Callable[[bytes, int], bytes | None]
    """The record that these bytes are, to the last of them; None when it is longer than so many bytes, breaks
    off, or is followed by more."""


def _gzip_coder(level: int) -> Coder:
    return Coder(GZIP, _gzip_compressor(level), _gzip_compressor(min(level, 1)))


def _gzip_compressor(level: int) -> Callable[[bytes], bytes]:
    compress: Callable[[bytes, int, int], bytes] = igzip_lib.compress
    return lambda record: compress(record, level, igzip_lib.COMP_GZIP)


def _gzip_beginning(start: bytes | memoryview, most: int) -> bytes:
    # What it leaves unused is copied.
    found: bytes = isal_zlib.decompressobj(_GZIP).decompress(start[: 1 << 15], most)
    return found


def _gzip_inflate(member: bytes, most: int) -> bytes | None:
    decoder = isal_zlib.decompressobj(_GZIP)
    record: bytes = decoder.decompress(member, most + 1)
    is_whole = decoder.eof and not decoder.unused_data and len(record) <= most
    return record if is_whole else None


def _zstd_coder(level: int) -> Coder:
    # Short ones at 1 too: 3 us and 67 bytes a record against -1, at a better price than the next level of pages.
    return Coder(ZSTD, _zstd_compressor(_ZSTD_LEVELS[level]), _zstd_compressor(_ZSTD_LEVELS[min(level, 1)]))


def _zstd_compressor(level: int) -> Callable[[bytes], bytes]:
    compressor = zstandard.ZstdCompressor(level=level, write_checksum=True, write_content_size=True)
    return compressor.compress


class _Decompressor(threading.local):
    """One a thread: all that it decodes shares its memory. A new one each time takes 10 us, a third of a page."""

    def __init__(self) -> None:
        self.zstd = zstandard.ZstdDecompressor(max_window_size=_WINDOW)


_HERE = _Decompressor()


def _zstd_decoder() -> Decoder:
    return _HERE.zstd.decompressobj()


def _zstd_beginning(start: bytes | memoryview, most: int) -> bytes:
    return zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(start).read(most)


def _zstd_inflate(member: bytes, most: int) -> bytes | None:
    # Ours say how long they are; zstd itself holds them to it.
    if not 0 <= zstandard.frame_content_size(member) <= most:
        return None
    return _HERE.zstd.decompress(member, allow_extra_data=False)


class NoRecord(Exception):
    """Bytes that are no plain record."""


class _PlainDecoder:
    """A record that is not compressed ends where its own header says."""

    def __init__(self) -> None:
        self.eof = False
        self.unused_data = b""
        self._head = b""
        self._left = -1

    def decompress(self, piece: memoryview, /) -> bytes:
        data = bytes(piece)
        if self._left < 0:
            self._head += data
            if not self._read_head():
                return b""
            data = self._head
        data, self.unused_data = data[: self._left], data[self._left :]
        self._left -= len(data)
        self.eof = not self._left
        return data

    def _read_head(self) -> bool:
        if not self._head.startswith(_PLAIN_MAGIC[: len(self._head)]):
            raise NoRecord("not a plain record")
        end = self._head.find(_BLANK_LINE)
        if end < 0:
            if len(self._head) > _LONGEST_HEAD:
                raise NoRecord("the header has no end")
            return False
        length = _CONTENT_LENGTH.search(self._head, 0, end + 2)
        if length is None:
            raise NoRecord("no Content-Length")
        self._left = end + len(_BLANK_LINE) + int(length[1]) + len(_BLANK_LINE)
        return True


def _plain_inflate(member: bytes, most: int) -> bytes | None:
    return member if len(member) <= most else None


def _plain_coder(level: int) -> Coder:
    return Coder(PLAIN, bytes, bytes)


_PLAIN_MAGIC = b"WARC/"
_BLANK_LINE = b"\r\n\r\n"
_LONGEST_HEAD = 1 << 16
_CONTENT_LENGTH = re.compile(rb"\r\ncontent-length[ \t]*:[ \t]*([0-9]{1,15})[ \t]*\r\n", re.IGNORECASE)

GZIP = Coding(
    "gzip",
    ".warc.gz",
    "gzip member",
    b"\x1f\x8b\x08",
    cast("type[Exception]", isal_zlib.error),
    _gzip_coder,
    lambda: isal_zlib.decompressobj(_GZIP),
    _gzip_beginning,
    _gzip_inflate,
)
ZSTD = Coding(
    "zstd",
    ".warc.zst",
    "zstd frame",
    b"\x28\xb5\x2f\xfd",
    zstandard.ZstdError,
    _zstd_coder,
    _zstd_decoder,
    _zstd_beginning,
    _zstd_inflate,
)
PLAIN = Coding(
    "plain",
    ".warc",
    "record",
    _PLAIN_MAGIC,
    NoRecord,
    _plain_coder,
    _PlainDecoder,
    lambda start, most: bytes(start[:most]),
    _plain_inflate,
)
CODINGS = {coding.name: coding for coding in (GZIP, ZSTD)}
SUFFIXES = tuple(coding.suffix for coding in CODINGS.values())
READABLE_SUFFIXES = (*SUFFIXES, PLAIN.suffix)


def is_segment(name: str) -> bool:
    """Whether a file is called as a finished segment is."""
    return name.endswith(SUFFIXES)


def coding_of(segment: str) -> Coding:
    """By the name of its file, growing or finished."""
    name = segment.removesuffix(OPEN)
    return next((coding for coding in (ZSTD, PLAIN) if name.endswith(coding.suffix)), GZIP)


def stem_of(segment: str) -> str:
    """What all files of a segment are called after."""
    return segment.removesuffix(coding_of(segment).suffix)


def decode_record(member: bytes, coding: Coding) -> bytes:
    """The record of a member of our own making."""
    return coding.decoder().decompress(memoryview(member))
