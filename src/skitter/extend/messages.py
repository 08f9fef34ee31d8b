"""The messages between a worker and the process that runs users' code, in msgpack with their length before them.

One `Start`, answered by `Started`; then a `PageMessage` for each page, answered by a `PageResult` in their order.
"""

from __future__ import annotations

import msgspec

from skitter.extend.extractor import Described, PageResult
from skitter.extend.page import Page
from skitter.settings.plugins import ExtractRule

LENGTH = 4
LONGEST_REPLY = 100_000_000
# Of the shared place where the child writes what it is at: which page, and which extractor.
PLACE = 16


class Start(msgspec.Struct, frozen=True):
    names: tuple[str, ...]
    rules: dict[str, ExtractRule]


class Started(msgspec.Struct, frozen=True):
    """`error` says why users' code could not be loaded."""

    described: list[Described] = []
    error: str = ""


class PageMessage(msgspec.Struct, array_like=True):
    """`numbers` are those of the extractors to call. `text` and `title` are given where another process read
    them, as of a PDF."""

    url: str
    body: bytes
    status: int
    headers: tuple[tuple[str, str], ...]
    fetched_at: float
    depth: int
    numbers: tuple[int, ...]
    text: str | None = None
    title: str | None = None

    def page(self) -> Page:
        return Page(
            self.url,
            self.body,
            status=self.status,
            headers=self.headers,
            fetched_at=self.fetched_at,
            depth=self.depth,
            text=self.text,
            title=self.title,
        )


encode = msgspec.msgpack.Encoder().encode
decode_start = msgspec.msgpack.Decoder(Start).decode
decode_started = msgspec.msgpack.Decoder(Started).decode
decode_page = msgspec.msgpack.Decoder(PageMessage).decode
decode_result = msgspec.msgpack.Decoder(PageResult).decode


def framed(message: bytes) -> bytes:
    return len(message).to_bytes(LENGTH, "big") + message
