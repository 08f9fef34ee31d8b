"""Sitemaps, indexes, RSS and Atom in XML, by expat: nothing is kept but the entry that is being read. Pure.

Under `SitemapReader`. Elements are told by their place and their local name, because wrong, missing and
undeclared namespaces are common. A document type ends the reading, so there are no entities to expand. The depth
of nesting and the length of one tag are bounded: expat itself would keep both whole (docs/adr/0025-sitemaps.md).
"""

from __future__ import annotations

from collections.abc import Callable
from xml.parsers import expat

import msgspec

from skitter.parse.dates import parse_date, parse_w3c
from skitter.parse.sitemaps.sitemap import Entry, Format, Limits, PieceReader, Problem

_DEEPEST = 64
_LONGEST_TOKEN = 1_000_000
_LONGEST_TEXT = 8192
_FREQUENCIES = frozenset(("always", "hourly", "daily", "weekly", "monthly", "yearly", "never"))
_SITEMAP_NAMESPACES = frozenset(
    (
        "http://www.sitemaps.org/schemas/sitemap/0.9",
        "https://www.sitemaps.org/schemas/sitemap/0.9",
    )
)


class _Grammar(msgspec.Struct, frozen=True):
    """Of one format: the element of an entry, and which elements in it are read, by local name."""

    format: Format
    item: str
    fields: frozenset[str]
    own_prefix: bool = True
    """Fields have the prefix of the root, if it has one; in RDF they have none."""


_GRAMMARS = {
    "urlset": _Grammar(Format.SITEMAP, "url", frozenset(("loc", "lastmod", "changefreq", "priority"))),
    "sitemapindex": _Grammar(Format.INDEX, "sitemap", frozenset(("loc", "lastmod"))),
    "rss": _Grammar(Format.RSS, "item", frozenset(("link", "guid", "pubDate", "dc:date"))),
    "RDF": _Grammar(Format.RSS, "item", frozenset(("link", "dc:date")), own_prefix=False),
    "feed": _Grammar(Format.ATOM, "entry", frozenset(("link", "updated", "published", "modified"))),
}
_DEFAULT = _Grammar(Format.UNKNOWN, "", frozenset())


