"""What a robots.txt says to one crawler: read once, asked for every URL.

The frontier parses a host's file when it arrives and asks `decide` before any of its URLs is queued or
leased. RFC 9309 rules; what it leaves open (typos, missing colons, `index.html`) is done as Google's
parser does it. No input may make this raise, and no file may make a question slow (`robots/matching.py`).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable

from skitter.robots.matching import NO_RULE, Ruling, Table

MAX_BYTES = 500 * 1024  # RFC 9309, 2.5: at least 500 KiB must be parsed
MAX_LINE = 2083 * 8 - 1  # Google's limit: a longer line is cut, not ignored
MAX_SITEMAPS = 1000
MAX_SITEMAP_URL = 2083
MAX_SIGNAL = 500
MAX_RULE_TEXT = 300


class Rules:
    """A robots.txt as one product token has to read it.

    `size` counts the patterns held, about 300 bytes each: a cache of these should weigh them by it.
    """

    __slots__ = ("_decoded", "_encoded", "content_signal", "crawl_delay", "sitemaps", "size")

    def __init__(
        self,
        rules: Iterable[tuple[str, Ruling]] = (),
        *,
        crawl_delay: float | None = None,
        sitemaps: tuple[str, ...] = (),
        content_signal: str = "",
    ) -> None:
        encoded = list(rules)
        self._encoded = self._decoded = Table(encoded)
        self.size = len(encoded)
        if any("%" in pattern or "$" in pattern[:-1] for pattern, _ in encoded):
            decoded = [(_decode_pattern(pattern), ruling) for pattern, ruling in encoded]
            self._decoded = self._encoded if decoded == encoded else Table(decoded)
        self.crawl_delay = crawl_delay
        self.sitemaps = sitemaps
        self.content_signal = content_signal

    def decide(self, target: str) -> Ruling:
        """The ruling on a path with query, or on a whole URL, percent-encoded as WHATWG serialises it."""
        if target[:1] != "/":
            target = path_of(target)
        elif "#" in target:
            target = target.partition("#")[0]
        if target == "/robots.txt":  # RFC 9309, 2.2.2
            return NO_RULE
        if self._decoded is self._encoded and "%" not in target:
            return self._encoded.find(target)
        return self._decide_escaped(target)

    def _decide_escaped(self, target: str) -> Ruling:
        # RFC 9309, 2.2.2 has %62 mean the same as b; Google keeps them apart. Only what both views allow is
        # fetched, so neither kind of site owner is surprised.
        target = _upper_escapes(target)
        ruling = self._encoded.find(target)
        if not ruling.allowed:
            return ruling
        decoded = _decode_target(target)
        if decoded == target and self._decoded is self._encoded:
            return ruling
        other = self._decoded.find(decoded)
        return ruling if other.allowed else other


ALLOW_ALL = Rules()

_PATH = re.compile(r"(?:[^/?;#]*://|//)?[^/?;#]*([/?;][^#]*)?")


def path_of(url: str) -> str:
    """Path, parameters and query of a URL, with or without scheme, as Google's matcher takes them."""
    match = _PATH.match(url)
    path = (match and match[1]) or "/"
    return path if path[0] == "/" else "/" + path


# WHATWG escapes in upper case, so this matches nothing in a usual URL.
_LOWER_ESCAPE = re.compile(r"%(?:[a-f][0-9A-Fa-f]|[0-9A-F][a-f])")
# Escapes that mean the same as the character: of RFC 3986, 2.3; of what people write raw into rules and URLs are
# serialised without (space " ' < > \\ ^ ` { | }); and of * and $ (RFC 9309, 2.2.3).
_DECODED = re.compile(r"%(?:2[0247ADE]|3[0-9CE]|4[1-9A-F]|5[0-9ACEF]|6[0-9A-F]|7[0-9A-E])")
# A * and a $ that mean themselves, in patterns and in targets that were decoded.
_LITERAL = {"*": "\ue000", "$": "\ue001"}
_LITERALS = str.maketrans(_LITERAL)
_HIGH = re.compile(r"[\x80-\xff]")


def _upper_escapes(text: str) -> str:
    return _LOWER_ESCAPE.sub(lambda match: match[0].upper(), text)


def _decode_pattern(pattern: str) -> str:
    """A `$` means the end only at the end."""
    return _decode(pattern[:-1].replace("$", _LITERAL["$"]) + pattern[-1])


def _decode_target(target: str) -> str:
    if "*" in target or "$" in target:
        target = target.translate(_LITERALS)
    return _decode(target)


def _decode(text: str) -> str:
    return _DECODED.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    character = chr(int(escape[0][1:], 16))
    return _LITERAL.get(character, character)


def escape_pattern(value: str) -> str:
    """A rule's value (octets as Latin-1) as it is compared: high octets escaped, hex digits upper case."""
    if "%" in value:
        value = _upper_escapes(value)
    return value if value.isascii() else _HIGH.sub(lambda match: f"%{ord(match[0]):02X}", value)


_ALLOW, _DISALLOW, _AGENT, _SITEMAP, _DELAY, _SIGNAL, _UNKNOWN = range(7)
# Google takes a key by how it begins, and forgives these misspellings.
_KEYS = (
    (("user-agent", "useragent", "user agent"), _AGENT),
    (("allow",), _ALLOW),
    (("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"), _DISALLOW),
    (("sitemap", "site-map"), _SITEMAP),
    (("crawl-delay",), _DELAY),
    (("content-signal",), _SIGNAL),
)
_SPACE = " \t\n\v\f\r"
_PRODUCT = re.compile(r"[A-Za-z_-]*")
_TWO_WORDS = re.compile(r"([^ \t]+)[ \t]+([^ \t]+)")
_SECONDS = re.compile(r"[0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15}")


