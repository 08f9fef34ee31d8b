"""HTML by its tree: turbohtml builds what a browser would, and is asked for the elements that matter. Pure.

Defines what a page says, and reads the pages that the kernel in C does not: see `html.py`. The tree has an
index of elements by tag, which is why each kind is asked for by itself. Nothing here may cost more than
linear time on a hostile tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain, islice

import turbohtml
from turbohtml import Document, Element, Namespace, Text

from skitter.model import Link
from skitter.parse.content import PageContent, Source
from skitter.parse.markup.charset import FALLBACK, decode, encoding_name, guess
from skitter.parse.markup.href import in_charset, without_fragment
from skitter.parse.markup.html_parts import (
    LONGEST_ANCHOR,
    LONGEST_TITLE,
    NODES_PER_ANCHOR,
    READ_FOR_EACH,
    UNICODE,
    Parts,
    Triple,
    collapse,
    follow,
    is_nofollow,
    page_of,
    words,
)
from skitter.parse.markup.requisites import requisites
from skitter.parse.media import XHTML
from skitter.parse.text import main_text

# XML closes these with a slash; an HTML parser does not, and would take the rest of the page for a script.
_CLOSED_WITH_SLASH = re.compile(
    r"<(script|style|title|textarea|iframe|noscript|a)\b((?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*+)(?<=/)>",
    re.IGNORECASE,
)
# A template that the parser makes a shadow root of shows its content, links and all. The parser would put it out
# of reach, so the attribute gets another name. Bounded, so that a page of half tags costs one pass.
_SHADOW = re.compile(rb"(<template\b[^>]{0,500}?\s)shadowrootmode(?=\s*=)", re.IGNORECASE)
_SHADOW_NAME = "data-shadowrootmode"


class TreeReader:
    def read(self, source: Source) -> PageContent:
        document, charset = parse_tree(source)
        root = document.root
        page = _Elements(document)
        without_frames = [page, *_in_noframes(page)]
        parts = Parts(
            title=_title(page),
            base=_base(page),
            lang=root.attr("lang") if root is not None else None,
            xml_lang=root.attr("xml:lang") if root is not None else None,
            metas=page.stated("meta", "name", "http-equiv", "content"),
            head_links=page.stated("link", "href", "rel", "type"),
            anchors=_anchors(without_frames, _anchor_text if source.with_anchors else _no_text),
            areas=[area for elements in without_frames for area in elements.stated("area", "href", "rel")],
            frames=[(tag, of) for tag in ("iframe", "frame") if (of := page.stated(tag, "src", "rel"))],
            text=main_text(document, page.in_templates) if source.with_text else "",
            requisites=_requisites(document, source, charset) if source.with_requisites else (),
        )
        return page_of(parts, source, charset)


class _Elements:
    """The elements of a document by tag, without those in templates: they are no part of the page until a script
    makes a copy of them."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.in_templates = in_templates(document)

    def of(self, tag: str) -> Iterator[Element]:
        hidden = self.in_templates
        for element in self._document.iter_elements(tag):
            if not hidden or element not in hidden:
                yield element

    def stated(self, tag: str, first: str, second: str, third: str = "") -> list[Triple]:
        return [
            (element.attr(first), element.attr(second), element.attr(third) if third else None)
            for element in self.of(tag)
        ]


def in_templates(document: Document) -> frozenset[Element]:
    """Outer templates come first, and hold all that inner ones do: nothing is looked at twice."""
    found: set[Element] = set()
    for template in document.find_all("template"):
        if template in found or template.namespace is not Namespace.HTML or _is_shown(template):
            continue
        found.update(node for node in template.descendants if isinstance(node, Element))
    return frozenset(found)


def _is_shown(template: Element) -> bool:
    return (template.attr(_SHADOW_NAME) or "").lower() in ("open", "closed")


def _in_noframes(page: _Elements) -> list[_Elements]:
    """What `noframes` elements say to browsers without frames, and to us. To the parser it is text."""
    said = [element.text for element in page.of("noframes")]
    return [_Elements(turbohtml.parse("\n".join(said), positions=False))] if said else []


def requisites_of(source: Source) -> tuple[str, ...]:
    """What the page needs to look as it does. Only a tree can tell, whoever reads the rest of the page."""
    document, charset = parse_tree(source)
    return _requisites(document, source, charset)


def parse_document(source: Source) -> Document:
    """The tree that a page is read from."""
    return parse_tree(source)[0]


def parse_tree(source: Source) -> tuple[Document, str]:
    """The tree of a page, and the name of the encoding it was read with."""
    if source.media_type == XHTML:
        text, charset = decode(source.body, source.charset)
        return turbohtml.parse(_CLOSED_WITH_SLASH.sub(r"<\1\2></\1>", text), positions=False), charset
    body, name = source.body, encoding_name(source.charset)
    if b"shadow" in body.lower():
        body = _SHADOW.sub(rb"\1" + _SHADOW_NAME.encode(), body)
    document = turbohtml.parse(body, encoding=name or None, positions=False)
    if document.encoding_confidence == "tentative" and document.encoding == FALLBACK:
        guessed = guess(body)
        if guessed != FALLBACK:
            document = turbohtml.parse(body, encoding=guessed, positions=False)
    return document, document.encoding or FALLBACK


def _requisites(document: Document, source: Source, charset: str) -> tuple[str, ...]:
    found = requisites(document, source.max_links)
    return found if charset in UNICODE else tuple(in_charset(href, charset) for href in found)


def _title(page: _Elements) -> str:
    for element in page.of("title"):
        if element.namespace is Namespace.HTML:
            return collapse(element.text, LONGEST_TITLE)
    return ""


def _base(page: _Elements) -> str | None:
    hrefs = (element.attr("href") for element in page.of("base"))
    return next((href for href in hrefs if href is not None), None)


def _anchors(pages: list[_Elements], text_of: Callable[[Element], str]) -> Iterator[Link]:
    """Most anchors repeat an href or jump within the page: those in `settled` are skipped."""
    settled: set[str | None] = {""}
    for element in chain.from_iterable(page.of("a") for page in pages):
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
    return collapse(text, LONGEST_ANCHOR)
