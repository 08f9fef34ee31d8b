"""The cookies of one host, by the rules of RFC 6265bis and the public suffix list. Pure.

A jar belongs to one origin and never tells a cookie to another: what a host sets for its whole domain is still
sent to that host alone. Bounded in number and size, whatever a server sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime

import msgspec

from skitter.urls.scope import is_public_suffix

_MOST, _LONGEST, _LARGEST_JAR = 50, 4096, 16_384
# A server that sends a session's cookie again with every page moves its end by seconds: no news.
_NEWS_OF_EXPIRY = 3600.0
_LONGEST_AGE = 400 * 86_400.0


class Cookie(msgspec.Struct, frozen=True, array_like=True):
    """`domain` has no leading dot; `is_host_only` when the host named none. `expires` is None for a session."""

    name: str
    value: str
    domain: str
    path: str = "/"
    is_host_only: bool = True
    is_secure: bool = False
    expires: float | None = None


class CookieJar:
    """`name` is the host's name without scheme and port; `is_secure` of one that is asked over https."""

    def __init__(self, name: str, *, is_secure: bool, cookies: Iterable[Cookie] = ()) -> None:
        self._name = name
        self._is_secure = is_secure
        self._cookies: dict[tuple[str, str, str], Cookie] = {}
        for cookie in cookies:
            self.add(cookie)

    def add(self, cookie: Cookie) -> bool:
        """Whether that is news. A cookie that is not this host's is left out."""
        if not _domain_matches(self._name, cookie) or (cookie.is_secure and not self._is_secure):
            return False
        at = (cookie.domain, cookie.path, cookie.name)
        before = self._cookies.pop(at, None)
        self._cookies[at] = cookie
        while len(self._cookies) > _MOST or self._size() > _LARGEST_JAR:
            del self._cookies[next(iter(self._cookies))]
        return before is None or _is_news(before, cookie)

    def take(self, fields: Iterable[str], path: str, now: float) -> bool:
        """The Set-Cookie fields of an answer to a request for `path`; whether they changed the jar."""
        changed = False
        for field in fields:
            cookie = parse_cookie(field, self._name, path, now, is_secure=self._is_secure)
            if cookie is None:
                continue
            if cookie.expires is not None and cookie.expires <= now:
                changed |= self._cookies.pop((cookie.domain, cookie.path, cookie.name), None) is not None
            else:
                changed |= self.add(cookie)
        return changed

    def header(self, path: str, now: float) -> str:
        """The value of a Cookie header for a request; empty where there is none. Longer paths first."""
        sent = [
            cookie
            for cookie in self._cookies.values()
            if _path_matches(path, cookie.path) and (cookie.expires is None or cookie.expires > now)
        ]
        sent.sort(key=lambda cookie: -len(cookie.path))
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in sent)

    def cookies(self) -> list[Cookie]:
        return list(self._cookies.values())

    def clear(self) -> None:
        self._cookies.clear()

    def _size(self) -> int:
        return sum(len(cookie.name) + len(cookie.value) for cookie in self._cookies.values())


def parse_cookie(field: str, host: str, request_path: str, now: float, *, is_secure: bool) -> Cookie | None:
    """One Set-Cookie field; None for one that must not be kept."""
    pair, *rest = field.split(";")
    name, equals, value = pair.partition("=")
    name, value = name.strip(), value.strip()
    if not equals or not name or len(name) + len(value) > _LONGEST or not (name + value).isprintable():
        return None
    attributes = _attributes(rest)
    domain = attributes.get("domain", "").lower().strip().lstrip(".")
    is_host_only = not domain or (domain == host and is_public_suffix(domain))
    path = attributes.get("path", "")
    cookie = Cookie(
        name,
        value,
        host if is_host_only else domain,
        path if path.startswith("/") else default_path(request_path),
        is_host_only,
        "secure" in attributes,
        _expires(attributes, now),
    )
    return (
        cookie if _may_be_set(cookie, host, is_secure=is_secure, has_domain="domain" in attributes) else None
    )


def _attributes(parts: Iterable[str]) -> Mapping[str, str]:
    pairs = (part.partition("=") for part in parts)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _may_be_set(cookie: Cookie, host: str, *, is_secure: bool, has_domain: bool) -> bool:
    if not _domain_matches(host, cookie) or (cookie.is_secure and not is_secure):
        return False
    lower = cookie.name.lower()
    if lower.startswith("__host-"):
        return cookie.is_secure and not has_domain and cookie.path == "/"
    return cookie.is_secure or not lower.startswith("__secure-")


def _expires(attributes: Mapping[str, str], now: float) -> float | None:
    age = attributes.get("max-age", "")
    if age.removeprefix("-").isdigit() and age.isascii():
        return now + min(int(age[:12]), _LONGEST_AGE) if not age.startswith("-") else 0.0
    if "expires" not in attributes:
        return None
    try:
        return min(parsedate_to_datetime(attributes["expires"]).timestamp(), now + _LONGEST_AGE)
    except (TypeError, ValueError, OverflowError, IndexError):
        return None


def _domain_matches(host: str, cookie: Cookie) -> bool:
    if cookie.is_host_only or host == cookie.domain:
        return host == cookie.domain
    is_address = host.startswith("[") or host.replace(".", "").isdigit()
    return not is_address and host.endswith("." + cookie.domain) and not is_public_suffix(cookie.domain)


def _path_matches(path: str, of: str) -> bool:
    return path == of or (path.startswith(of) and (of.endswith("/") or path[len(of)] == "/"))


def default_path(path: str) -> str:
    """RFC 6265bis 5.1.4: the folder of the page that set it."""
    path = path.partition("?")[0]
    return path[: path.rfind("/")] or "/" if path.startswith("/") else "/"


def _is_news(before: Cookie, now: Cookie) -> bool:
    if (before.value, before.is_secure) != (now.value, now.is_secure):
        return True
    if before.expires is None or now.expires is None:
        return before.expires is not now.expires
    return abs(before.expires - now.expires) > _NEWS_OF_EXPIRY
