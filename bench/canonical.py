"""What does a link cost, from its href to its dedup key?

    python -m bench.canonical

Real documentation pages are read and their links resolved in the order of a crawl: through the memory of a
`LinkReader`, and without it. Also the key alone, by kind of URL. A table, and one JSON object as the last line;
exit code 1 when a link costs more than the target, 2 without pages. A page's links are its anchors; reading has
left each href once, so their cost is also told by what is left.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench._keys import KEYS
from bench._report import last_line, table, ticking
from skitter.model import Link, UrlKey
from skitter.parse.page import read_page
from skitter.urls.canonical import host_of, normalise
from skitter.urls.links import LinkReader

FOLDER = Path("/usr/share/doc/openjdk-17-jre-headless/api")
TARGET = 1.5
_ROUNDS = 3
_PARENT = UrlKey(bytes(16))
_KINDS = {
    "a path": "https://docs.test/api/java.base/java/lang/String.html",
    "a query": "https://docs.test/find?q=crawler&page=2&lang=en",
    "a query with tracking": "https://docs.test/find?q=crawler&utm_source=a&utm_medium=b&gclid=c",
    "escapes": "https://docs.test/wiki/%C3%84rger%20und%20%7Eandere",
    "a session in the path": "https://docs.test/find;jsessionid=0123456789ABCDEF?q=1",
}
_ANCHOR = re.compile(rb"<a\s[^>]*href=", re.IGNORECASE)
Page = tuple[str, tuple[Link, ...], int]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.canonical", description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=FOLDER, help="HTML files below this")
    parser.add_argument("--pages", type=int, default=2_000)
    options = parser.parse_args(arguments)
    files = sorted(options.folder.rglob("*.html"))[: options.pages]
    if not files:
        print("no HTML files: install openjdk-17-doc, or give --folder", file=sys.stderr)
        return 2
    with ticking("reading pages"):
        pages = [_page(file, options.folder) for file in files]
    anchors, links = sum(count for _, _, count in pages), sum(len(found) for _, found, _ in pages)
    remembered, resolved = _best(lambda: _remembered(pages)), _best(lambda: _resolved(pages))
    took = {
        "a link, through the reader's memory": remembered / anchors,
        "a link, without it": resolved / anchors,
        "a distinct href, through the reader's memory": remembered / links,
        "a distinct href, without it": resolved / links,
    }
    keys = {f"the key of {kind}": _best(lambda url=url: _keyed(url)) / 1_000 for kind, url in _KINDS.items()}  # type: ignore[misc]
    rows = [[words, round(us, 2)] for words, us in (took | keys).items()]
    print(table([[f"{anchors:,} links, {links:,} distinct, of {len(pages):,} pages", "us"], *rows]))
    us = remembered / anchors
    last_line(
        {
            "bench": "canonical",
            "pages": len(pages),
            "links_per_page": round(anchors / len(pages), 1),
            "distinct_per_page": round(links / len(pages), 1),
            "us": {words: round(us, 3) for words, us in (took | keys).items()},
            "met": us <= TARGET,
        }
    )
    return 0 if us <= TARGET else 1


def _page(file: Path, folder: Path) -> Page:
    url = f"http://docs.test/{file.relative_to(folder).as_posix()}"
    body = file.read_bytes()
    links = read_page(body, url=url, content_type="text/html; charset=utf-8").links
    return url, links, len(_ANCHOR.findall(body))


def _best(work: Callable[[], None]) -> float:
    """Microseconds of CPU, the least of a few rounds."""
    took = []
    for _ in range(_ROUNDS):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return min(took) * 1e6


def _remembered(pages: Sequence[Page]) -> None:
    reader = LinkReader(KEYS)
    for url, links, _ in pages:
        reader.discover(_PARENT, url, 1, url, links)


def _resolved(pages: Sequence[Page]) -> None:
    for base, links, _ in pages:
        for link in links:
            url = normalise(link.href, base)
            if url is not None:
                KEYS.key_of(url)
                host_of(url)


def _keyed(url: str) -> None:
    for _ in range(1_000):
        KEYS.key_of(url)


if __name__ == "__main__":
    sys.exit(main())
