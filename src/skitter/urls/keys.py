"""What a URL means: the canonical form whose hash is its dedup key, by the rules of `[keys]`.

Used wherever a URL becomes a `Discovered` or is looked up: one `Keys` a crawl, made of its settings and handed on
by the wiring. Only the key follows these rules; what is fetched stays what the page said. A fold too many loses a
page for good, one too few costs a request; so by default only what never makes another page is folded. Never
decides whether a URL is wanted. The form of a form is that form.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b
from importlib.resources import files

from skitter.model import Host, UrlKey
from skitter.settings import KeySettings
from skitter.urls.canonical import host_id, normalise

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# Escapes, a % that begins none, and what RFC 3986 wants escaped and WHATWG leaves raw in paths or queries.
_ESCAPE = re.compile(r"%(?:[0-9A-Fa-f]{2})?|[\"<>\\^`{|}]")
_RAW = re.compile(r"[%\"<>\\^`{|}]")
# Servers put these into links themselves, and nobody names anything else so.
_SESSION_NAMES = frozenset("phpsessid jsessionid cfid cftoken".split())
_SESSION_PREFIXES = ("aspsessionid",)
# Sessions, if they look it; `sid` is as often the id of a story or a shop. Not `session` or `s`: a conference has
# sessions too, and where they change nothing that is learnt from the pages (frontier/engine/traps/parameters.py).
_MAYBE_SESSION_NAMES = frozenset(
    "sid sessionid session_id sessid oscsid zenid vsid phpsession asp.net_sessionid".split()
)
# What PHP (26, 32 and 40), Java, phpBB and vBulletin (32 hex) make. Not 24 hex, which MongoDB gives to all
# it keeps, nor a UUID. At least one digit and one letter: no word and no number is meant.
_SESSION_VALUE = re.compile(
    r"(?=[^0-9]*[0-9])(?=[^a-z]*[a-z])(?:[0-9a-z]{26}|[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})\Z",
    re.IGNORECASE,
)
# Java's `;jsessionid=...` behind a segment, and ASP.NET's `/(S(...))/` as one.
_PATH_SESSION = re.compile(
    r";(?:jsessionid|phpsessid)=[^/;]*|/\((?:[ASF]\([0-9A-Za-z_-]{12,}\))+\)(?=/)"
    r"|;(?:sid|sessionid)=(?:[0-9a-f]{32}|[0-9a-f]{40})(?=[/;]|\Z)",
    re.IGNORECASE,
)
# Some also behind a query: `/a?b=1;jsessionid=...`.
_QUERY_SESSION = re.compile(
    r";(?:jsessionid|phpsessid)=[^&;]*|;(?:sid|sessionid)=(?:[0-9a-f]{32}|[0-9a-f]{40})(?=[&;]|\Z)",
    re.IGNORECASE,
)
# What crawls made before there were settings folded: keys.rules = 1.
_FIRST_RULES = re.compile(
    r"(?:utm_[a-z_]+|gclid|dclid|gbraid|wbraid|fbclid|msclkid|yclid|twclid|igshid|mc_[ce]id|_hs(?:enc|mi)"
    r"|phpsessid|jsessionid|aspsessionid[a-z]*|sessionid|session_id|cfid|cftoken)\Z",
    re.IGNORECASE,
)


class Keys:
    """`folds_hosts` when URLs of different hosts can have one key: then a key's first half names no host.
    `keeps_plain_paths` when a path without `;`, `(` and `|` is its own canonical form, if its escapes are
    upper-case and of what must be escaped."""

    def __init__(self, settings: KeySettings) -> None:
        self._settings = settings
        self._is_first = settings.rules == 1
        self._documents = frozenset(name.lower() for name in settings.default_documents)
        self._tail = bool(self._documents) or settings.trailing_slash
        kept = {name.lower() for name in settings.keep_parameters}
        dropped = [name.lower() for name in settings.drop_parameters]
        dropped += tracking_parameters() if settings.tracking else ()
        self._dropped = frozenset(dropped) - kept
        self._prefixes = tuple(name[:-1] for name in self._dropped if name.endswith("*"))
        self._kept = frozenset(kept)
        self.keeps_plain_paths = not self._tail
        self.folds_hosts = not self._is_first and (settings.www or settings.scheme)

    def key_of(self, url: str) -> UrlKey:
        """The dedup key of a normalised URL."""
        slash = url.index("/", 8)
        rest = url[slash:]
        if "?" in rest or "%" in rest or ";" in rest or "(" in rest or "|" in rest or self._tail:
            rest = self._rest(rest)
        # surrogates cannot occur: ada serialises to ASCII
        return UrlKey(self.prefix(url[:slash]) + blake2b(rest.encode(), digest_size=8).digest())

    def form(self, url: str) -> str:
        """The canonical form of a normalised URL, for people to read; itself a URL with the same form."""
        slash = url.index("/", 8)
        host = _fold_host(url[:slash], self._settings) if self.folds_hosts else url[:slash]
        return host + self._rest(url[slash:])

    def prefix(self, host: str) -> bytes:
        """What the keys of a host's URLs begin with."""
        return host_id(_fold_host(host, self._settings) if self.folds_hosts else host)

    def keeps(self, name: str) -> bool:
        """Whether a parameter of that name is kept with any value but an empty one. The canonical form of a query
        of such parameters, none with a session behind a `;`, is those parameters in order."""
        if self._is_first or not self._settings.sort_query:
            return False
        return (
            not _RAW.search(name)
            and ";" not in name
            and name.lower() not in _MAYBE_SESSION_NAMES
            and not self._is_dropped(name + "=1")
        )

    def _rest(self, rest: str) -> str:
        path, question, query = rest.partition("?")
        if self._is_first:
            return path + _first_query(query) if question else rest
        path = self._path(path)
        return path + self._query(query) if query else path

    # -- the path

    def _path(self, path: str) -> str:
        before = ""
        while path != before:
            before = path
            if "%" in path or "|" in path:
                path = _escape(path)
            if self._settings.sessions and (";" in path or "(" in path):
                path = _drop_session(path)
        return self._fold_tail(path) if self._tail else path

    def _fold_tail(self, path: str) -> str:
        while True:
            if self._settings.trailing_slash:
                path = path.rstrip("/") or "/"
            folder, _, name = path.rpartition("/")
            if name.lower() not in self._documents:
                return path
            path = folder + "/"

    # -- the query

    def _query(self, query: str) -> str:
        if _RAW.search(query):
            query = _escape(query)
        if self._settings.sessions and ";" in query:
            query = _QUERY_SESSION.sub("", query)
        parameters = query.split("&")
        kept = [parameter for parameter in parameters if parameter and not self._is_dropped(parameter)]
        if self._settings.sort_query:
            kept.sort()
        return "?" + "&".join(kept) if kept else ""

    def _is_dropped(self, parameter: str) -> bool:
        name, equals, value = parameter.partition("=")
        name = name.lower()
        if name in self._kept:
            return False
        if name in self._dropped or name.startswith(self._prefixes):
            return True
        if self._settings.sessions and _is_session(name, value):
            return True
        return self._settings.drop_empty and bool(equals) and not value


