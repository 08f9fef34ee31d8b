"""Reading a page: from bytes, headers and URL to what the page says. Pure.

`read_page` stands between the fetch and the settling of a URL: it decides what the body really is and hands it to
the reader of that media type (`readers.py`). It never raises on what the web sent, and follows nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from skitter.parse.content import PageContent, Source, language_tag
from skitter.parse.directives import Directives
from skitter.parse.link_header import canonical_in, files_in
from skitter.parse.markup.html_parts import absolute
from skitter.parse.media import parse_content_type, sniff
from skitter.parse.readers import STANDARD, Readers

__all__ = ["Directives", "PageContent", "read_page"]


def read_page(
    body: bytes,
    *,
    url: str,
    content_type: str,
    content_language: str = "",
    robots_tags: Sequence[str] = (),
    content_signal: str = "",
    tdm: str = "",
    tdm_policy: str = "",
    link_header: str = "",
    product: str = "skitter",
    max_links: int = 10_000,
    with_text: bool = False,
    with_anchors: bool = True,
    with_requisites: bool = False,
    with_sitemaps: bool = False,
    with_feeds: bool = False,
    readers: Readers = STANDARD,
) -> PageContent:
    """`body` is free of content coding. The text and the texts of anchors cost time: a caller that only follows
    links does without them."""
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
        tdm=tdm,
        tdm_policy=tdm_policy,
        product=product,
        max_links=max_links,
        with_text=with_text,
        with_anchors=with_anchors,
        with_requisites=with_requisites,
        with_sitemaps=with_sitemaps,
        with_feeds=with_feeds,
        accepts=readers.accepts,
    )
    page = readers.read(source)
    return _with_links(page, source, link_header) if link_header else page


def _with_links(page: PageContent, source: Source, header: str) -> PageContent:
    """What the headers say beside the page; the page's own word comes first."""
    canonical = page.canonical or ((said := canonical_in(header)) and absolute(source.url, said))
    sitemaps, feeds = files_in(header)
    named = [absolute(source.url, href) for href in sitemaps] if source.with_sitemaps else []
    news = [absolute(source.url, href) for href in feeds] if source.with_feeds else []
    if canonical == page.canonical and not named and not news:
        return page
    return msgspec.structs.replace(
        page, canonical=canonical, sitemaps=(*page.sitemaps, *named), feeds=(*page.feeds, *news)
    )
