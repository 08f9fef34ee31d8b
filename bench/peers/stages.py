"""The work of single stages by other libraries, on the pages and links that it is given.

    python bench/peers/stages.py FILE

FILE is JSON: `pages` (paths), `links` (base and href, page by page) and `texts`. Runs in the peers' environment
and prints one JSON object: microseconds of CPU a page (or a link), by stage and library; the best of three.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from bs4 import BeautifulSoup
from lxml import html
from selectolax.lexbor import LexborHTMLParser
from simhash import Simhash
from url_normalize import url_normalize
from w3lib.url import canonicalize_url
from yarl import URL


def by_selectolax(body: bytes) -> object:
    tree = LexborHTMLParser(body)
    title = tree.css_first("title")
    return title and title.text(), [node.attributes.get("href") for node in tree.css("a")]


def by_lxml(body: bytes) -> object:
    tree = html.document_fromstring(body)
    return tree.findtext(".//title"), tree.xpath("//a/@href")


def by_soup(body: bytes) -> object:
    tree = BeautifulSoup(body, "lxml")
    return tree.title and tree.title.get_text(), [anchor.get("href") for anchor in tree.find_all("a")]


def by_simhash(text: str) -> object:
    """Words, not its default of four letters; weights beyond 255, which it overflows on, are cut."""
    words = Counter(text.split())
    return Simhash([(word, min(count, 255)) for word, count in words.items()])


PARSERS: dict[str, Callable[[bytes], object]] = {
    "selectolax (lexbor)": by_selectolax,
    "lxml": by_lxml,
    "BeautifulSoup on lxml": by_soup,
}
URLS: dict[str, Callable[[tuple[str, str]], object]] = {
    "w3lib canonicalize_url": lambda link: canonicalize_url(urljoin(*link)),
    "url-normalize": lambda link: url_normalize(urljoin(*link)),
    "yarl": lambda link: str(URL(link[0]).join(URL(link[1]))),
}


def cost(work: Callable[[Any], object], given: Sequence[Any]) -> float:
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        for one in given:
            work(one)
        best = min(best, time.process_time() - began)
    return best / len(given) * 1e6


def main() -> None:
    given = json.loads(Path(sys.argv[1]).read_text())
    bodies = [Path(path).read_bytes() for path in given["pages"]]
    links = [tuple(link) for link in given["links"]]
    found = {
        "parse": {name: cost(work, bodies) for name, work in PARSERS.items()},
        "canonicalise": {name: cost(work, links) for name, work in URLS.items()},
        "fingerprint": {"simhash of PyPI": cost(by_simhash, given["texts"])},
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
