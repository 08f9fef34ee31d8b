"""Whether an answer is worth the rest of its body, by its headers and its first bytes.

Asked by the transfer in the middle of the fetch. Never says no to robots.txt or to a
requisite, which are kept whatever their type.
"""

from __future__ import annotations

import contextlib
import zlib

from skitter.fetch.coding import Undecodable, decode_body
from skitter.fetch.head import Headers, fields_of
from skitter.fetch.transfer import Judge
from skitter.model import Task, TaskKind
from skitter.parse.media import LOOKED_AT, is_wanted, parse_content_type, sniff

_CODED_START = 512


def judge_for(task: Task) -> Judge:
    return _never if task.kind is TaskKind.ROBOTS or task.requisite else _unwanted_page


def _never(status: int, headers: Headers, start: bytes) -> str:
    return ""


def _unwanted_page(status: int, headers: Headers, start: bytes) -> str:
    """By the header, else by the bytes. Error pages are kept whatever they claim to be; they are small and say
    what happened."""
    if status != 200:
        return ""
    _, fields = fields_of(headers)
    content_type, coding = fields.get("content-type", ""), fields.get("content-encoding", "")
    essence = parse_content_type(content_type).essence
    if not is_wanted(essence):
        return content_type
    found = sniff(essence, _plain_start(start, coding) if coding else start)
    return (
        ""
        if found == essence or is_wanted(found)
        else f"{content_type or 'no type'}, but its bytes are {found}"
    )


def _plain_start(start: bytes, coding: str) -> bytes:
    """The first bytes without their coding; none where they cannot be had, and then the header is believed."""
    if coding.lower() == "gzip":
        # Most of the web: 9 us this way, 22 through all that `decode_body` is prepared for.
        with contextlib.suppress(zlib.error):
            return zlib.decompressobj(31).decompress(start[:_CODED_START], LOOKED_AT)
    decoded = decode_body(start[:LOOKED_AT], coding, limit=LOOKED_AT)
    return b"" if isinstance(decoded, Undecodable) else decoded.body
