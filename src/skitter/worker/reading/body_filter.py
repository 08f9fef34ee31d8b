"""Whether an answer is worth the rest of its body, by its headers and its first bytes.

Asked by the transfer in the middle of the fetch. Which of the two questions is asked is in `kinds.py`: robots.txt
and what a page needs to look right are kept whatever their type.
"""

from __future__ import annotations

import contextlib
import zlib

from skitter.fetch.coding import Undecodable, decode_body
from skitter.fetch.response_head import Headers, fields_of
from skitter.parse.media import LOOKED_AT, parse_content_type, sniff
from skitter.parse.readers import Readers

_CODED_START = 512


def take_any_body(status: int, headers: Headers, start: bytes) -> str:
    """Never says no."""
    return ""


class PageFilter:
    """Which pages are wanted is up to the readers: a type that nobody reads is not fetched."""

    def __init__(self, readers: Readers) -> None:
        self._accepts = readers.accepts

    def judge(self, status: int, headers: Headers, start: bytes) -> str:
        """Why the body is not wanted, by the header, else by the bytes; "" where it is. Error pages are kept
        whatever they claim to be: they are small and say what happened."""
        if status != 200:
            return ""
        _, fields = fields_of(headers)
        content_type, coding = fields.get("content-type", ""), fields.get("content-encoding", "")
        essence = parse_content_type(content_type).essence
        if not self._accepts(essence):
            return content_type
        found = sniff(essence, _plain_start(start, coding) if coding else start)
        if found == essence or self._accepts(found):
            return ""
        return f"{content_type or 'no type'}, but its bytes are {found}"


def _plain_start(start: bytes, coding: str) -> bytes:
    """The first bytes without their coding; none where they cannot be had, and then the header is believed."""
    if coding.lower() == "gzip":
        # Most of the web, and less than half the work of all that `decode_body` is prepared for.
        with contextlib.suppress(zlib.error):
            return zlib.decompressobj(31).decompress(start[:_CODED_START], LOOKED_AT)
    decoded = decode_body(start[:LOOKED_AT], coding, limit=LOOKED_AT)
    return b"" if isinstance(decoded, Undecodable) else decoded.body
