"""What `native/heads.c` does, in Python: it defines what both say, and works where no kernel was built. Pure."""

from __future__ import annotations

import re

Headers = tuple[tuple[str, str], ...]

_EMPTY_LINE = re.compile(rb"\n\r?\n")
# RFC 9110 15.2: interim answers come before the one that counts; 101 is the last one on its connection.
_INTERIM = re.compile(rb"HTTP/\S+ +1(?!01)[0-9]{2}\b")
_MOST_DIGITS = 9


def read_head(raw: bytes | bytearray, /) -> tuple[bytes, int, Headers]:
    """The head that counts, up to and with its empty line, its status and its fields; nothing while it is not
    whole."""
    head = _head_in(bytes(raw))
    return head, _status_in(head), _fields_in(head)


def _head_in(raw: bytes) -> bytes:
    start = 0
    while (ended := _EMPTY_LINE.search(raw, start)) is not None:
        if _INTERIM.match(raw, start) is None:
            return raw[start : ended.end()]
        start = ended.end()
    return b""


def _status_in(head: bytes) -> int:
    words = head.split(None, 2)
    is_number = len(words) > 1 and words[1].isdigit() and len(words[1]) <= _MOST_DIGITS
    return int(words[1]) if is_number else 0


def _fields_in(head: bytes) -> Headers:
    """Names in lower case."""
    pairs = [line.partition(":") for line in head.decode("latin-1").split("\n")[1:]]
    return tuple([(name.strip().lower(), value.strip()) for name, colon, value in pairs if colon])
