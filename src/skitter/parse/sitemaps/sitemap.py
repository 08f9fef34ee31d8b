"""Reading a sitemap or feed piece by piece: what it is, and the entries that it names. Pure.

Between the fetch of a `sitemap` or `feed` task and its links. The format is told by the content, never by name or
type: sitemap and index (0.9 XML), text, RSS, Atom, JSON Feed, each perhaps in gzip. Memory and time are bounded
whatever comes: bytes, entries, nesting, the length of one tag. Never raises, and never resolves an entity.
"""

from __future__ import annotations

import codecs
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from enum import StrEnum

import msgspec

from skitter.parse.markup.charset import UTF_8, encoding_name

GZIP = b"\x1f\x8b\x08"
PIECE = 65_536
# A short file of blanks may compress 1,000 fold; only what is also large is suspicious.
_ALWAYS_INFLATED = 1_048_576
_MOST_RATIO = 250
_MOST_MEMBERS = 1000
LONGEST_URL = 2048
_LOOKED_AT = 1024
_MARKS = ((b"\xef\xbb\xbf", UTF_8), (b"\xfe\xff", "UTF-16BE"), (b"\xff\xfe", "UTF-16LE"))
_PYTHON_NAMES = {
    "UTF-16LE": "utf-16-le",
    "UTF-16BE": "utf-16-be",
    "GBK": "gb18030",
    "Big5": "big5hkscs",
    "Shift_JIS": "cp932",
    "EUC-KR": "cp949",
    "ISO-8859-8-I": "iso-8859-8",
    "windows-874": "cp874",
    "macintosh": "mac-roman",
    "x-mac-cyrillic": "mac-cyrillic",
}
_ENCODING = re.compile(rb"<\?xml[^>]{0,200}?\sencoding\s*=\s*[\"']([A-Za-z0-9._:-]{1,40})[\"']")
# XML 1.0 2.2 forbids them, and they are in files all the same.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_LINE = re.compile(r"https?://\S+|[a-z0-9-]+(?:\.[a-z0-9-]+)+(?:/\S*)?", re.IGNORECASE)


class Format(StrEnum):
    """What a file turned out to be."""

    UNKNOWN = "unknown"
    SITEMAP = "sitemap"
    INDEX = "index"
    TEXT = "text"
    RSS = "rss"
    ATOM = "atom"
    JSON_FEED = "json feed"


_ROOT = re.compile(
    rb"[^<]{0,100}(?:<\?[^>]{0,200}\?>\s*|<!--.{0,500}?-->\s*)*<(?:[a-z]+:)?(?:urlset|sitemapindex)[\s>]",
    re.DOTALL,
)


def looks_like_sitemap(body: bytes) -> bool:
    """Whether the root element of an XML file is that of a sitemap, in a charset like ASCII."""
    return b"<" in body[:100] and _ROOT.match(body[:_LOOKED_AT]) is not None


FEEDS = frozenset((Format.RSS, Format.ATOM, Format.JSON_FEED))


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One URL that a file names, as it states it. `lastmod` and `published` (of news and videos) in seconds since
    the epoch, `priority` from 0 to 1. `is_alternate`: another language of the entry before it."""

    loc: str
    lastmod: float | None = None
    changefreq: str = ""
    priority: float | None = None
    published: float | None = None
    is_alternate: bool = False


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What of a file is read at most; the numbers are the standard's."""

    bytes: int = 52_428_800
    """After decompression."""
    entries: int = 50_000
    allow_doctype: bool = False
    """Else a file with one is not read. Entities that it declares are never resolved."""
    strict_namespace: bool = False
    """Only the namespaces of the standards."""


class Problem(Exception):
    """Ends the reading of a file; never leaves the reader. The text says why."""


class PieceReader(ABC):
    """What reads one format. Text comes in pieces; entries are taken by who calls."""

    format = Format.UNKNOWN

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.entries: list[Entry] = []
        self._count = 0

    @abstractmethod
    def feed(self, text: str) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def add(self, entry: Entry) -> None:
        if not entry.loc or len(entry.loc) > LONGEST_URL:
            return
        if self._count >= self.limits.entries:
            raise Problem(f"more than {self.limits.entries:,} URLs: the rest is not read")
        self._count += 1
        self.entries.append(entry)


