"""HTML and XHTML: title, links, base, canonical, language and robots directives of one document.

The reader behind `read_page` for the types that most of a crawl consists of: 27 KB with 115 anchors take
350 us, of which the parser, turbohtml, takes 170 (docs/adr/0005-html-parser.md). It answers what elements
there are of one tag from an index, in under 1 us, which is why each kind is asked for by itself.
Nothing here may cost more than linear time on a hostile tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

import ada_url
import turbohtml
from turbohtml import Document, Element, Namespace, Text

from skitter.model import Link
from skitter.parse.charset import FALLBACK, UTF_8, decode, encoding_name, guess
from skitter.parse.content import PageContent, Source, language_tag
from skitter.parse.directives import Directives, read_directives
from skitter.parse.href import clean_href, in_charset, parse_refresh, without_fragment
from skitter.parse.media import XHTML, is_wanted, parse_content_type
from skitter.parse.requisites import requisites
from skitter.parse.text import main_text

_LONGEST_TITLE = 500
_LONGEST_ANCHOR = 200
# Anchors can nest through <object> or SVG, so reading each one's whole subtree is quadratic: 10,000 nested
# ones in 10 MB would take half a minute. This many nodes hold the text of any honest anchor.
_NODES_PER_ANCHOR = 64
_UNICODE = frozenset((UTF_8, "UTF-16LE", "UTF-16BE", "replacement"))
_FOLLOWED_RELS = frozenset(("next", "prev", "alternate", "canonical"))
# XML closes these with a slash; an HTML parser does not, and would take the rest of the page for a script.
_CLOSED_WITH_SLASH = re.compile(
    r"<(script|style|title|textarea|iframe|noscript|a)\b((?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*+)(?<=/)>",
    re.IGNORECASE,
)


class HtmlReader:
    def read(self, source: Source) -> PageContent:
        document, charset = _parse(source)
        base = _base(document, source.url)
        refresh = _refresh(document)
        return PageContent(
            media_type=source.media_type,
            base=base,
            title=_title(document),
            links=_links(document, refresh, source, charset),
            canonical=_resolved(base, _canonical(document), charset),
            language=_language(document) or source.language,
            directives=_directives(document, source),
            charset=charset,
            refresh=_resolved(base, refresh, charset),
            requisites=_requisites(document, source, charset) if source.with_requisites else (),
            # last, because it takes the tree apart
            text=main_text(document, source.body) if source.with_text else "",
        )


def _requisites(document: Document, source: Source, charset: str) -> tuple[str, ...]:
    found = requisites(document, source.max_links)
    return found if charset in _UNICODE else tuple(in_charset(href, charset) for href in found)


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


def _base(document: Document, url: str) -> str:
    """HTML 2.4.3: the first base element with an href; one that cannot be resolved, or leads to data or
    script, counts as none."""
    for element in document.find_all("base"):
        if (href := element.attr("href")) is not None:
            resolved = absolute(url, href)
            return url if resolved.startswith(("data:", "javascript:")) else resolved or url
    return url


def absolute(base: str, href: str) -> str:
    """Empty when the href means nothing on that base."""
    try:
        return str(ada_url.join_url(base, href))
    except (ValueError, UnicodeError):
        return ""


def _resolved(base: str, href: str, charset: str) -> str:
    if not href:
        return ""
    return absolute(base, href if charset in _UNICODE else in_charset(href, charset))


def _title(document: Document) -> str:
    for element in document.find_all("title"):
        if element.namespace is Namespace.HTML:
            return " ".join(element.text[: 4 * _LONGEST_TITLE].split())[:_LONGEST_TITLE]
    return ""


def _language(document: Document) -> str:
    root = document.root
    language = (root.attr("lang") or root.attr("xml:lang") or "") if root is not None else ""
    if not language:
        language = next(_metas(document, "http-equiv", "content-language"), "")
    return language_tag(language)


def _metas(document: Document, attribute: str, *names: str) -> Iterator[str]:
    """The contents of the meta elements whose attribute has one of these (lower-case) values."""
    for element in document.find_all("meta"):
        value = element.attr(attribute)
        if value is not None and value.strip().lower() in names:
            yield element.attr("content") or ""


def _directives(document: Document, source: Source) -> Directives:
    metas = _metas(document, "name", "robots", source.product.lower())
    return read_directives(
        source.robots_tags, islice(metas, 20), product=source.product, signal=source.content_signal
    )


def _refresh(document: Document) -> str:
    """Where the first meta refresh that can be read leads to; empty when to the page itself."""
    for content in _metas(document, "http-equiv", "refresh"):
        if found := parse_refresh(content):
            return clean_href(found[1])
    return ""


def _canonical(document: Document) -> str:
    for element in document.find_all("link"):
        if "canonical" in _tokens(element.attr("rel")) and (href := clean_href(element.attr("href") or "")):
            return href
    return ""


def _tokens(rel: str | None) -> list[str]:
    return rel.lower().split() if rel else []


def _links(document: Document, refresh: str, source: Source, charset: str) -> tuple[Link, ...]:
    """Distinct hrefs, at most `limit`: of head links, then anchors, areas, frames and the refresh, each in
    the page's order. The first text is kept; an occurrence that may be followed wins over a nofollow."""
    found: dict[str, Link] = {}
    limit = source.max_links
    _add_head_links(document, found, limit)
    _add_anchors(document, found, limit, _anchor_text if source.with_anchors else _no_text)
    for tag, attribute in (("area", "href"), ("iframe", "src"), ("frame", "src")):
        for element in document.find_all(tag):
            if href := clean_href(element.attr(attribute) or ""):
                _add(found, Link(href, "", " ".join(_tokens(element.attr("rel"))), tag), limit)
    if refresh:
        _add(found, Link(refresh, "", "", "refresh"), limit)
    if charset in _UNICODE:
        return tuple(found.values())
    return tuple(
        Link(in_charset(link.href, charset), link.text, link.rel, link.tag) for link in found.values()
    )


