"""Which URLs belong to the crawl: the rules that admission asks, in order, with the rule that decided.

Scope is relative to the seeds. Each seed drops *anchors* (its host, its registrable domain, its path prefix);
a URL is in scope when one of the anchors that could admit it was dropped. Keeping the anchors is the
frontier's affair, so memory here does not grow with the number of seeds.
"""

from __future__ import annotations

import re
from functools import lru_cache

from publicsuffixlist import PublicSuffixList

from skitter.model import Discovered, Refusal, Via
from skitter.schedule.kinds import KINDS
from skitter.settings import CrawlSettings

SCOPES = ("host", "domain", "prefix", "any")

Refused = tuple[Refusal, str]

_LITERAL = re.compile(r"\[|\d+\.\d+\.\d+\.\d+(?::\d+)?\Z")


@lru_cache(maxsize=2)
def _suffixes(encoded: bool) -> PublicSuffixList:
    # loaded on first use: 10 ms that `--help` need not pay, and 40 more with its names encoded as in URLs
    return PublicSuffixList(accept_encoded_idn=encoded)


@lru_cache(maxsize=65_536)
def registrable_domain(authority: str) -> str:
    """`www.example.co.uk:8080` -> `example.co.uk`; an address or a bare suffix stands for itself."""
    if _LITERAL.match(authority):
        return authority
    name = authority.partition(":")[0].rstrip(".")
    return _suffixes("xn--" in name.lower()).privatesuffix(name) or name


def is_public_suffix(name: str) -> bool:
    """Whether strangers register names below it: `org`, `co.uk`, `github.io`."""
    return not _LITERAL.match(name) and _suffixes("xn--" in name).privatesuffix(name) is None


def is_domain(name: str) -> bool:
    """Whether a name ends as registered domains do: `example.org`, and neither `seeds.txt` nor `org`."""
    known = _known_suffixes("xn--" in name).privatesuffix(name)
    return known is not None


@lru_cache(maxsize=2)
def _known_suffixes(encoded: bool) -> PublicSuffixList:
    return PublicSuffixList(accept_unknown=False, accept_encoded_idn=encoded)


def _authority(url: str) -> tuple[str, int]:
    start = url.index("//") + 2
    end = url.index("/", start)
    return url[start:end], end


def _folder(url: str, path_start: int) -> str:
    path = url[path_start:].partition("?")[0]
    return path[: path.rindex("/") + 1]


def anchors_of(seed_url: str) -> tuple[str, ...]:
    """What a seed brings into scope, for every kind of scope: a later run may use another."""
    authority, end = _authority(seed_url)
    return (
        f"host {authority}",
        f"domain {registrable_domain(authority)}",
        f"prefix {authority}{_folder(seed_url, end)}",
    )


class Scope:
    def __init__(self, settings: CrawlSettings, max_redirects: int, tunnel: int = 0) -> None:
        self.tunnel = tunnel
        self._settings = settings
        self.is_any = settings.scope == "any"
        self.is_by_host = settings.scope in ("host", "domain")
        self.is_by_prefix = settings.scope == "prefix"
        self.max_depth = settings.max_depth
        self.kind = settings.scope
        self._max_redirects = max_redirects
        self._include = [re.compile(pattern) for pattern in settings.include]
        self._exclude = [re.compile(pattern) for pattern in settings.exclude]
        endings = "|".join(re.escape(e) for e in settings.skip_extensions)
        self._skipped = re.compile(rf"\.({endings})(?:\?|\Z)", re.IGNORECASE) if endings else None
        self._last_parts = frozenset(e.rpartition(".")[2].lower() for e in settings.skip_extensions)
        self._is_ascii = endings.isascii()

    def refusal(self, found: Discovered) -> Refused | None:
        """The rule that refuses this URL whatever the seeds were, if one does."""
        settings = self._settings
        url = found.url
        if len(url) > settings.max_url_length:
            return Refusal.LENGTH, f"{len(url)} characters, crawl.max_url_length is {settings.max_url_length}"
        if found.hops > self._max_redirects:
            return (
                Refusal.REDIRECTS,
                f"{found.hops} redirects in a row, fetch.max_redirects is {self._max_redirects}",
            )
        if found.via is Via.SEED:
            return None
        if not KINDS[found.kind].is_scoped:
            return self._excluded(url)
        if found.depth > settings.max_depth:
            return Refusal.DEPTH, f"{found.depth} links from a seed, crawl.max_depth is {settings.max_depth}"
        if found.nesting > self.tunnel and KINDS[found.kind].is_page:
            words = f"{found.nesting} pages off the topic in a row lead to it, focus.tunnel is {self.tunnel}"
            return Refusal.OFF_TOPIC, words
        return self._pattern_refusal(url)

    def passes(self, url: str) -> bool:
        """Whether a link that is not too deep is not refused by `refusal`."""
        if len(url) > self._settings.max_url_length:
            return False
        if self._exclude or self._include or self._may_be_skipped(url):
            return self._pattern_refusal(url) is None
        return True

    def _pattern_refusal(self, url: str) -> Refused | None:
        if self._skipped and (match := self._skipped.search(url, url.index("/", 8))):
            return Refusal.EXTENSION, f".{match[1].lower()} is in crawl.skip_extensions"
        if self._exclude and (refused := self._excluded(url)):
            return refused
        if self._include and not any(pattern.search(url) for pattern in self._include):
            return Refusal.EXCLUDED, "matches none of the include patterns"
        return None

    def _may_be_skipped(self, url: str) -> bool:
        """A quick check by what follows the last dot: False only where the pattern would not match."""
        if "?" in url or not (self._is_ascii and url.isascii()):
            return True
        return url[url.rfind(".") + 1 :].lower() in self._last_parts

    def _excluded(self, url: str) -> Refused | None:
        for pattern in self._exclude:
            if pattern.search(url):
                return Refusal.EXCLUDED, f"matches exclude {pattern.pattern!r}"
        return None

    def anchors_for(self, url: str) -> tuple[str, ...]:
        """The anchors any one of which brings this URL into scope; empty when everything is in scope."""
        kind = self._settings.scope
        if kind == "any":
            return ()
        authority, end = _authority(url)
        if kind == "host":
            return (f"host {authority}",)
        if kind == "domain":
            return (f"domain {registrable_domain(authority)}",)
        return tuple(f"prefix {authority}{folder}" for folder in _folders_above(url, end))

    def is_asked_for(self, anchor: str) -> bool:
        """Whether an anchor is of the kind that brings URLs into this scope."""
        return anchor.partition(" ")[0] == self.kind

    def outside(self, url: str) -> Refused:
        """The refusal of a URL none of whose anchors exists."""
        kind = self._settings.scope
        named = {"host": "host", "domain": "registrable domain", "prefix": "host and path"}[kind]
        return Refusal.SCOPE, f"scope is {kind} and no seed has this {named} ({_authority(url)[0]})"


def split_folders(url: str) -> tuple[str, list[str]]:
    """The host and port of a URL, and the folders that it lies in, the root first."""
    authority, end = _authority(url)
    return authority, _folders_above(url, end)


def _folders_above(url: str, path_start: int) -> list[str]:
    folder = _folder(url, path_start)
    cuts = [i + 1 for i, char in enumerate(folder) if char == "/"]
    return [folder[:cut] for cut in cuts]