class SitemapReader:
    """Reads one file: `feed` its bytes, `close` it, and take the entries of each.

    `problem` says why a file was not read, or not to its end; entries that were read before count all the same,
    except of a file with a document type.
    """

    def __init__(self, limits: Limits | None = None, charset: str = "") -> None:
        self._limits = limits or Limits()
        self._charset = charset
        self._start = b""
        self._room = self._limits.bytes
        self._decoder: codecs.IncrementalDecoder | None = None
        self._reader: PieceReader | None = None
        self._start_is_blank = True
        self.problem = ""

    @property
    def format(self) -> Format:
        return Format.UNKNOWN if self._reader is None else self._reader.format

    def feed(self, piece: bytes) -> list[Entry]:
        """The entries that this piece completes."""
        return self._guarded(piece, is_last=False)

    def close(self) -> list[Entry]:
        return self._guarded(b"", is_last=True)

    def _guarded(self, piece: bytes, *, is_last: bool) -> list[Entry]:
        if not self.problem:
            try:
                self._take(piece, is_last)
            except Problem as problem:
                self.problem = str(problem)
        entries: list[Entry] = []
        if self._reader is not None:
            entries, self._reader.entries = self._reader.entries, []
        return entries

    def _take(self, piece: bytes, is_last: bool) -> None:
        whole = len(piece) <= self._room
        piece = piece if whole else piece[: self._room]
        self._room -= len(piece)
        if self._reader is None:
            self._start += piece
            if len(self._start) < _LOOKED_AT and not is_last and whole:
                return
            piece, self._start = self._start, b""
            self._begin(piece)
        assert self._reader is not None
        assert self._decoder is not None
        text = self._decoder.decode(piece, is_last)
        if self._start_is_blank:
            text = text.lstrip("\ufeff \t\r\n\f\v\xa0")
            self._start_is_blank = not text
        self._reader.feed(_FORBIDDEN.sub("", text))
        if not whole:
            raise Problem(f"longer than {self._limits.bytes:,} bytes: the rest is not read")
        if is_last:
            self._reader.close()

    def _begin(self, start: bytes) -> None:
        """Chooses the charset and the format by the first bytes."""
        name = _charset_of(start, self._charset)
        make = _decoder_of(name)
        text = make("replace").decode(start).lstrip("\ufeff \t\r\n\f\v\xa0")
        self._reader = _reader_for(text, self._limits)
        self._decoder = make("replace")


def _reader_for(text: str, limits: Limits) -> PieceReader:
    # here, because both build on what is above
    from skitter.parse.sitemaps.feed import JsonFeedReader
    from skitter.parse.sitemaps.sitemap_xml import XmlReader

    if text.startswith("<"):
        return XmlReader(limits)
    if text.startswith("{"):
        return JsonFeedReader(limits)
    if not text:
        raise Problem("it is empty")
    return TextReader(limits)


def _decoder_of(name: str) -> Callable[[str], codecs.IncrementalDecoder]:
    """The decoders of the Encoding Standard take no pieces; Python's own differ from them in characters that no
    URL is made of."""
    try:
        return codecs.getincrementaldecoder(_PYTHON_NAMES.get(name, name.lower()))
    except LookupError:
        return codecs.getincrementaldecoder("utf-8")


def _charset_of(start: bytes, header: str) -> str:
    for mark, name in _MARKS:
        if start.startswith(mark):
            return name
    if start[:2] in (b"<\0", b"\0<"):
        return "UTF-16LE" if start[0] else "UTF-16BE"
    declared = _ENCODING.search(start[:_LOOKED_AT])
    name = encoding_name(header) or (encoding_name(declared[1].decode()) if declared else "")
    return UTF_8 if not name or name.startswith("UTF-16") or name == "replacement" else name


class TextReader(PieceReader):
    """One URL a line. A file whose first lines are none is no sitemap."""

    format = Format.TEXT
    _PATIENCE = 10

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._rest = ""
        self._other = 0

    def feed(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).replace("\r", "\n").split("\n")
        for line in lines:
            self._read(line)
        # a line without an end must not grow with the file
        self._rest = self._rest[: 2 * LONGEST_URL]

    def close(self) -> None:
        self._read(self._rest)
        if not self._count:
            raise Problem("no sitemap: neither XML nor a line that is a URL")

    def _read(self, line: str) -> None:
        line = line.strip()
        if not line:
            return
        if _LINE.fullmatch(line):
            self.add(Entry(line))
        elif not self._count:
            self._other += 1
            if self._other >= self._PATIENCE:
                raise Problem("no sitemap: neither XML nor a line that is a URL")


def within_ratio(limits: Limits, body: bytes) -> Limits:
    """What of this body is read at most: a small file in gzip may not become a large one."""
    if not body.startswith(GZIP):
        return limits
    return msgspec.structs.replace(limits, bytes=min(limits.bytes, _most_inflated(len(body))))


def _most_inflated(size: int) -> int:
    return max(_ALWAYS_INFLATED, size * _MOST_RATIO)


def pieces_of(body: bytes, limit: int = Limits().bytes) -> Iterator[bytes]:
    """A body in pieces, without gzip, if it is in gzip by its first bytes; twice at most, as a .gz file that its
    server compresses once more is. Ends a little behind `limit`, or where the stream is damaged."""
    whole = (body[at : at + PIECE] for at in range(0, len(body), PIECE))
    if not body.startswith(GZIP):
        return whole
    return _inflated_again(_inflated(whole, limit, len(body)), limit, len(body))


def _inflated_again(pieces: Iterator[bytes], limit: int, size: int) -> Iterator[bytes]:
    first = next(pieces, b"")
    chained = _chain(first, pieces)
    return _inflated(chained, limit, size) if first.startswith(GZIP) else chained


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _inflated(pieces: Iterator[bytes], limit: int, size: int) -> Iterator[bytes]:
    room = min(limit, _most_inflated(size)) + 1
    stream, members = zlib.decompressobj(31), 0
    for piece in pieces:
        data = piece
        while data or stream.unconsumed_tail:
            try:
                output = stream.decompress(stream.unconsumed_tail + data, PIECE)
            except zlib.error:
                return
            data = b""
            if output:
                yield output
                room -= len(output)
                if room <= 0:
                    return
            if stream.eof:
                # RFC 1952 2.2: members follow each other
                data, members = stream.unused_data, members + 1
                stream = zlib.decompressobj(31)
                if members > _MOST_MEMBERS or not data.lstrip(b"\0"):
                    data = b""
            elif not output:
                break