def _add_head_links(document: Document, found: dict[str, Link], limit: int) -> None:
    for element in document.find_all("link"):
        rel = _tokens(element.attr("rel"))
        if _FOLLOWED_RELS.isdisjoint(rel) or "stylesheet" in rel:
            continue
        # WordPress puts two oEmbed alternates (JSON, XML) on every page; neither is a document.
        declared = parse_content_type(element.attr("type") or "").essence
        if is_wanted(declared) and (href := clean_href(element.attr("href") or "")):
            _add(found, Link(href, "", " ".join(rel), "link"), limit)


def _add_anchors(
    document: Document, found: dict[str, Link], limit: int, text_of: Callable[[Element], str]
) -> None:
    """Most anchors repeat an href or jump within the page: `settled` lets those pass for 0.2 us each."""
    settled: set[str | None] = {""}
    for element in document.iter_elements("a"):
        raw = element.attr("href")
        if raw in settled:
            continue
        if raw is None:
            raw = element.attr("xlink:href") or ""
        elif "#" in raw:
            if raw[0] == "#":
                continue
            raw = without_fragment(raw)
            if raw in settled:
                continue
        rel = element.attr("rel")
        rel = " ".join(_tokens(rel)) if rel else ""
        if not rel or not _is_nofollow(rel):
            settled.add(raw)
        href = clean_href(raw)
        if not href:
            continue
        if href in found:
            if found[href].rel:
                _add(found, Link(href, "", rel, "a"), limit)
        elif len(found) < limit:
            found[href] = Link(href, text_of(element), rel, "a")
        else:
            return


def _add(found: dict[str, Link], link: Link, limit: int) -> None:
    known = found.get(link.href)
    if known is None:
        if len(found) < limit:
            found[link.href] = link
    elif known.rel and _is_nofollow(known.rel) and not _is_nofollow(link.rel):
        found[link.href] = Link(link.href, known.text, link.rel, link.tag)


def _is_nofollow(rel: str) -> bool:
    return "nofollow" in rel.split()


def _no_text(element: Element) -> str:
    return ""


def _anchor_text(element: Element) -> str:
    if len(element) == 1 and type(only := element[0]) is Text:
        text = only.data
    else:
        nodes = islice(element.descendants, _NODES_PER_ANCHOR)
        text = "".join(node.data[: 4 * _LONGEST_ANCHOR] for node in nodes if type(node) is Text)
    return " ".join(text[: 4 * _LONGEST_ANCHOR].split())[:_LONGEST_ANCHOR]
