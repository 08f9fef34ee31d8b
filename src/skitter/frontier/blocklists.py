"""The operator's blocklists: their files, read at the start and again when they change.

Admission checks each new URL, leasing each URL that it hands out, so that a changed list counts at once for URLs
that are already queued. A file that cannot be read stops the start. Later its last good content stays in force,
and that is reported once for each change of the file. Never writes, and knows no store.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from hashlib import blake2b

from skitter.errors import SettingsError
from skitter.urls.blocklist import BadLine, Blocklist, parse_blocklist

Tell = Callable[[str], None]
_Signature = tuple[int, int, int]
# Hosts whose answer is cached: a look-up of a name of five labels among a million lines takes 200 times as long.
_REMEMBERED = 65_536


class Blocklists:
    def __init__(self, paths: Sequence[str], tell: Tell | None = None) -> None:
        self._paths = tuple(paths)
        self.are_any = bool(paths)
        self._tell = tell or (lambda text: None)
        self._lists: dict[str, Blocklist] = {}
        self._seen: dict[str, _Signature] = {}
        self._hosts: dict[str, str] = {}
        self._is_loaded = False

    def load(self) -> None:
        """Read all files; the first that cannot be read is an error."""
        self._is_loaded = True
        for path in self._paths:
            try:
                self._seen[path], self._lists[path] = _read(path)
            except (OSError, BadLine) as error:
                raise SettingsError(f"crawl.blocklists: {_why(path, error)}") from None

    def digest(self) -> bytes:
        """Equal when the lists have the same content, whatever their paths."""
        digest = blake2b(digest_size=16)
        for one in self._lists.values():
            digest.update(
                one.hosts + repr([text for _, text, _ in (*one.patterns, *one.expressions)]).encode()
            )
        return digest.digest()

    def line_forbidding(self, host: str, url: str) -> str:
        """The line of a list that forbids a URL, in words; empty when none does."""
        if not self._paths:
            return ""
        if listed := self.line_forbidding_host(host):
            return listed
        return next((line for one in self._lists.values() if (line := one.line_of_url(url))), "")

    def line_forbidding_host(self, host: str) -> str:
        if not self._paths:
            return ""
        line = self._hosts.get(host)
        if line is None:
            self._load_for_reader()
            if len(self._hosts) >= _REMEMBERED:
                self._hosts.clear()
            name = _name(host)
            found = (one.line_of_host(name) for one in self._lists.values())
            line = self._hosts[host] = next(filter(None, found), "")
        return line

    def _load_for_reader(self) -> None:
        """A read-only frontier loads the lists when they are first needed, and ignores files that it cannot
        read."""
        if not self._is_loaded:
            self._is_loaded = True
            self._read_again(self._paths)

    async def refresh(self) -> bool:
        """Read changed files again, in a thread. Returns whether the content of the lists changed."""
        changed = [path for path in self._paths if _signature(path) != self._seen.get(path)]
        if not changed:
            return False
        before = self.digest()
        await asyncio.to_thread(self._read_again, changed)
        self._hosts.clear()
        return self.digest() != before

    def _read_again(self, paths: Sequence[str]) -> None:
        for path in paths:
            try:
                self._seen[path], self._lists[path] = _read(path)
            except (OSError, BadLine) as error:
                self._seen[path] = _signature(path)
                self._tell(f"{_why(path, error)}; what was read of it before stays in force")


def _read(path: str) -> tuple[_Signature, Blocklist]:
    # taken before the file is read: a change in between is noticed next time
    signature = _signature(path)
    with open(path, encoding="utf-8", errors="replace") as lines:
        return signature, parse_blocklist(path, lines)


def _signature(path: str) -> _Signature:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def _why(path: str, error: OSError | BadLine) -> str:
    return f"{path} cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)


def _name(host: str) -> str:
    """`https://a.example:8443` -> `a.example`"""
    authority = host.partition("://")[2]
    name, colon, port = authority.rpartition(":")
    return name.rstrip(".") if colon and port.isdigit() else authority.rstrip(".")
