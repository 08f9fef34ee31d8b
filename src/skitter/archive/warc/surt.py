"""The sort-friendly key of a URL, as web archives index it: `http://www.a.org/B?c` becomes `org,a)/b?c`.

The last step before an index line is written. Pure. It is a lookup key and nothing else: never fetched, never
deduplicated on (that is `urls/`). Agrees with the key that pywb computes for the URL somebody asks it for,
because a line under any other key is a page that nobody finds.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote_from_bytes, unquote_to_bytes

from skitter.urls.keys import POSTED

_PARTS = re.compile(
    r"(https?)://(?:[^/?#@]*@)?(\[[^\]/?#]*\]|[^/?#:]*)(?::(\d*))?([^?#]*)(?:\?([^#]*))?", re.I
)
# An origin and a path of plain segments, none of which begins with a dot.
_SIMPLE = re.compile(
    r"(https?://[a-z0-9.-]++(?::\d++)?)((?:/[\w~!$&'()*+,;=:@|-][\w~!$&'()*+,;=:@|.-]*+)++|/)", re.ASCII
)
_WWW = re.compile(r"www\d*\.")
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_HEX = {pair: int(pair, 16) for pair in (b"%02x" % n for n in range(256))}
# Every printable character stays but the three that would be read as something else: space, # and %.
_KEPT = "".join(chr(n) for n in range(0x21, 0x7F) if chr(n) not in "#%")

# ASP.NET keeps a session in the path, the others in a parameter: one page, one key.
_PATH_SESSIONS = (
    re.compile(r"^(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)$"),
    re.compile(r"^(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)$"),
)
_QUERY_SESSIONS = tuple(
    re.compile(rf"^(.*)(?:{session})(?:&(.*))?$")
    for session in (
        "jsessionid=[0-9a-z]{32}",
        "phpsessid=[0-9a-z]{32}",
        "sid=[0-9a-z]{32}",
        "aspsessionid[a-z]{8}=[a-z]{24}",
        "cfid=[^&]+&cftoken=[^&]+",
    )
)


def surt(url: str) -> str:
    """The key of an http(s) URL; of anything else the URL itself."""
    return simple_surt(url) or _surt(url)


def simple_surt(url: str) -> str:
    """The key of a URL that can be written into a record as it is, and has nothing in its path to decode, to sort
    or to fold; empty of any other."""
    simple = _SIMPLE.fullmatch(url)
    if simple is None:
        return ""
    path = simple[2].lower()
    return _origin(simple[1]) + path if ".aspx" not in path else ""


# A lease brings several pages of one host in a row, here and below.
@lru_cache(maxsize=1024)
def _origin(origin: str) -> str:
    """The key of an origin, without a path."""
    return _surt(origin + "/")[:-1]


def _surt(url: str) -> str:
    parts = _PARTS.match(url)
    if parts is None:
        return _escaped(url.encode("utf-8", "replace")) or "-"
    scheme, host, port, path, query = parts.groups()
    where = _reversed_host(host)
    if port and port != _DEFAULT_PORTS[scheme.lower()]:
        where = f"{where}:{int(port)}"
    return f"{where}){_path(path)}{_query(query) if query else ''}"


@lru_cache(maxsize=1024)
def _reversed_host(host: str) -> str:
    host = _plain(host.strip("[]")).lower().replace("..", ".").strip(".")
    www = _WWW.match(host)
    return ",".join(reversed(host[www.end() if www else 0 :].split(".")))


def _path(path: str) -> str:
    path = _plain(path)
    if "/." in path or "//" in path:
        path = _without_dots(path)
    path = path.lower()
    if ".aspx" in path:
        for session in _PATH_SESSIONS:
            path = session.sub(r"\1\2", path)
    return path[:-1] if len(path) > 1 and path.endswith("/") else path or "/"


def _without_dots(path: str) -> str:
    kept: list[str] = []
    for segment in path.split("/")[1:]:
        if segment == ".." and kept:
            kept.pop()
        elif segment != ".":
            kept.append(segment)
    tail = kept.pop() if kept else ""
    return "/" + "".join(f"{segment}/" for segment in kept if segment) + tail


def _query(query: str) -> str:
    query = _plain(query).lower()
    if "sid=" in query or "sessionid" in query or "cfid=" in query:
        for session in _QUERY_SESSIONS:
            query = session.sub(lambda found: found[1] + (found[2] or ""), query)
    if "&" in query:
        query = "&".join("=".join(pair) for pair in sorted(arg.split("=", 1) for arg in query.split("&")))
    return f"?{query}" if query else ""


def _plain(text: str) -> str:
    """Percent-encoding undone as often as it was done, then put back once where it must be."""
    if text.isascii() and text.isprintable() and "%" not in text and " " not in text:
        return text
    return _escaped(_unescaped(text.encode("utf-8", "replace")))


def _escaped(text: bytes) -> str:
    return quote_from_bytes(text, safe=_KEPT)


def _unescaped(text: bytes) -> bytes:
    once = unquote_to_bytes(text)
    twice = unquote_to_bytes(once)
    return once if twice == once else _unescaped_deep(twice)


def _unescaped_deep(text: bytes) -> bytes:
    # In one pass: decoding until nothing changes is quadratic on `%2%3%3%3...%35`. The order of decoding does
    # not matter, because two escapes never overlap.
    out = bytearray()
    for byte in text:
        out.append(byte)
        while len(out) >= 3 and out[-3] == 0x25 and (value := _HEX.get(bytes(out[-2:]).lower())) is not None:
            out[-3:] = bytes((value,))
    return bytes(out)


def posted(uri: str, form: str) -> str:
    """The URL that stands for a form in an index, as pywb and warcio have it."""
    return f"{uri}{'&' if '?' in uri else '?'}{POSTED}{form}"


def may_be_key_of(key: str, uri: str) -> bool:
    """Whether a line of an index may have this key: the URL's own, or that of a form that was posted to it."""
    own = surt(uri)
    if key == own:
        return True
    path, _, query = key.partition("?")
    return POSTED.lower().rstrip("&") in query and path == own.partition("?")[0]
