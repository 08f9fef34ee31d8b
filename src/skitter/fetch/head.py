"""The head of an answer: which bytes of what came it is, and what its lines say.

Under the transfer, which gathers the lines as libcurl tells them, those of interim answers before it and of
trailers behind it included. Pure; never raises on any bytes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

Headers = tuple[tuple[str, str], ...]


class Fields(NamedTuple):
    """What headers say, by name: the first line of a name, and all of them joined (RFC 9110 5.3). Where no name
    comes twice, both are one."""

    first: dict[str, str]
    joined: dict[str, str]


_EMPTY_LINE = re.compile(rb"\n\r?\n")
# RFC 9110 15.2: interim answers come before the one that counts; 101 is the last one on its connection.
_INTERIM = re.compile(rb"HTTP/\S+ +1(?!01)[0-9]{2}\b")
_SWITCHING = re.compile(rb"HTTP/\S+ +101\b")


def head_in(raw: bytes) -> bytes:
    """The head that counts, up to and with its empty line; nothing while it is not whole."""
    start = 0
    while (ended := _EMPTY_LINE.search(raw, start)) is not None:
        if _INTERIM.match(raw, start) is None:
            return raw[start : ended.end()]
        start = ended.end()
    return b""


def is_switching(raw: bytes | bytearray) -> bool:
    """Whether it is another protocol from here on, which we never ask for."""
    return _SWITCHING.match(raw) is not None


def status_in(head: bytes) -> int:
    words = head.split(None, 2)
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def version_in(head: bytes) -> str:
    """As the status line says: `1.0`, `1.1`, `2`; libcurl writes one for HTTP/2, which has none itself."""
    return "1.1" if head.startswith(b"HTTP/1.1 ") else head.partition(b" ")[0][5:].decode("latin-1")


def headers_in(head: bytes) -> Headers:
    """Names in lower case."""
    pairs = [line.partition(":") for line in head.decode("latin-1").split("\n")[1:]]
    return tuple([(name.strip().lower(), value.strip()) for name, colon, value in pairs if colon])


def fields_of(headers: Headers) -> Fields:
    """0.5 us, and each look into it 0.05; going through the headers took 0.5 to 1 for each of a dozen."""
    by_name = dict(headers)
    if len(by_name) == len(headers):
        return Fields(by_name, by_name)
    lines: dict[str, list[str]] = {}
    for name, value in headers:
        lines.setdefault(name, []).append(value)
    return Fields(
        {name: values[0] for name, values in lines.items()},
        {name: ", ".join(values) for name, values in lines.items()},
    )
