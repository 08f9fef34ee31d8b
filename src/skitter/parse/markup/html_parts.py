"""The parts of an HTML page that matter, and the content made of them. The rules of links are here. Pure.

Between the two ways of reading a page (`html.py` chooses) and `read_page`. Values are as the document states
them, with character references resolved; None is an attribute that is not there. Nothing here knows a parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import ada_url
import msgspec

from skitter.model import Link
from skitter.parse.content import PageContent, Source, language_tag
from skitter.parse.directives import NONE_SAID, Directives, read_directives
from skitter.parse.markup.charset import UTF_8
from skitter.parse.markup.href import clean_href, in_charset, parse_refresh, without_fragment
from skitter.parse.media import parse_content_type

LONGEST_TITLE = 500
LONGEST_ANCHOR = 200
# This many characters are read for each one that is kept: the rest is white space, or nobody will miss it.
READ_FOR_EACH = 4
# Anchors can nest through <object> or SVG, so reading each one's whole subtree is quadratic: 10,000 nested
# ones in 10 MB would take half a minute. This many nodes hold the text of any honest anchor.
NODES_PER_ANCHOR = 64
UNICODE = frozenset((UTF_8, "UTF-16LE", "UTF-16BE", "replacement"))
_FOLLOWED_RELS = frozenset(("next", "prev", "alternate", "canonical"))
_FEED_TYPES = frozenset(("application/rss+xml", "application/atom+xml", "application/feed+json"))
# Of each page that names them: a site has a few, and says so on every page.
_MOST_FILES = 10

Triple = tuple[str | None, str | None, str | None]


class Parts(msgspec.Struct, frozen=True):
    """Each in the document's order. Anchors whose href was there before may be left out; see `_add_anchors`."""

    title: str | None
    base: str | None
    lang: str | None
    xml_lang: str | None
    metas: Sequence[Triple]
    """name, http-equiv, content: at least of those that name robots, us, a refresh or a language"""
    head_links: Sequence[Triple]
    """href, rel, type: at least of those with a rel that is followed"""
    anchors: Iterable[Link]
    """with hrefs as `follow` gives them, none of them empty"""
    areas: Sequence[Triple]
    """href, rel"""
    frames: Sequence[tuple[str, Sequence[Triple]]]
    """by tag, where there are any: src, rel"""
    text: str
    distinct: bool = False
    """whether all anchors may be followed, and no two have the same href"""
    requisites: tuple[str, ...] = ()


def page_of(parts: Parts, source: Source, charset: str) -> PageContent:
    """Most pages have no base, no metas that matter and no head links: these are skipped early."""
    base = source.url if parts.base is None else _base(parts.base, source.url)
    metas = parts.metas
    refresh = _refresh(metas) if metas else ""
    canonical = _canonical(parts.head_links) if parts.head_links else ""
    return PageContent(
        media_type=source.media_type,
        base=base,
        title=parts.title or "",
        links=_links(parts, refresh, source, charset),
        canonical=_resolved(base, canonical, charset) if canonical else "",
        language=_language(parts) or source.language,
        directives=_directives(metas, source),
        charset=charset,
        refresh=_resolved(base, refresh, charset) if refresh else "",
        requisites=parts.requisites,
        sitemaps=_sitemaps(parts.head_links) if source.with_sitemaps and parts.head_links else (),
        feeds=_feeds(parts.head_links) if source.with_feeds and parts.head_links else (),
        text=parts.text,
    )


def _sitemaps(head_links: Sequence[Triple]) -> tuple[str, ...]:
    hrefs = [clean_href(raw or "") for raw, rel, _ in head_links if "sitemap" in _tokens(rel)]
    return tuple(filter(None, hrefs))[:_MOST_FILES]


def _feeds(head_links: Sequence[Triple]) -> tuple[str, ...]:
    hrefs = [clean_href(raw or "") for raw, rel, type_ in head_links if is_feed(_tokens(rel), type_)]
    return tuple(filter(None, hrefs))[:_MOST_FILES]


def is_feed(rel: Sequence[str], type_: str | None) -> bool:
    return bool(type_) and "alternate" in rel and parse_content_type(type_ or "").essence in _FEED_TYPES


def _base(href: str, url: str) -> str:
    """HTML 2.4.3: the first base element with an href; one that cannot be resolved, or leads to data or
    script, counts as none."""
    resolved = absolute(url, href)
    return url if resolved.startswith(("data:", "javascript:")) else resolved or url


def absolute(base: str, href: str) -> str:
    """Empty when the href means nothing on that base."""
    try:
        return str(ada_url.join_url(base, href))
    except (ValueError, UnicodeError):
        return ""


def _resolved(base: str, href: str, charset: str) -> str:
    return absolute(base, href if charset in UNICODE else in_charset(href, charset))


def _language(parts: Parts) -> str:
    said = parts.lang or parts.xml_lang
    if not said and parts.metas:
        said = next(_contents(parts.metas, 1, ("content-language",)), "")
    return language_tag(said) if said else ""


