"""What pages cost to read, by the domain that they are of: whoever costs too much is read partly.

Beside `page_reader.py`. A page of 2 MB takes 10 ms to read, and one that is made to hurt took 1.9 s. So much of a
page is read as is expected to take `fetch.reading_seconds`, going by the last page of its domain that took
longer. The frontier hears of it too, and asks that host less. Remembers only domains that cost too much, and few
of them.
"""

from __future__ import annotations

from collections import OrderedDict

from skitter.urls.canonical import host_of
from skitter.urls.scope import registrable_domain

_MOST_DOMAINS = 4096
# Bytes that are always read: less would not find a title.
_LEAST = 20_000
# Of a long page: no page that was met had more, and 666,000 took the parser 1.5 s.
_MOST_TAGS = 200_000
_LONG = 500_000
# Bytes a second that any page is read at, by four times: the worst that was made took a second for a megabyte.
_SLOWEST = 250_000


class ReadingCosts:
    """`_bytes` says how much is read of a domain's pages, the latest domain last."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._bytes: OrderedDict[str, int] = OrderedDict()

    def may_be_dear(self, body: bytes) -> bool:
        """Of most pages their length says that they are not, and the kernel need not be asked for the time."""
        return len(body) > self._seconds * _SLOWEST

    def most(self, url: str, body: bytes, most: int) -> int:
        """How many bytes of the page are read, of the `most` that any page may have."""
        if len(body) > _LONG and (tags := body.count(b"<", 0, most)) > _MOST_TAGS:
            most = min(most, len(body)) * _MOST_TAGS // tags
        return min(most, self._bytes.get(_domain(url), most)) if self._bytes else most

    def charge(self, url: str, size: int, seconds: float) -> float:
        """What reading so many bytes took; returns what the host is charged with: nothing, or all of it."""
        if seconds <= self._seconds:
            return 0.0
        domain = _domain(url)
        self._bytes[domain] = max(_LEAST, int(size * self._seconds / seconds))
        self._bytes.move_to_end(domain)
        if len(self._bytes) > _MOST_DOMAINS:
            self._bytes.popitem(last=False)
        return seconds


def _domain(url: str) -> str:
    return registrable_domain(host_of(url).partition("://")[2])
