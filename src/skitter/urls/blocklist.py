"""One blocklist: which hosts and URLs are never asked for, and by which line. Pure; its file is read elsewhere.

Asked by admission for each new URL and by leasing for each that was admitted earlier. A million hosts take 12 MB,
a sorted run of 8-byte hashes with their line numbers, and 2 to 4 s to read. Never guesses: a line that is neither
a host nor a pattern is a fault of the whole list.
"""

from __future__ import annotations

import re
import warnings
from bisect import bisect_left
from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from skitter.urls.canonical import normalise

_HASH, _LINE = 8, 4
_WIDTH = _HASH + _LINE
_SHOWN = 80
_COMMENT = re.compile(r"(?:\A|\s)#")
# `0.0.0.0 ads.example` of hosts files, where these names stand for the machine itself.
_HOSTS_FILE = re.compile(r"(?:0\.0\.0\.0|127\.0\.0\.1|::1?|fe80::1%lo0|255\.255\.255\.255)\s+(\S+)\Z")
_OWN_NAMES = frozenset(
    "localhost localhost.localdomain local broadcasthost ip6-localhost ip6-loopback 0.0.0.0".split()
)
_PLAIN_NAME = re.compile(r"(?:[a-z0-9_][a-z0-9_-]{0,62}\.)*[a-z_][a-z0-9_-]{0,62}\Z")
_NUMBER = re.compile(r"[\d.]+\Z")

Pattern = tuple[int, str, re.Pattern[str]]


class BadLine(Exception):
    """Its text says which line, and what is wrong with it."""


class Blocklist(msgspec.Struct, frozen=True, kw_only=True):
    """`hosts` is the sorted run. URL patterns are searched one by one only where `any_pattern`, all of them
    together, finds something; expressions each by itself, for they may number their groups and set flags."""

    name: str
    hosts: bytes = b""
    patterns: tuple[Pattern, ...] = ()
    any_pattern: re.Pattern[str] | None = None
    expressions: tuple[Pattern, ...] = ()

    def line_of_host(self, name: str) -> str:
        """The line that blocks a host by name or as a subdomain, in words; empty when none does."""
        if not self.hosts:
            return ""
        while name:
            if line := self._find(name):
                return f"{self.name} line {line}: {name}"
            name = "" if _NUMBER.match(name) else name.partition(".")[2]
        return ""

    def line_of_url(self, url: str) -> str:
        tried = self.expressions
        if self.any_pattern is not None and self.any_pattern.match(url):
            tried = (*self.patterns, *tried)
        found = ((line, text) for line, text, pattern in tried if pattern.search(url))
        return next((f"{self.name} line {line}: {text[:_SHOWN]}" for line, text in found), "")

    def _find(self, name: str) -> int:
        wanted = _hash(name)
        place = bisect_left(range(len(self.hosts) // _WIDTH), wanted, key=self._hash_at) * _WIDTH
        found = self.hosts[place : place + _WIDTH]
        return int.from_bytes(found[_HASH:], "big") if found[:_HASH] == wanted else 0

    def _hash_at(self, place: int) -> bytes:
        return self.hosts[place * _WIDTH : place * _WIDTH + _HASH]


def parse_blocklist(name: str, lines: Iterable[str]) -> Blocklist:
    """`BadLine` names the first line that is neither a comment, a host, a URL pattern nor an expression."""
    hosts: list[bytes] = []
    patterns: list[Pattern] = []
    expressions: list[Pattern] = []
    for number, raw in enumerate(lines, 1):
        text = _said(raw)
        if not text:
            continue
        if "/" not in text:
            if host := _host(name, number, text):
                hosts.append(_hash(host) + number.to_bytes(_LINE, "big"))
        elif len(text) > 2 and text[0] == text[-1] == "/":
            expressions.append((number, text, _compiled(name, number, text[1:-1])))
        else:
            patterns.append((number, text, _compiled(name, number, _expression_of(text))))
    hosts.sort()
    together = "|".join(pattern.pattern for _, _, pattern in patterns)
    return Blocklist(
        name=name,
        hosts=b"".join(hosts),
        patterns=tuple(patterns),
        any_pattern=re.compile(together) if patterns else None,
        expressions=tuple(expressions),
    )


def _said(raw: str) -> str:
    text = raw.strip().lstrip("\ufeff")
    if "#" in text and text[0] != "/" and (comment := _COMMENT.search(text)):
        text = text[: comment.start()].rstrip()
    return "" if text.startswith("!") else text


def _host(name: str, number: int, text: str) -> str:
    """`example.org`, or the same as `*.example.org`, `||example.org^`, `0.0.0.0 example.org`. Empty for the names
    by which a machine calls itself."""
    if row := _HOSTS_FILE.match(text):
        text = row[1]
        if text in _OWN_NAMES:
            return ""
    host = text.removeprefix("||").removesuffix("^").removeprefix("*.").rstrip(".").lower()
    if _PLAIN_NAME.match(host):
        # most of a million lines
        return host
    odd = any(char in host for char in "*@?#\\") or host.split() != [host]
    url = None if odd else normalise(f"http://{host}/")
    found = url[7:-1] if url is not None else ""
    if not found or ":" in found.rpartition("]")[2]:
        raise BadLine(
            f"{name} line {number}: {text[:_SHOWN]!r} is no host, no URL pattern and no /expression/: "
            "correct or remove it"
        )
    return found


def _expression_of(pattern: str) -> str:
    """Matched from the beginning of a URL (whatever its scheme, if none is given), with `*` for anything and a
    `$` at the end for its end: as in robots.txt."""
    head = r"\A" if "://" in pattern else r"\Ahttps?://"
    first, *others = map(re.escape, re.split(r"\*+", pattern.removesuffix("$")))
    last = others.pop() if others and pattern.endswith("$") else None
    # What follows a `*` is taken where it first occurs, for good: no URL can make this go back and forth.
    found = head + first + "".join(f"(?>.*?{piece})" for piece in others if piece)
    if last is not None:
        return found + f".*{last}\\Z"
    return found + (r"\Z" if pattern.endswith("$") else "")


def _compiled(name: str, number: int, expression: str) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(expression)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadLine(
            f"{name} line {number}: {expression[:_SHOWN]!r} is not a regular expression: {error}: "
            "correct or remove it"
        ) from None


def _hash(host: str) -> bytes:
    return blake2b(host.encode(), digest_size=_HASH).digest()
