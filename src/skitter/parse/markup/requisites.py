"""What an HTML page needs to look as it did: its stylesheets, images, scripts, fonts, icons and media.

Beside the reading of links, and only when a crawl asks for it. Addresses are as the page states them, each once.
Frames are links and not listed here. Must be called before the tree is changed by reading its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from turbohtml import Document, Element

from skitter.parse.markup.css import references
from skitter.parse.markup.href import clean_href

_ATTRIBUTES = (
    ("script", "src"),
    ("img", "src"),
    ("source", "src"),
    ("video", "src"),
    ("video", "poster"),
    ("audio", "src"),
    ("track", "src"),
    ("embed", "src"),
    ("object", "data"),
    ("body", "background"),
    ("image", "href"),
    ("image", "xlink:href"),
)
_SETS = (("img", "srcset"), ("source", "srcset"), ("link", "imagesrcset"))
# Where scripts keep the address of an image until it is scrolled to: a quarter of real pages has such images.
_LAZY = ("data-src", "data-original", "data-lazy-src")
_LAZY_SETS = ("data-srcset", "data-lazy-srcset")
_LAZY_TAGS = ("img", "source", "video")
_NEEDED_RELS = frozenset(("stylesheet", "icon", "apple-touch-icon", "apple-touch-icon-precomposed"))
_LOADED_EARLY = frozenset(("preload", "modulepreload"))
# What a preload may name that is no part of the page: a document of its own, or what a script makes of it.
_NOT_SHOWN = ("document", "fetch")
# HTML 4.8.4.2.1: an address is a run without spaces and loses the commas at its end; then descriptors up to a
# comma that no parenthesis holds. Matched end to end, never searched for: commas alone would cost quadratic time.
_CANDIDATE = re.compile(r"[\s,]*+(\S++)(?:(?<=,)|(?:[^,(]++|\([^)]*+\)?+)*+,?)")


def requisites(document: Document, most: int) -> tuple[str, ...]:
    """At most `most` addresses: style first, for a page without it is not the page."""
    found: dict[str, None] = {}
    for raw in _stated(document):
        if href := clean_href(raw):
            found[href] = None
            if len(found) >= most:
                break
    return tuple(found)


def _stated(document: Document) -> Iterator[str]:
    for element in document.find_all("link"):
        if _is_needed(element):
            yield element.attr("href") or ""
    for element in document.find_all("style"):
        yield from references(element.text)
    for tag, attribute in _ATTRIBUTES:
        for element in document.find_all(tag):
            if value := element.attr(attribute):
                yield value
    for tag, attribute in _SETS:
        for element in document.find_all(tag):
            if value := element.attr(attribute):
                yield from candidates(value)
    for tag in _LAZY_TAGS:
        for element in document.find_all(tag):
            yield from _lazy(element)
    for element in document.find_all("input"):
        if (element.attr("type") or "").lower() == "image":
            yield element.attr("src") or ""
    for element in document.select("[style]"):
        yield from references(element.attr("style") or "")


def _lazy(element: Element) -> Iterator[str]:
    for attribute in _LAZY:
        if (value := element.attr(attribute)) and "{" not in value:  # a script fills in what braces stand for
            yield value
    for attribute in _LAZY_SETS:
        if (value := element.attr(attribute)) and "{" not in value:
            yield from candidates(value)


def _is_needed(link: Element) -> bool:
    rel = (link.attr("rel") or "").lower().split()
    if not _NEEDED_RELS.isdisjoint(rel):
        return True
    return not _LOADED_EARLY.isdisjoint(rel) and (link.attr("as") or "").lower() not in _NOT_SHOWN


def candidates(srcset: str) -> Iterator[str]:
    """All addresses of a srcset: which size or density a reader will see is not known."""
    at = 0
    while found := _CANDIDATE.match(srcset, at):
        at = found.end()
        if address := found[1].rstrip(","):
            yield address
