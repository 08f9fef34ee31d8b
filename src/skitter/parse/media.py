"""The media type of a response: its Content-Type as WHATWG reads it, and what its first bytes show.

Between the fetch and the reading of a page: `parse_content_type` reads the header, before there is a body;
`sniff` decides again with the first bytes at hand. Neither trusts the server, and neither fails: a type that
cannot be understood is the empty type.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

HTML = "text/html"
XHTML = "application/xhtml+xml"
TEXT = "text/plain"
XML = "text/xml"
RSS = "application/rss+xml"
ATOM = "application/atom+xml"
PDF = "application/pdf"
BINARY = "application/octet-stream"

_SPACE = "\t\n\r "
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_QUOTABLE = re.compile(r"[\t -~\x80-\xff]*")
# MIME Sniffing 4.4, steps 7 to 11: a name up to ; or =, then a quoted value (junk after it is skipped) or a
# bare one. The quantifiers are possessive: a header of 64 KB of backslashes must cost linear time.
_PARAMETER = re.compile(
    r";[\t\n\r ]*+(?P<name>[^;=]*+)"
    r"(?:=(?:\"(?P<quoted>(?:[^\"\\]|\\.)*+\\?)(?:\"[^;]*+)?|(?P<bare>[^;]*+)))?",
    re.DOTALL,
)
# Fetch, "get, decode, and split": commas inside quoted strings do not separate, and a quote may stay open.
_LIST_MEMBER = re.compile(r"((?:[^\",]++|\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z))*+)(?:,|\Z)", re.DOTALL)
_CACHED_LENGTH = 200


class MediaType(msgspec.Struct, frozen=True):
    """A parsed Content-Type; `essence` is empty when there was none that could be read."""

    essence: str = ""
    charset: str = ""
    parameters: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return self.essence + "".join(f";{name}={_quoted(value)}" for name, value in self.parameters)


def _quoted(value: str) -> str:
    if _TOKEN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def parse_content_type(value: str) -> MediaType:
    """The type of a response (Fetch, "extract a MIME type"); several header lines come joined with commas."""
    if len(value) > _CACHED_LENGTH:
        return _extract(value)
    return _extract_cached(value)


def _extract(value: str) -> MediaType:
    found = MediaType()
    essence = charset = ""
    for member in _LIST_MEMBER.finditer(value):
        media = parse_media_type(member[1].strip("\t "))
        if media is None or media.essence == "*/*":
            continue
        if media.essence != essence:
            essence, charset = media.essence, media.charset
        elif charset and "charset" not in dict(media.parameters):
            media = MediaType(essence, charset, (*media.parameters, ("charset", charset)))
        found = media
    return found


# A crawl sees the same few values over and over.
_extract_cached = lru_cache(maxsize=1024)(_extract)


def parse_media_type(text: str) -> MediaType | None:
    """MIME Sniffing 4.4, "parse a MIME type"; `None` is its failure."""
    text = text.strip(_SPACE)
    head, semicolon, rest = text.partition(";")
    kind, slash, subtype = head.rstrip(_SPACE).partition("/")
    if not slash or not _TOKEN.fullmatch(kind) or not _TOKEN.fullmatch(subtype):
        return None
    parameters = _parameters(semicolon + rest)
    return MediaType(f"{kind}/{subtype}".lower(), parameters.get("charset", ""), tuple(parameters.items()))


def _parameters(text: str) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for found in _PARAMETER.finditer(text):
        name, quoted, bare = found.group("name", "quoted", "bare")
        if quoted is not None:
            value = re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)
        elif bare:
            value = bare.rstrip(_SPACE)
            if not value:
                continue
        else:
            continue
        # Checked before it is lower-cased: the Kelvin sign would turn into a k.
        if _TOKEN.fullmatch(name) and _QUOTABLE.fullmatch(value):
            parameters.setdefault(name.lower(), value)
    return parameters


LOOKED_AT = 1445  # bytes, MIME Sniffing 5.2
_UNKNOWN = frozenset(("", "*/*", "unknown/unknown", "application/unknown"))


def is_xml(essence: str) -> bool:
    return essence in ("text/xml", "application/xml") or essence.endswith("+xml")


def is_xml_document(essence: str) -> bool:
    """XML that may have text or links: no drawing and no model."""
    return is_xml(essence) and not essence.startswith(("image/", "model/"))


def is_unknown(essence: str) -> bool:
    """Whether the header says nothing of the type."""
    return essence in _UNKNOWN


# MIME Sniffing 7.1: these start an HTML document when a space or > follows; a comment needs neither.
_HTML_START = re.compile(
    rb"[\t\n\x0c\r ]*(?:<!--|<(?:!DOCTYPE HTML|HTML|HEAD|SCRIPT|IFRAME|H1|DIV|FONT|TABLE|A|STYLE|TITLE|B|BODY"
    rb"|BR|P)[ >])",
    re.IGNORECASE,
)
_PLAIN_HTML = re.compile(rb"\s*<!doctype html[^>]*+>\s*<html[\s>]", re.IGNORECASE)
_XML_START = re.compile(rb"[\t\n\x0c\r ]*<\?xml")
_BINARY_BYTE = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_BYTE_ORDER_MARKS = (b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf")
# MIME Sniffing 6: what starts like this is no text. Two letters (`BM`, a bitmap) are too little to go by.
_SIGNATURES = (
    (b"%PDF-", PDF),
    (b"%!PS-Adobe-", "application/postscript"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"\x00\x00\x02\x00", "image/x-icon"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/x-gzip"),
    (b"Rar!\x1a\x07", "application/x-rar-compressed"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"OggS\x00", "application/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"MThd\x00\x00\x00\x06", "audio/midi"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"\x00\x01\x00\x00", "font/ttf"),
    (b"OTTO", "font/otf"),
    (b"ttcf", "font/collection"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"\x00asm", "application/wasm"),
)
_FIRST_BYTES = tuple(first for first, _ in _SIGNATURES)
_CONTAINERS = {b"WEBP": "image/webp", b"WAVE": "audio/wave", b"AVI ": "video/avi", b"AIFF": "audio/aiff"}
# What may stand before a root element: a byte order mark, the XML declaration, comments, a doctype, processing
# instructions. Bounded, so that a page of comments costs one pass over the bytes looked at.
_ROOT = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:[\t\n\x0c\r ]++|<!--.*?-->|<\?.*?\?>|<![^>\[]*(?:\[[^\]]*\][^>]*)?>)*+"
    rb"<(rss|feed|rdf:RDF|html)[\s>]",
    re.DOTALL | re.IGNORECASE,
)


def sniff(essence: str, body: bytes) -> str:
    """The effective type of a body, from what its headers said and how it starts (MIME Sniffing 7).

    What is labelled text/plain stays text, however much it looks like HTML: browsers show it as text too.
    """
    start = body[:LOOKED_AT]
    if essence == HTML:
        # b"<!" starts no signature, and b"<html" right after the doctype is no feed
        if _PLAIN_HTML.match(start):
            return HTML
        return _signature(start) or _feed(start) or HTML
    if essence in _UNKNOWN:
        return _unknown(start)
    if essence == TEXT:
        return _text_or_binary(start)
    if essence in ("text/xml", "application/xml"):
        return _signature(start) or _feed(start) or (XHTML if _root(start) == b"html" else essence)
    if essence == XHTML:
        return _signature(start) or essence
    return essence


def _unknown(start: bytes) -> str:
    if _HTML_START.match(start):
        return HTML
    if _XML_START.match(start):
        return sniff(XML, start)
    return _text_or_binary(start)


def _text_or_binary(start: bytes) -> str:
    """MIME Sniffing 7.2, and a signature counts even without a binary byte: `%PDF-` is no prose."""
    if start.startswith(_BYTE_ORDER_MARKS):
        return TEXT
    if found := _signature(start):
        return found
    return BINARY if _BINARY_BYTE.search(start) else TEXT


def _signature(start: bytes) -> str:
    """The type that the first bytes name. Servers do label PDF, images and gzip as HTML; browsers then
    show rubbish, and a crawler would index it. A page about `ID3 tags` has no binary byte, a song has."""
    if start.startswith(_FIRST_BYTES):
        found = next(essence for first, essence in _SIGNATURES if start.startswith(first))
    elif start[4:8] == b"ftyp":
        found = "video/mp4"
    elif start.startswith((b"RIFF", b"FORM")):
        found = _CONTAINERS.get(start[8:12], "")
    else:
        return ""
    return found if start[:1] == b"%" or _BINARY_BYTE.search(start) else ""


def _root(start: bytes) -> bytes:
    found = _ROOT.match(start)
    return found[1].lower() if found else b""


def _feed(start: bytes) -> str:
    """MIME Sniffing 7.3: a feed that is served as HTML or as nameless XML."""
    root = _root(start)
    if root == b"rdf:rdf":
        names = b"http://www.w3.org/1999/02/22-rdf-syntax-ns#", b"http://purl.org/rss/1.0/"
        return RSS if all(name in start for name in names) else ""
    return {b"rss": RSS, b"feed": ATOM}.get(root, "")