def _kind_of(key: str) -> int:
    key = key.strip(_SPACE).lower()
    return next((kind for starts, kind in _KEYS if key.startswith(starts)), _UNKNOWN)


def _lines(body: bytes) -> list[str]:
    """The lines, octets as Latin-1; a NUL ends a line early, as it does in the C of Google's parser."""
    is_cut, body = len(body) > MAX_BYTES, body[:MAX_BYTES]
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        body = body.decode("utf-16", "replace").encode()
    if is_cut and (cut := max(body.rfind(b"\n"), body.rfind(b"\r"))) >= 0:
        body = body[:cut]
    for byte in (b"\xef", b"\xbb", b"\xbf"):  # also a damaged byte order mark, as Google does
        if not body.startswith(byte):
            break
        body = body[1:]
    if b"\0" in body:
        body = re.sub(rb"\0[^\r\n]*", b"", body)
    # Not str.splitlines, which also breaks at form feeds and NEL.
    return body.decode("latin-1").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _to_text(octets: str) -> str:
    return octets if octets.isascii() else octets.encode("latin-1").decode("utf-8", "replace")


class _Audience:
    """Whom the lines that follow address: grows with user-agent lines, starts anew after a closing line."""

    __slots__ = ("closed", "everyone", "ours")

    def __init__(self) -> None:
        self.ours = self.everyone = self.closed = False

    def add(self, ours: bool, everyone: bool) -> None:
        if self.closed:
            self.ours = self.everyone = self.closed = False
        self.ours |= ours
        self.everyone |= everyone


class _Group:
    """The merged groups of one audience (RFC 9309, 2.2.1)."""

    __slots__ = ("delay", "rules", "signals")

    def __init__(self) -> None:
        self.rules: list[tuple[str, Ruling]] = []
        self.delay: float | None = None
        self.signals: list[str] = []


class _Reader:
    """One pass over the lines, keeping what addresses our product and what addresses `*`.

    Allow and Disallow close a group; other records must not (RFC 9309, 2.2.4). But who writes a
    Crawl-delay under each of several user-agent lines means each for its own, so those records have an
    audience of their own, which they do close.
    """

    def __init__(self, product: str) -> None:
        self._product = product.lower()
        self._kinds: dict[str, int] = {}
        self._addressed = False
        self._ours = _Group()
        self._everyone = _Group()
        self._rule_audience = _Audience()
        self._record_audience = _Audience()
        self._sitemaps: dict[str, None] = {}

    def read(self, number: int, line: str) -> None:
        if len(line) > MAX_LINE:
            line = line[:MAX_LINE]
        if "#" in line:
            line = line.partition("#")[0]
        key, colon, value = line.partition(":")
        if not colon:  # a forgotten colon is forgiven when nothing is ambiguous
            words = _TWO_WORDS.fullmatch(line.strip(_SPACE))
            if words is None:
                return
            key, value = words[1], words[2]
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _kind_of(key)
        self._take(kind, value.strip(_SPACE), number, line)

    def _take(self, kind: int, value: str, number: int, line: str) -> None:
        if kind <= _DISALLOW:
            self._add_rule(kind == _ALLOW, value, number, line)
        elif kind == _AGENT:
            self._address(value)
        elif kind == _SITEMAP:
            self._add_sitemap(value)
        elif kind != _UNKNOWN:
            self._add_record(kind, value)

    def _address(self, value: str) -> None:
        everyone = value[:1] == "*" and (len(value) == 1 or value[1] in _SPACE)
        token = _PRODUCT.match(value)
        ours = bool(token and token[0] and token[0].lower() == self._product)
        self._addressed |= ours
        self._rule_audience.add(ours, everyone)
        self._record_audience.add(ours, everyone)

    def _add_rule(self, allow: bool, value: str, number: int, line: str) -> None:
        self._record_audience.closed = True
        group = self._group(self._rule_audience)
        if group is None:
            return
        self._rule_audience.closed = True
        if not value:
            return
        pattern = escape_pattern(value)
        ruling = Ruling(allow, number, _to_text(line.strip(_SPACE)[:MAX_RULE_TEXT]))
        group.rules.append((pattern, ruling))
        if allow and "/index.htm" in pattern:
            folder, _, page = pattern.rpartition("/")
            if page.startswith("index.htm"):  # Google: index.html is its folder
                group.rules.append((f"{folder}/$", ruling))

    def _add_sitemap(self, value: str) -> None:
        if value and len(value) <= MAX_SITEMAP_URL and len(self._sitemaps) < MAX_SITEMAPS:
            self._sitemaps[_to_text(value)] = None

    def _add_record(self, kind: int, value: str) -> None:
        self._record_audience.closed = True
        group = self._group(self._record_audience)
        if group is None:
            return
        if kind == _SIGNAL:
            group.signals.append(_to_text(value[:MAX_SIGNAL]))
        elif _SECONDS.fullmatch(value):
            group.delay = max(float(value), group.delay or 0.0)

    def _group(self, audience: _Audience) -> _Group | None:
        if audience.ours:
            return self._ours
        return self._everyone if audience.everyone else None

    def rules(self) -> Rules:
        group = self._ours if self._addressed else self._everyone
        return Rules(
            group.rules,
            crawl_delay=group.delay,
            sitemaps=tuple(self._sitemaps),
            content_signal=", ".join(group.signals[:10])[:MAX_SIGNAL],
        )


def parse_robots(body: bytes, product: str) -> Rules:
    """The rules for `product`: those of all its groups, or of `*` when no group names it."""
    reader = _Reader(product)
    for number, line in enumerate(_lines(body), 1):
        reader.read(number, line)
    return reader.rules()