def _contents(metas: Sequence[Triple], attribute: int, names: tuple[str, ...]) -> Iterator[str]:
    """The contents of the meta elements whose attribute has one of these (lower-case) values."""
    for meta in metas:
        value = meta[attribute]
        if value is not None and value.strip().lower() in names:
            yield meta[2] or ""


def _directives(metas: Sequence[Triple], source: Source) -> Directives:
    if not metas and not source.robots_tags and not source.content_signal and not source.tdm:
        return NONE_SAID
    said = _contents(metas, 0, ("robots", source.product.lower()))
    tdm, policy = source.tdm, source.tdm_policy
    if may_reserve_mining(source) and (reserved := [*islice(_contents(metas, 0, ("tdm-reservation",)), 20)]):
        # of a header and several elements the strictest counts
        tdm = max([tdm, *map(str.strip, reserved)], key=lambda value: (value in ("0", "1"), value))
        policy = next(_contents(metas, 0, ("tdm-policy",)), policy)
    return read_directives(
        source.robots_tags,
        islice(said, 20),
        product=source.product,
        signal=source.content_signal,
        tdm=tdm,
        tdm_policy=policy,
    )


def may_reserve_mining(source: Source) -> bool:
    """Whether a meta element of the head may say so: the pass in C keeps only those that name robots."""
    end = source.body.find(b"</head")
    return source.body.find(b"tdm-reservation", 0, end if end >= 0 else len(source.body)) >= 0


def _refresh(metas: Sequence[Triple]) -> str:
    """The target of the first meta refresh that can be read; empty when it is the page itself."""
    for content in _contents(metas, 1, ("refresh",)):
        if found := parse_refresh(content):
            return clean_href(found[1])
    return ""


def _canonical(head_links: Sequence[Triple]) -> str:
    for raw, rel, _ in head_links:
        if "canonical" in _tokens(rel) and (href := clean_href(raw or "")):
            return href
    return ""


def _tokens(rel: str | None) -> list[str]:
    return rel.lower().split() if rel else []


def _links(parts: Parts, refresh: str, source: Source, charset: str) -> tuple[Link, ...]:
    """Distinct hrefs, at most `max_links`: of head links, then anchors, areas, frames and the refresh, each
    in the page's order. The first text is kept; a link that may be followed wins over a nofollow."""
    found: dict[str, Link] = {}
    limit = source.max_links
    if parts.distinct and not (parts.head_links or parts.areas or parts.frames or refresh):
        only = tuple(parts.anchors)
        return only[:limit] if charset in UNICODE else _in_charset(only[:limit], charset)
    _add_head_links(parts.head_links, found, source)
    _add_anchors(parts.anchors, found, limit)
    for tag, elements in (("area", parts.areas), *parts.frames):
        for raw, rel, _ in elements:
            if href := clean_href(raw or ""):
                _add(found, Link(href, "", words(rel), tag), limit)
    if refresh:
        _add(found, Link(refresh, "", "", "refresh"), limit)
    links = tuple(found.values())
    return links if charset in UNICODE else _in_charset(links, charset)


def _in_charset(links: Sequence[Link], charset: str) -> tuple[Link, ...]:
    return tuple(Link(in_charset(link.href, charset), link.text, link.rel, link.tag) for link in links)


def _add_head_links(head_links: Sequence[Triple], found: dict[str, Link], source: Source) -> None:
    for raw, said, type_ in head_links:
        rel = _tokens(said)
        if _FOLLOWED_RELS.isdisjoint(rel) or "stylesheet" in rel:
            continue
        if source.with_feeds and is_feed(rel, type_):
            continue
        # WordPress puts two oEmbed alternates (JSON, XML) on every page; neither is a document.
        declared = parse_content_type(type_ or "").essence
        if source.accepts(declared) and (href := clean_href(raw or "")):
            _add(found, Link(href, "", " ".join(rel), "link"), source.max_links)


def _add_anchors(anchors: Iterable[Link], found: dict[str, Link], limit: int) -> None:
    """A repeated href changes nothing, unless this link may be followed and the earlier ones may not."""
    for link in anchors:
        known = found.get(link.href)
        if known is None:
            if len(found) >= limit:
                return
            found[link.href] = link
        elif known.rel:
            _add(found, Link(link.href, "", link.rel, "a"), limit)


def _add(found: dict[str, Link], link: Link, limit: int) -> None:
    known = found.get(link.href)
    if known is None:
        if len(found) < limit:
            found[link.href] = link
    elif known.rel and is_nofollow(known.rel) and not is_nofollow(link.rel):
        found[link.href] = Link(link.href, known.text, link.rel, link.tag)


def follow(raw: str) -> str:
    """What an anchor's href leads to; empty when nobody follows it."""
    return clean_href(without_fragment(raw) if "#" in raw else raw)


def words(rel: str | None) -> str:
    return " ".join(_tokens(rel)) if rel else ""


def is_nofollow(rel: str) -> bool:
    return "nofollow" in rel.split()


def collapse(text: str, most: int) -> str:
    return " ".join(text[: READ_FOR_EACH * most].split())[:most]
