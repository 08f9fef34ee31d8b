"""Which reader reads which media type, as one value that is handed on. Pure.

Between `read_page` and the readers. The worker asks `accepts` before it keeps a body, so a type that gets a
reader is also fetched. A value never changes: `with_reader` gives another one.
"""

from __future__ import annotations

from collections.abc import Mapping

from skitter.parse.content import PageContent, Reader, Source
from skitter.parse.directives import Directives, read_directives
from skitter.parse.markup.charset import decode
from skitter.parse.markup.css import CSS, CssReader
from skitter.parse.markup.html import HtmlReader
from skitter.parse.media import HTML, PDF, TEXT, XHTML, is_unknown, is_xml_document
from skitter.parse.text import MOST_CHARACTERS


class PlainReader:
    """Text without markup that links: plain text, and XML that is asked for as a page."""

    def read(self, source: Source) -> PageContent:
        text, charset = decode(source.body, source.charset)
        return PageContent(
            media_type=source.media_type,
            base=source.url,
            language=source.language,
            directives=_header_directives(source),
            charset=charset,
            text=text[:MOST_CHARACTERS] if source.with_text else "",
        )


class HeadersReader:
    """For bodies that are archived but not understood here: only the headers are read. A PDF gets its text later,
    from a process of its own: see `parse/pdf.py`."""

    def read(self, source: Source) -> PageContent:
        return PageContent(
            media_type=source.media_type,
            base=source.url,
            language=source.language,
            directives=_header_directives(source),
        )


def _header_directives(source: Source) -> Directives:
    return read_directives(
        source.robots_tags,
        product=source.product,
        signal=source.content_signal,
        tdm=source.tdm,
        tdm_policy=source.tdm_policy,
    )


_plain, _headers = PlainReader(), HeadersReader()


class Readers:
    """`pages` are readers of the types that are fetched as pages. `requisites` are readers of types that are
    fetched only because a page needs them. XML of any other name goes to the plain reader."""

    __slots__ = ("_pages", "_requisites")

    def __init__(self, pages: Mapping[str, Reader], requisites: Mapping[str, Reader] | None = None) -> None:
        self._pages = dict(pages)
        self._requisites = dict(requisites or {})

    def with_reader(self, media_type: str, reader: Reader) -> Readers:
        """The same with a reader for one more type of pages, or another one for a type."""
        return Readers({**self._pages, media_type: reader}, self._requisites)

    def accepts(self, media_type: str) -> bool:
        """Whether a page of this type is worth fetching. A missing type is: the bytes will tell."""
        return media_type in self._pages or is_unknown(media_type) or is_xml_document(media_type)

    def read(self, source: Source) -> PageContent:
        """A type without a reader still has the directives of its headers."""
        return self._find(source.media_type).read(source)

    def _find(self, media_type: str) -> Reader:
        reader = self._pages.get(media_type) or self._requisites.get(media_type)
        if reader is not None:
            return reader
        return _plain if is_xml_document(media_type) else _headers


_html = HtmlReader()
STANDARD = Readers({HTML: _html, XHTML: _html, TEXT: _plain, PDF: _headers}, {CSS: CssReader()})
