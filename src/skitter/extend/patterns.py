"""Which pages a hook is for: globs over host and path, and media types.

Asked by a worker for every page of a crawl with plugins, so hosts without a `*` are found in a dict. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from skitter.parse.media import HTML, XHTML

ANY = "*"
PAGES = (HTML, XHTML)
_Rule = tuple[int, "re.Pattern[str] | None", frozenset[str] | None]


class Patterns:
    """Rules with a number each. `find` gives the numbers that a page matches, in their order."""

    def __init__(self) -> None:
        self._of_host: dict[str, list[_Rule]] = {}
        self._of_any_host: list[tuple[re.Pattern[str], _Rule]] = []

    def add(self, number: int, patterns: Sequence[str], types: Iterable[str]) -> None:
        """No pattern means every page, no type means HTML."""
        wanted = frozenset(types) or frozenset(PAGES)
        accepted = None if ANY in wanted else wanted
        for pattern in patterns or (ANY,):
            host, path = split_pattern(pattern)
            rule = number, glob(path) if path else None, accepted
            if ANY in host:
                self._of_any_host.append((glob(host), rule))
            else:
                self._of_host.setdefault(host, []).append(rule)

    def find(self, url: str, media_type: str) -> tuple[int, ...]:
        authority, rest = _parts(url)
        name = _without_port(authority)
        rules = [*self._of_host.get(name, ())]
        if name is not authority:
            rules += self._of_host.get(authority, ())
        rules += [
            rule for host, rule in self._of_any_host if host.fullmatch(name) or host.fullmatch(authority)
        ]
        if not rules:
            return ()
        found = {
            number
            for number, path, types in rules
            if (path is None or path.fullmatch(rest)) and (types is None or media_type in types)
        }
        return tuple(sorted(found))


def split_pattern(pattern: str) -> tuple[str, str]:
    """`shop.example/products/*` as host and path; without a path all of the host. `*/api/*` is any host, and any
    folders before."""
    host, slash, path = pattern.removeprefix("https://").removeprefix("http://").partition("/")
    if not slash or path == ANY:
        return host.lower(), ""
    return host.lower(), f"*/{path}" if host == ANY else f"/{path}"


def glob(pattern: str) -> re.Pattern[str]:
    """`*` stands for any characters, slashes too; every other character, also `?`, for itself."""
    return re.compile(".*".join(map(re.escape, pattern.split(ANY))), re.DOTALL)


def complaint_about(pattern: object) -> str:
    """Why this is no pattern; empty when it is one."""
    if not isinstance(pattern, str):
        return f"{pattern!r} is no pattern: write a text such as shop.example/products/*"
    if not pattern or any(char.isspace() for char in pattern):
        return f"{pattern!r} is no pattern: write a host and a path, such as shop.example/products/*"
    if pattern.startswith("/"):
        return f"{pattern!r} has no host: write */{pattern.lstrip('/')} for every host"
    return ""


def _parts(url: str) -> tuple[str, str]:
    start = url.find("//") + 2
    end = url.find("/", start)
    return (url[start:], "/") if end < 0 else (url[start:end], url[end:])


def _without_port(authority: str) -> str:
    name, colon, port = authority.rpartition(":")
    return name if colon and port.isdigit() else authority
