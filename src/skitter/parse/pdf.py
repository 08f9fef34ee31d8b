"""What a PDF says, as the child process that reads it reports it, and the page that follows from that. Pure.

Between the child (`worker/reading/pdf_child.py`) and the settling of a URL. What the child says was drawn from
hostile bytes: it is cleaned and bounded here, and nothing of it is trusted to be text of any kind.
"""

from __future__ import annotations

import re

import msgspec

from skitter.model import Link
from skitter.parse.content import PageContent
from skitter.parse.markup.href import clean_href

_LONGEST_TITLE = 500
# pdfium marks a word that is broken over two lines with U+FFFE where its hyphen stood
_BROKEN_WORD = re.compile("\ufffe[ \r\n]*")


class PdfReading(msgspec.Struct, frozen=True, kw_only=True):
    """`reason` says why there is no text, or not all of it; links are the targets of URI annotations."""

    title: str = ""
    text: str = ""
    links: tuple[str, ...] = ()
    pages: int = 0
    reason: str = ""


def with_pdf(page: PageContent, reading: PdfReading, *, max_links: int = 10_000) -> PageContent:
    """The page, whose headers alone could be read, with what its PDF says."""
    hrefs = dict.fromkeys(filter(None, map(clean_href, reading.links)))
    links = tuple(Link(href, "", "", "pdf") for href in list(hrefs)[:max_links])
    title = " ".join(reading.title.replace("\0", "").split())[:_LONGEST_TITLE]
    return msgspec.structs.replace(page, title=title, text=_clean(reading.text), links=links)


def _clean(text: str) -> str:
    lines = (line.strip(" \t\0") for line in _BROKEN_WORD.sub("", text).splitlines())
    return "\n".join(filter(None, lines))
