"""The archived copy of a URL, read for the API: its headers, its text, its body.

In a thread, since it reads files (or an object store) and may parse a page; bounded by the settings of
fetching, so that what was a bomb on the web is none here. Never returned as a page: a browser must not run
what we archived.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from skitter.collection.collection import Collection
from skitter.collection.record import Record
from skitter.errors import UsageError
from skitter.fetch.coding import Undecodable, decode_body
from skitter.parse.page import read_page
from skitter.service.http.problem import Problem, Trouble
from skitter.settings import FetchSettings


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """`head` is the status line and the headers, as they came; `body` is without content coding."""

    url: str
    fetched: str
    head: bytes
    body: bytes
    content_type: str


async def copy_of(folder: Path, url: str, limits: FetchSettings) -> Copy:
    return await asyncio.to_thread(_copy_of, folder, url, limits)


async def text_of(folder: Path, url: str, limits: FetchSettings) -> str:
    return await asyncio.to_thread(_text_of, folder, url, limits)


def _text_of(folder: Path, url: str, limits: FetchSettings) -> str:
    copy = _copy_of(folder, url, limits)
    page = read_page(
        copy.body[: limits.max_parsed], url=copy.url, content_type=copy.content_type, with_text=True
    )
    return page.text


def _copy_of(folder: Path, url: str, limits: FetchSettings) -> Copy:
    try:
        with Collection.at(folder) as collection:
            record = collection.record(collection.capture(url).at)
            return _read(record, collection.whole(record), limits)
    except UsageError as error:
        raise Problem(
            Trouble.NOT_ARCHIVED, "its explanation says what became of it: /v1/explain?url=URL"
        ) from error


def _read(record: Record, whole: Record, limits: FetchSettings) -> Copy:
    decoded = decode_body(
        whole.body, whole.header("content-encoding"), limit=limits.max_decoded, max_ratio=limits.max_ratio
    )
    return Copy(
        url=record.url,
        fetched=record.date,
        head=record.head,
        body=whole.body if isinstance(decoded, Undecodable) else decoded.body,
        content_type=whole.header("content-type"),
    )
