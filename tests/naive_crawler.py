"""A second opinion on what a crawl of the synthetic web requests.

As small and as slow as can be, one request after the other: stdlib HTTP and HTML, ada for URLs, and its own
reading of RFC 9309. It shares no line with the package, so that the plan cannot agree with itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlsplit

import ada_url

SOURCES = {"a": "href", "area": "href", "iframe": "src", "frame": "src"}


class Links(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__()
        self.base = url
        self.nofollow = False
        self.hrefs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "base":
            self.base = values["href"]
        if tag == "meta" and values.get("name") == "robots":
            self.nofollow = "nofollow" in values["content"]
        if SOURCES.get(tag) in values and "nofollow" not in values.get("rel", ""):
            self.hrefs.append(values[SOURCES[tag]])

    def urls(self) -> list[str]:
        found = [normal(href, self.base) for href in self.hrefs if ada_url.URL.can_parse(href, self.base)]
        return [url for url in found if url.startswith("http://")]


def normal(href: str, base: str | None = None) -> str:
    return str(ada_url.URL(href, base).href).partition("#")[0]


@dataclass
class Robots:
    """Every group as its names and its rules; the crawler's own group counts, or else the one for all."""

    text: str
    product: str

    def allows(self, path: str) -> bool:
        rules = self.rules()
        best = (0, True)
        for verb, pattern in rules:
            if pattern and re.match(self.expression(pattern), path):
                best = max(best, (len(pattern), verb == "allow"))
        return best[1]

    def rules(self) -> list[tuple[str, str]]:
        groups: dict[str, list[tuple[str, str]]] = {}
        name = ""
        for line in self.text.removeprefix("\ufeff").splitlines():
            verb, _, value = line.partition(":")
            if verb.lower() == "user-agent":
                name = value.strip().lower()
                groups.setdefault(name, [])
            elif verb.lower() in ("allow", "disallow"):
                groups[name].append((verb.lower(), value.strip()))
        return groups.get(self.product, groups.get("*", []))

    @staticmethod
    def expression(pattern: str) -> str:
        end = "$" if pattern.endswith("$") else ""
        return re.escape(pattern.removesuffix("$")).replace(r"\*", ".*") + end


@dataclass
class NaiveCrawler:
    port: int
    product: str = "skitter"
    attempts: int = 3
    max_redirects: int = 5
    take: Callable[[int], int] = lambda length: 0
    """Which of the waiting URLs is next, given their number; the first unless told."""
    depths: dict[str, int] = field(default_factory=dict)
    requests: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    robots: dict[str, Robots | None] = field(default_factory=dict)

    def crawl(self, seed: str) -> None:
        self.connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        self.waiting: list[tuple[str, int]] = []
        self.discover(seed, 0, 0)
        while self.waiting:
            url, hops = self.waiting.pop(self.take(len(self.waiting)))
            if self.allowed(url):
                self.visit(url, hops)
        self.connection.close()

    def discover(self, url: str, depth: int, hops: int) -> None:
        if url not in self.depths and hops <= self.max_redirects:
            self.depths[url] = depth
            self.waiting.append((url, hops))

    def visit(self, url: str, hops: int) -> None:
        self.requests[url] = 1
        response, body = self.get(url)
        while response.status >= 500 and self.requests[url] < self.attempts:
            self.requests[url] += 1
            response, body = self.get(url)
        self.statuses[url] = response.status
        depth = self.depths[url] + 1
        location = response.headers.get("Location")
        if location:
            self.discover(normal(location, url), depth, hops + 1)
        elif response.status == 200 and response.headers.get_content_type() == "text/html":
            self.follow(url, response, body, depth)

    def follow(self, url: str, response: HTTPResponse, body: bytes, depth: int) -> None:
        links = Links(url)
        links.feed(body.decode(response.headers.get_content_charset() or "utf-8"))
        if links.nofollow or "nofollow" in response.headers.get("X-Robots-Tag", ""):
            return
        for target in links.urls():
            self.discover(target, depth, 0)

    def allowed(self, url: str) -> bool:
        parts = urlsplit(url)
        if parts.netloc not in self.robots:
            self.robots[parts.netloc] = self.read_robots(f"http://{parts.netloc}/robots.txt")
        rules = self.robots[parts.netloc]
        return rules is not None and rules.allows(url.removeprefix(f"http://{parts.netloc}"))

    def read_robots(self, url: str) -> Robots | None:
        response, body = self.get(url)
        while response.headers.get("Location"):
            url = normal(response.headers["Location"], url)
            response, body = self.get(url)
        if response.status >= 500:
            return None
        return Robots(body.decode() if response.status == 200 else "", self.product)

    def get(self, url: str) -> tuple[HTTPResponse, bytes]:
        parts = urlsplit(url)
        path = url.removeprefix(f"http://{parts.netloc}")
        self.connection.request("GET", path, headers={"Host": parts.netloc})
        response = self.connection.getresponse()
        return response, response.read()
