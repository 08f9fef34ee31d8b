"""The bytes of WARC 1.1 records.

Between an exchange and a segment. Pure but for the random record ids. Knows nothing of files, offsets,
compression or what is committed. A field value can never break out of its line: URLs and types come from
strangers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from datetime import date
from functools import lru_cache
from hashlib import sha256
from math import floor
from struct import Struct

from skitter import __version__
from skitter.model import Copy, Exchange

_PROFILES = "http://netpreserve.org/warc/1.1/revisit/"
_SPECIFICATION = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
_PROTOCOLS = {
    version: f"WARC-Protocol: {name}\r\n"
    for version, name in (
        ("1.0", "http/1.0"),
        ("1.1", "http/1.1"),
        ("2", "h2"),
        ("2.0", "h2"),
        ("3", "h3"),
        ("3.0", "h3"),
    )
}
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+", re.ASCII)
_UNSAFE_IN_URI = re.compile(r"[^\x21-\x7e]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_BASE32 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".ljust(256, b"=")
_VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}
_LONG_TYPE = 100
_EPOCH = date(1970, 1, 1).toordinal()
_SECONDS_A_DAY = 86_400


def record_ids() -> Iterator[str]:
    """Random (version 4) UUIDs as URNs, from a pool of random bytes: `uuid.uuid4` asks the system for each."""
    while True:
        pool = os.urandom(16 * 256).hex()
        for at in range(0, len(pool), 32):
            h = pool[at : at + 32]
            yield f"urn:uuid:{h[:8]}-{h[8:12]}-4{h[13:16]}-{_VARIANT[h[16]]}{h[17:20]}-{h[20:]}"


def spell_time(at: float) -> tuple[str, str, int]:
    """One instant as a WARC-Date (WARC 1.1, 5.4: UTC with a fraction, so that the fetches of one second differ),
    as the stamp of an index line, and as microseconds since 1970."""
    total = floor(at * 1e6)
    second, micros = divmod(total, 1_000_000)
    text, stamp = _second(second)
    return f"{text}.{micros:06d}Z", stamp, total


def warc_date(at: float) -> str:
    return spell_time(at)[0]


@lru_cache(maxsize=256)
def _second(second: int) -> tuple[str, str]:
    day, left = divmod(second, _SECONDS_A_DAY)
    text = f"{date.fromordinal(_EPOCH + day).isoformat()}T%02d:%02d:%02d" % (
        left // 3600,
        left // 60 % 60,
        left % 60,
    )
    return text, text.translate({ord(sign): "" for sign in "-:T"})


def digest_field(digest: bytes) -> str:
    """Base32 with its padding: the one spelling of SHA-256 that every validator we know verifies."""
    return digest_fields(digest, digest)[0]


def digest_fields(first: bytes, second: bytes) -> tuple[str, str]:
    """Two at once, all letters in one long number: a third of the time of letter by letter."""
    # Five bytes are eight letters; here they are in the lower part of eight bytes each.
    letters = int.from_bytes(b"\0\0\0".join(_FIVES(b"%b\0\0\0%b\0\0\0" % (first, second))), "big")
    for stay, move, shift in _SPREADING:
        letters = letters & stay | (letters & move) << shift
    both = letters.to_bytes(112, "big").translate(_BASE32).decode()
    return f"sha256:{both[:52]}====", f"sha256:{both[56:108]}===="


_FIVES = Struct("5s" * 14).unpack


def _spreading() -> Iterator[tuple[int, int, int]]:
    """How 5 bits each become 8 bits each: of each block the upper half moves, down to blocks of two letters."""
    for half in (4, 2, 1):
        stay = sum((1 << 5 * half) - 1 << 16 * half * block for block in range(56 // half))
        yield stay, stay << 5 * half, 3 * half


_SPREADING = tuple(_spreading())


def target_uri(url: str) -> str:
    if url.isascii() and url.isprintable() and " " not in url:
        return url
    return _UNSAFE_IN_URI.sub(
        lambda bad: "".join(f"%{b:02X}" for b in bad[0].encode("utf-8", "replace")), url
    )


def media_type_of(content_type: str) -> str:
    """The type of a Content-Type value, without parameters; empty when it is none."""
    return _usual_type(content_type) if len(content_type) < _LONG_TYPE else _type(content_type)


def _type(content_type: str) -> str:
    found = _MEDIA_TYPE.match(content_type.strip())
    return found[0] if found else ""


# Few spellings make up nearly all of what servers say.
_usual_type = lru_cache(maxsize=256)(_type)


def warcinfo(record_id: str, date: str, segment: str, about: Mapping[str, str]) -> bytes:
    fields = {
        "software": f"skitter/{__version__}",
        "format": "WARC File Format 1.1",
        "conformsTo": _SPECIFICATION,
        "robots": "obey",
    }
    fields = {**fields, **{name: value for name, value in about.items() if name not in fields}}
    block = "".join(f"{_line(name)}: {_line(value)}\r\n" for name, value in fields.items() if value)
    extra = f"WARC-Date: {date}\r\nWARC-Filename: {segment}\r\nContent-Type: application/warc-fields\r\n"
    return _digested("warcinfo", record_id, extra, block.encode("utf-8", "replace"))


def common_fields(exchange: Exchange, uri: str, date: str) -> str:
    """What all records of one exchange say. Not WARC-Warcinfo-ID: the worker that makes a record does not know in
    which segment it will lie, and without the field it belongs to the warcinfo record before it (WARC 1.1,
    5.14)."""
    if not exchange.address:
        return f"WARC-Date: {date}\r\nWARC-Target-URI: {uri}\r\n"
    return f"WARC-Date: {date}\r\nWARC-Target-URI: {uri}\r\nWARC-IP-Address: {exchange.address}\r\n"


def response_fields(exchange: Exchange, common: str, digest: str, media_type: str, request_id: str) -> str:
    """What a response record and a revisit record in its place both say. What is empty is left out."""
    request = f"WARC-Concurrent-To: <{request_id}>\r\n" if request_id else ""
    payload = f"WARC-Payload-Digest: {digest}\r\n" if digest else ""
    detected = f"WARC-Identified-Payload-Type: {media_type}\r\n" if media_type else ""
    truncated = "WARC-Truncated: length\r\n" if exchange.truncated else ""
    return (
        f"{common}{request}{_PROTOCOLS.get(exchange.http_version, '')}{payload}{detected}{truncated}"
        "Content-Type: application/http; msgtype=response\r\n"
    )


def request_record(request: bytes, record_id: str, common: str) -> bytes:
    """No digest, as in Common Crawl's files: the compression's own check sum guards the bytes already."""
    fields = (
        f"WARC/1.1\r\nWARC-Type: request\r\nWARC-Record-ID: <{record_id}>\r\n{common}"
        f"Content-Type: application/http; msgtype=request\r\nContent-Length: {len(request)}\r\n\r\n"
    )
    return b"%b%b\r\n\r\n" % (fields.encode("utf-8", "replace"), request)


def response_record(head: bytes, body: bytes, block: str, record_id: str, fields: str) -> bytes:
    """`block` is the spelled digest of head and body."""
    start = (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <{record_id}>\r\n{fields}"
        f"WARC-Block-Digest: {block}\r\nContent-Length: {len(head) + len(body)}\r\n\r\n"
    )
    return b"".join((start.encode("utf-8", "replace"), head, body, b"\r\n\r\n"))


def metadata_record(record_id: str, about: str, common: str, block: str) -> bytes:
    """What was found out about the record `about`. No digest, as with requests."""
    content = block.encode("utf-8", "replace")
    fields = (
        f"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: <{record_id}>\r\n{common}"
        f"WARC-Concurrent-To: <{about}>\r\nWARC-Refers-To: <{about}>\r\n"
        f"Content-Type: application/warc-fields\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return b"%b%b\r\n\r\n" % (fields.encode("utf-8", "replace"), content)


def revisit_record(head: bytes, record_id: str, fields: str) -> bytes:
    return _digested("revisit", record_id, fields, head)


def revisit_fields(original: Copy, status: int) -> str:
    """WARC 1.1, 6.7: which profile, and the copy that a reader takes the payload from."""
    profile = "server-not-modified" if status == 304 else "identical-payload-digest"
    ident = _line(original.record_id).strip("<>")
    # Of a copy in another archive only its URL and time are known, by which readers find it.
    named = f"WARC-Refers-To: <{ident}>\r\n" if ident else ""
    return (
        f"WARC-Profile: {_PROFILES}{profile}\r\n"
        f"{named}"
        f"WARC-Refers-To-Target-URI: {target_uri(original.url)}\r\n"
        f"WARC-Refers-To-Date: {warc_date(original.fetched_at)}\r\n"
    )


def resource_record(record_id: str, fields: str, content_type: str, block: bytes) -> bytes:
    """Something that we made of records, and no server sent: `fields` name it and what it was made of."""
    return _digested("resource", record_id, f"{fields}Content-Type: {_line(content_type)}\r\n", block)


def made_of(record_id: str, url: str, date: str) -> str:
    """The record that a resource was made of."""
    return (
        f"WARC-Refers-To: <{_line(record_id).strip('<>')}>\r\n"
        f"WARC-Refers-To-Target-URI: {target_uri(url)}\r\nWARC-Refers-To-Date: {_line(date)}\r\n"
    )


def _digested(kind: str, record_id: str, fields: str, block: bytes) -> bytes:
    start = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <{record_id}>\r\n{fields}"
        f"WARC-Block-Digest: {digest_field(sha256(block).digest())}\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return b"%b%b\r\n\r\n" % (start.encode("utf-8", "replace"), block)


def _line(text: str) -> str:
    return _CONTROL.sub(" ", text)
