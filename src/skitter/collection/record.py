"""A WARC record taken apart: named fields, block, and of an HTTP message its head and body.

Between a compressed record and whoever wants the page. Pure. Strict where `verify` must see a defect
(`framing_fault`), lenient where a page can still be shown.
"""

from __future__ import annotations

import re

import msgspec

from skitter.fetch.coding import Undecodable, decode_body

_FIRST_LINE = re.compile(rb"WARC/1\.[01]\r\n")
_FIELD = re.compile(r"([^:\r\n\s]+)[ \t]*:[ \t]*([^\r\n]*)\r\n")
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)? (\d{3})")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[^\r\n]*\r\n")
_END = b"\r\n\r\n"
_MOST_DECODED = 1 << 28


class Record(msgspec.Struct, frozen=True):
    """`fields` have lower-case names; of a repeated one the first counts."""

    fields: dict[str, str]
    block: bytes
    excess: bytes = b""
    """What follows the block in its member: exactly two line ends in a sound record."""

    @property
    def kind(self) -> str:
        return self.fields.get("warc-type", "")

    @property
    def id(self) -> str:
        return self.fields.get("warc-record-id", "").strip("<>")

    @property
    def url(self) -> str:
        # WARC 1.0 was read by some, wget among them, as if it wanted the brackets.
        return self.fields.get("warc-target-uri", "").strip("<>")

    @property
    def is_file(self) -> bool:
        """The block is the content itself, without a head of HTTP."""
        if self.kind == "response":  # of DNS, for one
            return (
                not self.fields.get("content-type", "application/http").lower().startswith("application/http")
            )
        return self.kind in ("resource", "conversion")

    @property
    def date(self) -> str:
        return self.fields.get("warc-date", "")

    @property
    def split(self) -> int:
        """Where the HTTP body begins."""
        if self.is_file:
            return 0
        end = self.block.find(_END)
        return len(self.block) if end < 0 else end + len(_END)

    @property
    def head(self) -> bytes:
        return self.block[: self.split]

    @property
    def body(self) -> bytes:
        return self.block[self.split :]

    @property
    def status(self) -> int:
        if self.is_file:
            return 200
        found = _STATUS.match(self.block)
        return int(found[1]) if found else 0

    def headers(self) -> list[tuple[str, str]]:
        if self.is_file:
            return [("content-type", self.fields.get("content-type", ""))]
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        pairs = (line.split(":", 1) for line in lines if ":" in line)
        return [(name.strip().lower(), value.strip()) for name, value in pairs]

    def header(self, name: str) -> str:
        return ", ".join(value for key, value in self.headers() if key == name)

    def payload(self) -> bytes:
        """The body without transfer coding, which some keep in their records."""
        is_chunked = "chunked" in self.header("transfer-encoding").lower()
        return joined_chunks(self.body) if is_chunked else self.body

    def decoded(self) -> bytes:
        """The body without content coding, as far as it can be undone; else as it came."""
        body = self.payload()
        found = decode_body(body, self.header("content-encoding"), limit=_MOST_DECODED)
        return body if isinstance(found, Undecodable) else found.body


def joined_chunks(body: bytes) -> bytes:
    """RFC 9112, 7.1. What is no chunk stays as it is: the header may be all that was left of the coding."""
    pieces: list[bytes] = []
    position = 0
    while found := _CHUNK.match(body, position):
        size, start = int(found[1], 16), found.end()
        if not size:
            return b"".join(pieces)
        if body[start + size : start + size + 2] not in (b"\r\n", b""):
            break
        pieces.append(body[start : start + size])
        position = start + size + 2
    return b"".join(pieces) + body[position:]


def parse_record(content: bytes) -> Record | str:
    """The record that a member holds, or why it holds none."""
    first = _FIRST_LINE.match(content)
    if first is None:
        return "no WARC record where one should begin"
    end = content.find(_END)
    if end < 0:
        return "the record's header has no end"
    header = content[first.end() : end + 2].decode("utf-8", "replace")
    pairs = _FIELD.findall(header)
    if len(pairs) != header.count("\r\n"):
        return "a header line that is no field"
    # From the last to the first, so that the first of a repeated one stays.
    fields = {name.lower(): value.rstrip() for name, value in reversed(pairs)}
    length = fields.get("content-length", "")
    if not re.fullmatch(r"[0-9]{1,15}", length):
        return f"Content-Length is {length!r}" if length else "no Content-Length"
    begin = end + len(_END)
    stop = begin + int(length)
    if stop > len(content):
        return f"Content-Length is {length}, but only {len(content) - begin} bytes follow"
    return Record(fields, content[begin:stop], content[stop:])


def response_of(record: Record, block: bytes) -> bytes:
    """A response record with the identity of another one, and this block."""
    kept = ("warc-target-uri", "warc-date", "warc-record-id", "warc-ip-address")
    fields = {name: record.fields[name] for name in kept if name in record.fields}
    fields |= {
        "warc-type": "response",
        "content-type": "application/http; msgtype=response",
        "content-length": str(len(block)),
    }
    lines = "".join(f"{_spelled(name)}: {value}\r\n" for name, value in fields.items())
    return b"WARC/1.1\r\n" + lines.encode() + b"\r\n" + block + _END


def _spelled(name: str) -> str:
    words = "-".join(part.capitalize() for part in name.split("-"))
    return (
        words.replace("Warc-", "WARC-").replace("-Uri", "-URI").replace("-Id", "-ID").replace("-Ip-", "-IP-")
    )


def excess_fault(excess: bytes) -> str:
    if excess == _END:
        return ""
    if b"WARC/1." in excess[:64]:
        return "more than one record in one member"
    if _END.startswith(excess):
        return "the record does not end with two line ends"
    return f"Content-Length is too small: {len(excess) - len(_END)} bytes more follow in the member"
