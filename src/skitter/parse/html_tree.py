"""HTML by its tree: turbohtml builds what a browser would, and is asked for the elements that matter. Pure.

Defines what a page says, and reads the pages that the kernel in C leaves alone: see `html.py`. The tree answers
what elements there are of one tag from an index, in under 1 us, which is why each kind is asked for by itself.
Nothing here may cost more than linear time on a hostile tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

import turbohtml
from turbohtml import Document, Element, Namespace, Text

from skitter.model import Link
from skitter.parse.charset import FALLBACK, decode, encoding_name, guess
from skitter.parse.content import PageContent, Source
from skitter.parse.href import in_charset, without_fragment
from skitter.parse.html_parts import (
    LONGEST_ANCHOR,
    LONGEST_TITLE,
    NODES_PER_ANCHOR,
    READ_FOR_EACH,
    UNICODE,
    Parts,
    Triple,
    collapsed,
    follow,
    is_nofollow,
    page_of,
    words,
)
from skitter.parse.media import XHTML
from skitter.parse.requisites import requisites
from skitter.parse.text import main_text

# XML closes these with a slash; an HTML parser does not, and would take the rest of the page for a script.
_CLOSED_WITH_SLASH = re.compile(
    r"<(script|style|title|textarea|iframe|noscript|a)\b((?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*+)(?<=/)>",
    re.IGNORECASE,
)


class TreeReader:
    def read(self, source: Source) -> PageContent:
        document, charset = _parse(source)
        root = document.root
        parts = Parts(
            title=_title(document),
            base=_base(document),
            lang=root.attr("lang") if root is not None else None,
            xml_lang=root.attr("xml:lang") if root is not None else None,
            metas=_stated(document, "meta", "name", "http-equiv", "content"),
            head_links=_stated(document, "link", "href", "rel", "type"),
            anchors=_anchors(document, _anchor_text if source.with_anchors else _no_text),
            areas=_stated(document, "area", "href", "rel"),
            frames=[(tag, of) for tag in ("iframe", "frame") if (of := _stated(document, tag, "src", "rel"))],
            text=main_text(document) if source.with_text else "",
            requisites=_requisites(document, source, charset) if source.with_requisites else (),
        )
        return page_of(parts, source, charset)


def requisites_of(source: Source) -> tuple[str, ...]:
    """What the page needs to look as it does: for a tree only, whoever reads the rest."""
    document, charset = _parse(source)
    return _requisites(document, source, charset)


def _parse(source: Source) -> tuple[Document, str]:
    if source.media_type == XHTML:
        text, charset = decode(source.body, source.charset)
        return turbohtml.parse(_CLOSED_WITH_SLASH.sub(r"<\1\2></\1>", text), positions=False), charset
    body, name = source.body, encoding_name(source.charset)
    document = turbohtml.parse(body, encoding=name or None, positions=False)
    if document.encoding_confidence == "tentative" and document.encoding == FALLBACK:
        guessed = guess(body)
        if guessed != FALLBACK:
            document = turbohtml.parse(body, encoding=guessed, positions=False)
    return document, document.encoding or FALLBACK


def _requisites(document: Document, source: Source, charset: str) -> tuple[str, ...]:
    found = requisites(document, source.max_links)
    return found if charset in UNICODE else tuple(in_charset(href, charset) for href in found)


def _title(document: Document) -> str:
    for element in document.find_all("title"):
        if element.namespace is Namespace.HTML:
            return collapsed(element.text, LONGEST_TITLE)
    return ""


def _base(document: Document) -> str | None:
    hrefs = (element.attr("href") for element in document.find_all("base"))
    return next((href for href in hrefs if href is not None), None)


def _stated(document: Document, tag: str, first: str, second: str, third: str = "") -> list[Triple]:
    return [
        (element.attr(first), element.attr(second), element.attr(third) if third else None)
        for element in document.find_all(tag)
    ]


def _anchors(document: Document, text_of: Callable[[Element], str]) -> Iterator[Link]:
    """Most anchors repeat an href or jump within the page: `settled` lets those pass for 0.2 us each."""
    settled: set[str | None] = {""}
    for element in document.iter_elements("a"):
        raw = element.attr("href")
        if raw in settled:
            continue
        if raw is None:
            raw = element.attr("xlink:href") or ""
        elif "#" in raw:
            raw = without_fragment(raw)
            if raw in settled:
                continue
        rel = words(element.attr("rel"))
        if not rel or not is_nofollow(rel):
            settled.add(raw)
        if href := follow(raw):
            yield Link(href, text_of(element), rel, "a")


def _no_text(element: Element) -> str:
    return ""


def _anchor_text(element: Element) -> str:
    if len(element) == 1 and type(only := element[0]) is Text:
        text = only.data
    else:
        nodes = islice(element.descendants, NODES_PER_ANCHOR)
        text = "".join(node.data[: READ_FOR_EACH * LONGEST_ANCHOR] for node in nodes if type(node) is Text)
    return collapsed(text, LONGEST_ANCHOR)
