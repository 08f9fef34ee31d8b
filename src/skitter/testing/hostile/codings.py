"""Content codings: bombs in every coding, stacked, cut, spoilt and mislabelled.

A bomb is made when it is first asked for, and is small on the wire.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from functools import lru_cache

import brotlicffi

from skitter.testing.hostile.case import Case, Ending, Wire, page, says, whole

PAGE = b"<title>hello</title>" + b"".join(b"<p>%d" % (n * n) for n in range(2000))
MEGABYTE = 1_000_000
CUT = page(detail="inflates beyond fetch.max_decoded or fetch.max_ratio")
NOTHING = page(detail="not decoded")
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def gzip_bomb(members: int = 10) -> bytes:
    """1,000 to 1, ten megabytes a member."""
    return gzip.compress(bytes(10 * MEGABYTE), 9, mtime=0) * members


def stacked_gzip_bomb(members: int = 100) -> bytes:
    """A gigabyte within three layers of gzip."""
    return gzip.compress(gzip.compress(gzip_bomb(members), 9), 9)


@lru_cache
def brotli_bomb(megabytes: int = 250) -> bytes:
    """Some hundred thousand to 1."""
    coder = brotlicffi.Compressor(quality=3)
    block = bytes(10 * MEGABYTE)
    parts = [coder.process(block) for _ in range(megabytes // 10)]
    return b"".join([*parts, coder.finish()])


def zstd_bomb(blocks: int = 8192) -> bytes:
    """Blocks of 128 KB as one byte repeated (RFC 8878 3.1.1.2): 32,768 to 1."""
    return _ZSTD_MAGIC + b"\0\x38" + _zstd_block(1, 131_072, b"\0") * blocks + _zstd_block(0, 0, b"", last=1)


def zstd_wide() -> bytes:
    """A window of 512 MB, which a reader that obeys would have to allocate."""
    return _ZSTD_MAGIC + b"\0\x98" + _zstd_block(0, len(PAGE), PAGE, last=1)


def _zstd_block(kind: int, size: int, content: bytes, last: int = 0) -> bytes:
    return (last | kind << 1 | size << 3).to_bytes(3, "little") + content


def _coded(name: str, about: str, coding: bytes, ends: Ending, make: Callable[[], bytes]) -> Case:
    @lru_cache
    def response() -> bytes:
        return whole(make(), b"Content-Encoding: " + coding)

    async def play(wire: Wire) -> None:
        await wire.send(response())

    return Case(name=name, about=about, play=play, ends=ends, prepare=response)


def _raw_deflate() -> bytes:
    coder = zlib.compressobj(wbits=-15)
    return coder.compress(PAGE) + coder.flush()


def _spoilt() -> bytes:
    coded = gzip.compress(PAGE)
    return coded[: len(coded) // 2] + b"\xff\0\xff" * 99


BROKEN = page(detail="breaks off or is damaged")
PLAIN = page(detail="not coded, although")

CASES = (
    _coded("gzip-bomb", "100 MB in 100 KB of gzip (1,000 to 1)", b"gzip", CUT, gzip_bomb),
    _coded(
        "deflate-bomb",
        "30 MB in 30 KB of deflate",
        b"deflate",
        CUT,
        lambda: zlib.compress(bytes(30 * MEGABYTE), 9),
    ),
    _coded(
        "gzip-stacked-bomb",
        "1 GB in gzip in gzip in gzip",
        b"gzip, gzip, gzip",
        CUT,
        stacked_gzip_bomb,
    ),
    _coded("brotli-bomb", "250 MB in a few hundred bytes of br", b"br", CUT, brotli_bomb),
    _coded("zstd-bomb", "1 GB in 33 KB of zstd", b"zstd", CUT, zstd_bomb),
    _coded(
        "mixed-bomb",
        "1 GB in zstd in br",
        b"zstd, br",
        CUT,
        lambda: brotlicffi.compress(zstd_bomb()),
    ),
    _coded("zstd-window", "zstd with a window of 512 MB", b"zstd", NOTHING, zstd_wide),
    _coded(
        "gzip-members", "200,000 empty gzip members", b"gzip", page(), lambda: gzip.compress(b"") * 200_000
    ),
    _coded("gzip-stacked", "gzip in gzip in gzip", b"gzip, gzip, gzip", page(), lambda: _times(3)),
    _coded("gzip-four", "four layers of gzip", b"gzip, gzip, gzip, gzip", NOTHING, lambda: _times(4)),
    _coded("codings-50", "fifty codings named", b", ".join([b"gzip"] * 50), NOTHING, lambda: _times(1)),
    _coded(
        "deflate-zlib", "deflate as the standard means it", b"deflate", page(), lambda: zlib.compress(PAGE)
    ),
    _coded("deflate-raw", "deflate without its wrapper", b"deflate", page(), _raw_deflate),
    _coded("gzip-cut", "half a gzip stream", b"gzip", BROKEN, lambda: gzip.compress(PAGE)[: len(PAGE) // 8]),
    _coded("gzip-spoilt", "gzip with noise in the middle", b"gzip", BROKEN, _spoilt),
    _coded(
        "gzip-junk", "junk after the gzip stream", b"gzip", page(), lambda: gzip.compress(PAGE) + b"junk" * 99
    ),
    _coded("gzip-noise", "noise that is called gzip", b"gzip", NOTHING, lambda: bytes(range(256)) * 9),
    _coded("gzip-plain", "a plain page that is called gzip", b"gzip", PLAIN, lambda: PAGE),
    _coded("coding-unknown", "a coding that nobody knows", b"quantum", NOTHING, lambda: PAGE),
    Case(
        name="coding-twice",
        about="two Content-Encoding headers",
        play=says(whole(gzip.compress(gzip.compress(PAGE)), *(b"Content-Encoding: gzip",) * 2)),
        ends=page(),
    ),
)


def _times(layers: int) -> bytes:
    body = PAGE
    for _ in range(layers):
        body = gzip.compress(body)
    return body
