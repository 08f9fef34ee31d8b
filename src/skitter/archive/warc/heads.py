"""HTTP heads as they go into a record: what was received, in a form that every reader takes apart alike.

Between the fetcher's bytes and the WARC block. Pure. A well-formed HTTP/1 head is kept byte for byte except
for the framing that no longer describes the stored body: transfer coding and length. Never raises, whatever
a server sent, and never lets a head end anywhere but at its last byte.
"""

from __future__ import annotations

import re

# Never looks back: half the time of the same without the second `+`.
_CLEAN_HEAD = re.compile(
    rb"HTTP/1\.[01] \d{3}[^\r\n\0]*+\r\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]++:[^\r\n\0]*+\r\n)*+\r\n"
)
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] \d{3}(?: |$)")
_LATER_STATUS_LINE = re.compile(rb"HTTP/[23](?:\.0)? (?=\d{3})")
_LATER_REQUEST_LINE = re.compile(rb"^([^\r\n]* )HTTP/[23](?:\.0)?(?=\r\n)")
_FRAMING = re.compile(rb"\r\n(transfer-encoding|content-length)[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)
_BODILESS = frozenset({204, 304})


def response_head(head: bytes, status: int, body_length: int) -> bytes:
    """The head to store with a body of which the transfer coding is undone."""
    has_length = status not in _BODILESS and status >= 200
    if _CLEAN_HEAD.fullmatch(head) is None:
        head = _repaired(head, status)
    elif has_length and _says_once_how_long(head.lower(), body_length):
        return head
    # RFC 9110, 8.6: a 204 has no Content-Length, that of a 304 speaks of another response's body.
    return _framed(head, body_length if has_length else None)


def _says_once_how_long(lower: bytes, length: int) -> bool:
    """Whether a head in small letters can be stored as it is."""
    return (
        b"\r\ncontent-length: %d\r\n" % length in lower
        and lower.count(b"\r\ncontent-length") == 1
        and b"\r\ntransfer-encoding" not in lower
    )


def request_head(head: bytes) -> bytes:
    """HTTP/2 has no request line of its own: libcurl's rendering is stored as the HTTP/1.1 it stands for."""
    if not head.startswith(b" HTTP/1.1", head.find(b"\r\n") - 9):
        head = _LATER_REQUEST_LINE.sub(rb"\1HTTP/1.1", head)
    if head.startswith(b"POST "):
        return head
    return head if head.endswith(b"\r\n\r\n") else head.rstrip(b"\r\n") + b"\r\n\r\n"


def _framed(head: bytes, length: int | None) -> bytes:
    found = False

    def judge(line: re.Match[bytes]) -> bytes:
        nonlocal found
        if line[1].lower() == b"content-length":
            right = length is None or line[2].strip() == b"%d" % length
            if right and not found:
                found = True
                return line[0]
        return b"\r\nX-Crawl-%b: %b" % (line[1], line[2])

    head = _FRAMING.sub(judge, head)
    if found or length is None:
        return head
    return b"%bContent-Length: %d\r\n\r\n" % (head[:-2], length)


def _repaired(head: bytes, status: int) -> bytes:
    """A head as RFC 9112 asks a recipient to understand it: sections 2.2 (bare CR), 3 and 5.2 (folding)."""
    lines = _unfolded(head.replace(b"\0", b" "))
    first = _LATER_STATUS_LINE.sub(b"HTTP/1.1 ", lines[0]) if lines else b""
    if _STATUS_LINE.match(first):
        lines[0] = first
    elif first.startswith(b"HTTP/") or b":" not in first:
        lines[:1] = [b"HTTP/1.1 %03d " % status, b"X-Crawl-Status-Line: " + first]
    else:
        lines.insert(0, b"HTTP/1.1 %03d " % status)
    fields = (line if b":" in line.lstrip(b":") else b"X-Crawl-Line: " + line for line in lines[1:])
    return b"\r\n".join((lines[0], *fields, b"", b""))


def _unfolded(head: bytes) -> list[bytes]:
    lines: list[bytes] = []
    for raw in head.split(b"\n"):
        line = raw.removesuffix(b"\r").replace(b"\r", b" ")
        if _is_blank(line):
            continue
        if line[:1] in b" \t" and lines:
            lines[-1] += b" " + line.lstrip(b" \t")
        else:
            lines.append(line.lstrip(b" \t"))
    return lines


def _is_blank(line: bytes) -> bool:
    # Readers in Python end a head at a line of any Unicode white space, NEL and NBSP included.
    try:
        return not line.decode().strip()
    except UnicodeDecodeError:
        return not line.decode("latin-1").strip()
