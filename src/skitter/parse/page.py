"""Reading a page: from bytes, headers and URL to what the page says. Pure.

`read_page` stands between the fetch and the settling of a URL: it decides what the body really is and hands
it to the reader registered for that media type. A body of a kind that nobody reads still has its headers'
directives. It never raises on what the web sent, and follows nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from skitter.parse.charset import decode
from skitter.parse.content import PageContent, Reader, Source, language_tag
from skitter.parse.css import CSS, CssReader
from skitter.parse.directives import Directives, read_directives
from skitter.parse.html import HtmlReader
from skitter.parse.html_parts import absolute
from skitter.parse.link_header import canonical_in
from skitter.parse.media import HTML, TEXT, XHTML, is_wanted, is_xml, parse_content_type, sniff
from skitter.parse.text import MOST_CHARACTERS

__all__ = ["READERS", "Directives", "PageContent", "read_page"]


class PlainReader:
    """Text without markup that links: plain text, and for now XML and feeds."""

    def read(self, source: Source) -> PageContent:
        text, charset = decode(source.body, source.charset)
        return PageContent(
            media_type=source.media_type,
            base=source.url,
            language=source.language,
            directives=_said_in_headers(source),
            charset=charset,
            text=text[:MOST_CHARACTERS] if source.with_text else "",
        )


class UnreadReader:
    """What is archived but not understood here. A PDF gets its text from elsewhere: see `parse/pdf.py`."""

    def read(self, source: Source) -> PageContent:
        said = _said_in_headers(source)
        return PageContent(
            media_type=source.media_type, base=source.url, language=source.language, directives=said
        )


def _said_in_headers(source: Source) -> Directives:
    return read_directives(source.robots_tags, product=source.product, signal=source.content_signal)


_html, _plain, _unread = HtmlReader(), PlainReader(), UnreadReader()

READERS: dict[str, Reader] = {HTML: _html, XHTML: _html, TEXT: _plain, CSS: CssReader()}
"""By media type; XML of any other name goes to the plain reader."""


def reader_of(media_type: str) -> Reader:
    by_name = READERS.get(media_type)
    if by_name is not None:
        return by_name
    return _plain if is_xml(media_type) and is_wanted(media_type) else _unread


def read_page(
    body: bytes,
    *,
    url: str,
    content_type: str,
    content_language: str = "",
    robots_tags: Sequence[str] = (),
    content_signal: str = "",
    link_header: str = "",
    product: str = "skitter",
    max_links: int = 10_000,
    with_text: bool = False,
    with_anchors: bool = True,
    with_requisites: bool = False,
) -> PageContent:
    """`body` is free of content coding. The text and the texts of anchors cost 10 us each: a caller that only
    follows links does without."""
    declared = parse_content_type(content_type)
    media_type = sniff(declared.essence, body)
    source = Source(
        body=body,
        url=url,
        media_type=media_type,
        charset=declared.charset,
        language=language_tag(content_language) if content_language else "",
        robots_tags=robots_tags,
        content_signal=content_signal,
        product=product,
        max_links=max_links,
        with_text=with_text,
        with_anchors=with_anchors,
        with_requisites=with_requisites,
    )
    page = reader_of(media_type).read(source)
    if not link_header or page.canonical or not (said := canonical_in(link_header)):
        return page
    return msgspec.structs.replace(page, canonical=absolute(url, said))
