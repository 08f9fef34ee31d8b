"""The head of an answer: which bytes it is, its status and its fields.

Under the transfer, which gathers all header lines that libcurl reports: also those of interim answers before
the head and of trailers behind the body. Pure; never raises on any bytes.
"""

from __future__ import annotations

import re

__all__ = ["Fields", "Headers", "fields_of", "is_switching", "read_head", "version_in"]

Headers = tuple[tuple[str, str], ...]
"""Names in lower case and values, in the order of the lines."""
Fields = dict[str, str]
"""Values by name."""

_SWITCHING = re.compile(rb"HTTP/\S+ +101\b")
# RFC 9110 15.2: interim answers come before the one that counts; 101 is the last one on its connection.
_INTERIM = re.compile(rb"HTTP/\S+ +1(?!01)[0-9]{2}\b")
_USUAL = (b"HTTP/1.1 2", b"HTTP/1.1 3", b"HTTP/1.1 4", b"HTTP/2 2")  # no interim answer begins like this
_MOST_DIGITS = 9
# Header names as servers write them, in lower case. Few names make up nearly all heads.
_NAMES: dict[str, str] = {}
_MOST_NAMES = 1000
_LONGEST_NAME = 100


def read_head(raw: bytes | bytearray, /) -> tuple[bytes, int, Headers]:
    """The head up to and with its empty line, its status and its fields; empty while it is not complete."""
    head = _find_head(bytes(raw))
    return head, _read_status(head), _read_fields(head)


def _find_head(raw: bytes) -> bytes:
    start = 0
    while (end := _block_end(raw, start)) > 0:
        if raw.startswith(_USUAL, start) or _INTERIM.match(raw, start) is None:
            return raw[start:end]
        start = end
    return b""


def _block_end(raw: bytes, start: int) -> int:
    """The place behind the next empty line; 0 when there is none."""
    end = raw.find(b"\n\r\n", start) + 3
    bare = raw.find(b"\n\n", start, end if end > 2 else None) + 2
    if bare > 1:
        return bare
    return end if end > 2 else 0


def _read_status(head: bytes) -> int:
    words = head.split(None, 2)
    is_number = len(words) > 1 and words[1].isdigit() and len(words[1]) <= _MOST_DIGITS
    return int(words[1]) if is_number else 0


def _read_fields(head: bytes) -> Headers:
    pairs = [line.partition(":") for line in head.decode("latin-1").split("\n")[1:]]
    known = _NAMES.get
    return tuple([(known(name) or _lower_name(name), value.strip()) for name, colon, value in pairs if colon])


def _lower_name(written: str) -> str:
    """Remembers the name, unless it is too long: a server must not fill our memory."""
    name = written.strip().lower()
    if len(written) <= _LONGEST_NAME:
        if len(_NAMES) >= _MOST_NAMES:
            _NAMES.clear()
        _NAMES[written] = name
    return name


def fields_of(headers: Headers) -> tuple[Fields, Fields]:
    """The first value of each name, and all values of a name joined (RFC 9110 5.3). Both are the same dict
    where no name comes twice."""
    by_name = dict(headers)
    if len(by_name) == len(headers):
        return by_name, by_name
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name, []).append(value)
    first = {name: each[0] for name, each in values.items()}
    return first, {name: ", ".join(each) for name, each in values.items()}


def is_switching(raw: bytes | bytearray) -> bool:
    """Whether another protocol follows, which we never ask for."""
    return _SWITCHING.match(raw) is not None


def version_in(head: bytes) -> str:
    """As the status line says: `1.0`, `1.1`, `2`. HTTP/2 has no status line; libcurl writes one."""
    return "1.1" if head.startswith(b"HTTP/1.1 ") else head.partition(b" ")[0][5:].decode("latin-1")