def host_part(key: bytes) -> bytes:
    """What all keys of one host begin with: its id, unless settings fold hosts (`Keys.prefix`)."""
    return key[:8]


POSTED = "__wb_method=POST&"
"""Before the body of a form, in a URL that stands for it: as indexes of web archives have it."""


def split_form(url: str) -> tuple[str, str]:
    """The URL and the body that such a URL stands for; an empty body for any other."""
    before, _, form = url.partition(POSTED)
    return (before[:-1], form) if form and before[-1:] in ("?", "&") else (url, "")


def form_key(key: UrlKey, form: str) -> UrlKey:
    """Of a form that is posted to the URL with this key: another body is another key."""
    return UrlKey(host_part(key) + blake2b(key + b" POST " + form.encode(), digest_size=8).digest())


@lru_cache(maxsize=1)
def tracking_parameters() -> tuple[str, ...]:
    lines = files("skitter.urls").joinpath("tracking.txt").read_text("ascii").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def robots_key(host: Host) -> UrlKey:
    """Stands for a host's own robots.txt, whatever is folded: each origin has one."""
    return UrlKey(host_id(host) + blake2b(b"/robots.txt", digest_size=8).digest())


def _is_session(name: str, value: str) -> bool:
    if name in _SESSION_NAMES or name.startswith(_SESSION_PREFIXES):
        return True
    return name in _MAYBE_SESSION_NAMES and _SESSION_VALUE.match(value) is not None


def _escape(text: str) -> str:
    """As RFC 3986 has it (6.2.2): what is unreserved has no escape, what is no character of a URL has one, in
    upper case. A % that begins no escape is one of those."""
    return _ESCAPE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    said = found[0]
    if len(said) == 1:
        return f"%{ord(said):02X}"
    code = int(said[1:], 16)
    return chr(code) if code in _UNRESERVED else said.upper()


def _drop_session(path: str) -> str:
    shorter = _PATH_SESSION.sub("", path)
    while shorter != path:
        path, shorter = shorter, _PATH_SESSION.sub("", shorter)
    if "/." in path:
        # `/..;jsessionid=1/` has become a dot segment
        path = (normalise("http://h" + path) or "http://h" + path)[8:]
    return path


def _fold_host(host: str, settings: KeySettings) -> str:
    scheme, _, authority = host.partition("://")
    if settings.scheme and ":" not in authority.rpartition("]")[2]:
        scheme = "http"
    if settings.www:
        while authority.startswith("www.") and "." in authority[4:]:
            authority = authority[4:]
    return f"{scheme}://{authority}"


def _first_query(query: str) -> str:
    kept = sorted(
        parameter
        for parameter in query.split("&")
        if parameter and not _FIRST_RULES.match(parameter.partition("=")[0])
    )
    return "?" + "&".join(kept) if kept else ""
