"""A made-up web of any size that is only counted, never stored: which URLs each host has handed out so far.

Host sizes are skewed as on the web: of 20 million URLs on a million hosts the largest has some 250,000, the
hundredth 6,000, the median four. One page's links lie mostly on its own host.
"""

from __future__ import annotations

import random
from array import array

from msgspec.structs import replace

from bench._keys import key_of
from skitter.model import Discovered, Host, UrlKey
from skitter.urls.canonical import host_id

# A host of rank k has a share of URLs that falls with k ** -0.8; its inverse is u ** 5.
_SKEW = 5
_OWN = 0.8
_REPEATED = 0.75


class Population:
    def __init__(self, hosts: int, seed: int) -> None:
        self._hosts = hosts
        self._random = random.Random(seed)
        self._urls = array("I", bytes(4 * hosts))
        self.urls = 0

    def new_links(self, count: int) -> list[Discovered]:
        """What a page brings early in a crawl: nobody knows any of it."""
        home = self._any_host()
        parent = self._key(home, 0)
        return [
            self._new(home if self._random.random() < _OWN else self._any_host(), parent)
            for _ in range(count)
        ]

    def page_links(self, page: str, key: UrlKey, count: int, new: int) -> tuple[Discovered, ...]:
        """What a page brings later, one level below it: `new` of `count` nobody saw. Its URL names its host."""
        home = int(page[len("https://h") : page.index(".")])
        links = [
            self._known(home, key) if self._random.random() < _OWN else self._foreign(home, key)
            for _ in range(count - new)
        ]
        links += [
            self._new(home if self._random.random() < _OWN else self._any_host(), key) for _ in range(new)
        ]
        depth = 1 + _depth(int(page[page.rindex("-") + 1 : -len(".html")]))
        return tuple(replace(link, depth=depth) for link in links)

    def _foreign(self, home: int, parent: UrlKey) -> Discovered:
        """Pages of one host mostly repeat the same few links to others; some are of this page alone."""
        if self._random.random() >= _REPEATED:
            return self._known(self._any_host(), parent)
        share = (home * 8 + self._random.randrange(8)) * 2_654_435_761 % 2**32 / 2**32
        host = int(self._hosts * share**_SKEW)
        return self._discovered(host, 0, parent) if self._urls[host] else self._new(host, parent)

    def _any_host(self) -> int:
        return int(self._hosts * self._random.random() ** _SKEW)

    def _new(self, host: int, parent: UrlKey) -> Discovered:
        number = self._urls[host]
        self._urls[host] += 1
        self.urls += 1
        return self._discovered(host, number, parent)

    def _known(self, host: int, parent: UrlKey) -> Discovered:
        """The first pages of a host are linked most: navigation."""
        known = self._urls[host]
        if not known:
            return self._new(host, parent)
        return self._discovered(host, int(known * self._random.random() ** _SKEW), parent)

    def _discovered(self, host: int, number: int, parent: UrlKey) -> Discovered:
        url = _url(host, number)
        return Discovered(url=url, key=key_of(url), host=_name(host), depth=_depth(number), parent=parent)

    def _key(self, host: int, number: int) -> UrlKey:
        return UrlKey(host_id(_name(host)) + number.to_bytes(8, "big"))


def _depth(number: int) -> int:
    return 1 + min(12, number.bit_length())


def _name(host: int) -> Host:
    return Host(f"https://h{host}.example.com")


def _url(host: int, number: int) -> str:
    return f"https://h{host}.example.com/section-{number % 31}/an-article-about-{number}.html"
