"""What a reader gets and gives: the values between `read_page` and the reader of each media type.

Values only. A reader is one object per kind of document. It is pure, and hostile bytes must lead to a dull
result, never to an exception.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from skitter.model import Link
from skitter.parse.directives import NONE_SAID, Directives

_LANGUAGE = re.compile(
    r"[A-Za-z]{1,8}(?:[-_][A-Za-z0-9]{1,8}){0,7}"
)  # RFC 5646, 2.1, and the underscore of many


def _accept_all(media_type: str) -> bool:
    return True


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A body without its content coding, and what the headers of the response say of it. `accepts` says of a
    media type whether links that declare it are worth following."""

    body: bytes
    url: str
    media_type: str
    charset: str = ""
    language: str = ""
    robots_tags: Sequence[str] = ()
    content_signal: str = ""
    tdm: str = ""
    tdm_policy: str = ""
    product: str = "skitter"
    max_links: int = 10_000
    with_text: bool = False
    with_anchors: bool = True
    with_requisites: bool = False
    with_sitemaps: bool = False
    with_feeds: bool = False
    accepts: Callable[[str], bool] = _accept_all


class PageContent(msgspec.Struct, frozen=True, kw_only=True):
    """What a page says. The hrefs of links are as the page states them, to be resolved against `base`; rels are
    lower-case words. `base`, `canonical` and `refresh` are absolute. `media_type` is the effective one, after
    sniffing. `text` is the main text. `language` is a tag as the page or its header has it (`en`, `de-CH`).
    `requisites` are the hrefs of what the page needs to look as it does, `sitemaps` and `feeds` of files that
    list URLs of its site, if they were asked for."""

    media_type: str
    base: str
    title: str = ""
    links: tuple[Link, ...] = ()
    canonical: str = ""
    language: str = ""
    directives: Directives = NONE_SAID
    charset: str = ""
    refresh: str = ""
    text: str = ""
    requisites: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()
    feeds: tuple[str, ...] = ()


class Reader(Protocol):
    """Reads documents of one kind."""

    def read(self, source: Source) -> PageContent: ...


def language_tag(said: str) -> str:
    """The first of the languages that a document or its header names; empty when that is no language tag."""
    found = said.partition(",")[0].strip()
    return found.replace("_", "-") if _LANGUAGE.fullmatch(found) else ""
