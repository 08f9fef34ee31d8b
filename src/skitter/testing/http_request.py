"""Reads the head of an HTTP/1.1 request, as far as the synthetic web needs it.

Pure. Whatever is no request raises `BadRequest`; nothing else is ever raised.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
TARGET = re.compile(rb"[!-~\x80-\xff]+")
HOST = re.compile(r"[a-z0-9._-]{1,255}(:[0-9]{1,5})?")


class BadRequest(ValueError):
    pass


class Head(NamedTuple):
    method: str
    target: str
    host: str
    gzip: bool
    if_none_match: bytes
    close: bool


def read_head(head: bytes) -> Head:
    """The head without its empty line. The absolute form is accepted too, as from a client of a proxy."""
    first, *lines = head.split(b"\r\n")
    parts = first.split(b" ")
    if len(parts) != 3 or not TOKEN.fullmatch(parts[0]) or not TARGET.fullmatch(parts[1]):
        raise BadRequest(first)
    if parts[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise BadRequest(first)
    fields = _fields(lines)
    if fields.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in fields:
        raise BadRequest("a body, which no request here has")
    host, target = _authority(parts[1].decode("latin-1"), fields.get(b"host", b"").decode("latin-1"))
    return Head(
        method=parts[0].decode(),
        target=target,
        host=host,
        gzip=b"gzip" in fields.get(b"accept-encoding", b""),
        if_none_match=fields.get(b"if-none-match", b""),
        close=parts[2] == b"HTTP/1.0" or b"close" in fields.get(b"connection", b"").lower(),
    )


def _fields(lines: list[bytes]) -> dict[bytes, bytes]:
    fields: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not TOKEN.fullmatch(name):
            raise BadRequest(line)
        name = name.lower()
        if name == b"host" and name in fields:
            raise BadRequest("two Host fields")
        fields[name] = value.strip()
    return fields


def _authority(target: str, host: str) -> tuple[str, str]:
    if target[:7].lower() == "http://":
        host, slash, path = target[7:].partition("/")
        target = slash + path or "/"
    host = host.lower()
    if not target.startswith("/") or not HOST.fullmatch(host):
        raise BadRequest("no target on a host")
    return host.removesuffix(":80"), target