class XmlReader(PieceReader):
    """States: before the root, outside an entry, in an entry, in a field of it (text is kept only there)."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        # Not by namespace: an undeclared prefix would end the file. Always UTF-8: the text was decoded before.
        self._parser = parser = expat.ParserCreate("UTF-8")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._doctype
        if limits.allow_doctype:
            # with it, and without `Expand`, no internal entity is expanded; else there can be none
            parser.DefaultHandler = _ignore
        self._fed = 0
        self._depth = 0
        self._prefix = ""
        self._grammar = _DEFAULT
        self._fields: frozenset[str] = frozenset()
        self._item_depth = 0
        self._field = ""
        self._field_depth = 0
        self._text: list[str] = []
        self._size = 0
        self._found: dict[str, str] = {}
        self._alternates: list[str] = []

    def feed(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        self._fed += len(data)
        self._parse(data, False)
        if self._fed - self._parser.CurrentByteIndex > _LONGEST_TOKEN:
            raise Problem(f"a tag or text of more than {_LONGEST_TOKEN:,} bytes")

    def close(self) -> None:
        self._parse(b"", True)

    def _parse(self, data: bytes, is_last: bool) -> None:
        try:
            self._parser.Parse(data, is_last)
        except expat.ExpatError as error:
            self._end_item()
            line, words = error.lineno, expat.ErrorString(error.code)
            raise Problem(f"broken XML in line {line}: {words}") from None

    # -- what expat calls

    def _doctype(self, *_: object) -> None:
        if not self.limits.allow_doctype:
            raise Problem("it has a document type, which no sitemap needs and many an attack does")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth = depth = self._depth + 1
        if self._field:
            if depth > _DEEPEST:
                raise Problem(f"elements nested more than {_DEEPEST} deep")
            return
        local = name[len(self._prefix) :] if self._prefix and name.startswith(self._prefix) else name
        if self._item_depth and depth == self._item_depth + 1 and local in self._fields:
            self._start_field(local, attributes)
        elif depth == 1:
            self._begin(name, attributes)
        elif depth > _DEEPEST:
            raise Problem(f"elements nested more than {_DEEPEST} deep")
        elif not self._item_depth:
            if local == self._grammar.item:
                self._start_item(depth, attributes)
        elif self._grammar.format is Format.SITEMAP:
            self._start_extension(name.rpartition(":")[2], attributes)

    def _end(self, name: str) -> None:
        depth, self._depth = self._depth, self._depth - 1
        if self._field and depth == self._field_depth:
            self._end_field()
        elif depth == self._item_depth:
            self._end_item()

    def _on_text(self, text: str) -> None:
        if self._size < _LONGEST_TEXT:
            self._text.append(text)
            self._size += len(text)

    # -- what it means

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        prefix, colon, local = name.rpartition(":")
        grammar = _GRAMMARS.get(local)
        if grammar is None:
            what = "an HTML page" if local.lower() == "html" else f"XML of another kind ({local[:40]})"
            raise Problem(f"no sitemap but {what}")
        if grammar.own_prefix:
            self._prefix = prefix + colon
        if self.limits.strict_namespace and grammar.format in (Format.SITEMAP, Format.INDEX):
            namespace = attributes.get(f"xmlns:{prefix}" if prefix else "xmlns", "")
            if namespace not in _SITEMAP_NAMESPACES:
                raise Problem(f"namespace {namespace[:100]!r} is not the standard's")
        self._grammar, self.format, self._fields = grammar, grammar.format, grammar.fields

    def _start_item(self, depth: int, attributes: dict[str, str]) -> None:
        self._item_depth = depth
        self._listen()
        if about := attributes.get("rdf:about"):
            self._found["about"] = about

    def _start_field(self, name: str, attributes: dict[str, str]) -> None:
        if name == "link" and self._grammar.format is Format.ATOM:
            if attributes.get("rel", "alternate") == "alternate" and "link" not in self._found:
                self._found["link"] = attributes.get("href", "").strip()
            return
        if name == "loc" and "loc" in self._found:
            self._flush()
        if self._text:
            self._take_bare_text()
        self._field, self._field_depth = name, self._depth
        self._parser.CharacterDataHandler = self._on_text

    def _start_extension(self, local: str, attributes: dict[str, str]) -> None:
        """News have a date of their own, and pages name their other languages. Pictures are no pages."""
        if local == "publication_date":
            self._take_bare_text()
            self._field, self._field_depth = local, self._depth
            self._listen()
        elif local == "link" and attributes.get("rel") == "alternate" and (href := attributes.get("href")):
            self._alternates.append(href.strip())

    def _listen(self) -> None:
        """Between fields nobody listens to text: most of it is white space."""
        self._text, self._size = [], 0
        self._parser.CharacterDataHandler = self._on_text

    def _end_field(self) -> None:
        self._found.setdefault(self._field, "".join(self._text).strip())
        self._field = ""
        self._text, self._size = [], 0
        self._parser.CharacterDataHandler = None

    def _take_bare_text(self) -> None:
        """Some write the URL into the entry itself, without a `loc`."""
        if self._text and (bare := "".join(self._text).strip()):
            self._found.setdefault("bare", bare)
        self._text, self._size = [], 0

    def _end_item(self) -> None:
        if self._field:
            # the file ends within it: a whole `loc` counts, half a date does not
            if self._field == "loc":
                self._found.setdefault("loc", "".join(self._text).strip())
            self._field = ""
        self._take_bare_text()
        if self._item_depth:
            self._flush()
        self._item_depth = 0
        self._parser.CharacterDataHandler = None

    def _flush(self) -> None:
        found, self._found = self._found, {}
        alternates, self._alternates = self._alternates, []
        self.add(_MAKERS[self._grammar.format](found))
        for href in alternates:
            self.add(Entry(href, is_alternate=True))


def _ignore(data: str) -> None:
    pass


def _sitemap_entry(found: dict[str, str]) -> Entry:
    changefreq = found.get("changefreq", "").lower()
    return Entry(
        found.get("loc") or _url_in(found.get("bare", "")),
        parse_w3c(lastmod) if (lastmod := found.get("lastmod")) else None,
        changefreq if changefreq in _FREQUENCIES else "",
        _priority(priority) if (priority := found.get("priority")) else None,
        parse_w3c(published) if (published := found.get("publication_date")) else None,
    )


def _priority(text: str) -> float | None:
    try:
        value = float(text) if len(text) <= 20 else -1.0
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _rss_entry(found: dict[str, str]) -> Entry:
    loc = found.get("link") or _url_in(found.get("guid", "")) or _url_in(found.get("about", ""))
    return Entry(loc, parse_date(found.get("pubDate") or found.get("dc:date", "")))


def _atom_entry(found: dict[str, str]) -> Entry:
    at = found.get("updated") or found.get("modified") or found.get("published", "")
    return Entry(found.get("link", ""), parse_date(at))


def _url_in(text: str) -> str:
    return text if text.startswith(("http://", "https://")) else ""


_MAKERS: dict[Format, Callable[[dict[str, str]], Entry]] = {
    Format.SITEMAP: _sitemap_entry,
    Format.INDEX: _sitemap_entry,
    Format.RSS: _rss_entry,
    Format.ATOM: _atom_entry,
}
