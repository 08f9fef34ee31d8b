"""What do pages cost that are made to hurt? 2 MB of each kind, page after page of one site.

    python -m bench.paying

Each kind is read by a worker's own reader, as it comes off the wire. Measured is CPU. The first page of a site is
read whole, as far as its tags allow; of the next ones so much is read as fits into `fetch.reading_seconds`. Right
when no page after the first two takes longer than that, and no first one longer than `FIRST` times as long. A
table, the targets, one JSON object as the last line; exit code 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable

from bench._report import last_line, table
from bench._targets import Target, judged, show_targets
from skitter.archive.facts import Facts
from skitter.archive.packing import Packer
from skitter.model import Exchange
from skitter.parse.fingerprints.fingerprint import simhash
from skitter.parse.readers import STANDARD
from skitter.settings import Settings
from skitter.urls.keys import Keys
from skitter.urls.links import LinkReader
from skitter.worker.reading.page_reader import PageReader
from skitter.worker.reading.pdf import PdfReader
from skitter.worker.step import answer_of

SIZE = 2_000_000
PAGES = 6
# Nobody knows a site before its first page.
FIRST = 3.0
# What one page takes more than the last: it is cut by what the one before took a byte.
LATER = 1.2
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
_HEADERS = (("content-type", "text/html; charset=utf-8"),)


def repeated(piece: bytes) -> bytes:
    return (b"<!doctype html><title>A page</title>" + piece * (SIZE // len(piece) + 1))[:SIZE]


def numbered(piece: str) -> bytes:
    made = "".join(piece.replace("#", str(number)) for number in range(SIZE // len(piece)))
    return made.encode()[:SIZE]


def garbage(seed: int) -> bytes:
    return random.Random(seed).randbytes(SIZE)


KINDS: dict[str, Callable[[], bytes]] = {
    "paragraphs that are never closed": lambda: repeated(b"<p><b>"),
    "nested blocks": lambda: repeated(b"<div>"),
    "nested tables": lambda: repeated(b"<table><tr><td>"),
    "text where a table allows none": lambda: repeated(b"<table>x"),
    "formatting without end": lambda: repeated(b"<a><b><i><u>"),
    "formatting, each with a name": lambda: numbered("<b c=#>"),
    "options": lambda: repeated(b"<select><option>"),
    "one tag with endless fields": lambda: b"<p " + numbered("a#=1 "),
    "fields of the same name": lambda: b"<p " + repeated(b"a=1 "),
    "links": lambda: numbered('<a href="/p/#">x</a>'),
    "links to other hosts": lambda: numbered('<a href="http://h#.test/">x</a>'),
    "links of one name": lambda: repeated(b'<a href="/p">x</a>'),
    "long links": lambda: numbered('<a href="/' + "a/../" * 200 + '#">x</a>'),
    "half a link": lambda: b"<a href='" + repeated(b"a b\n"),
    "entities": lambda: repeated(b"&amp;"),
    "entities that are none": lambda: repeated(b"&ampampamp"),
    "comments": lambda: repeated(b"<!-->"),
    "half a comment": lambda: b"<!--" + repeated(b"--!"),
    "scripts": lambda: repeated(b"<script><!--<script></script>"),
    "half a script": lambda: b"<script>" + repeated(b"</scrip"),
    "less than": lambda: repeated(b"<"),
    "closing tags": lambda: repeated(b"</p></b>"),
    "templates": lambda: repeated(b"<template>"),
    "drawings": lambda: repeated(b"<svg><g>"),
    "frames": lambda: repeated(b"<iframe src=x></iframe>"),
    "titles": lambda: repeated(b"<title>x</title>"),
    "what machines read": lambda: b'<script type="application/ld+json">' + repeated(b"["),
    "one long word": lambda: repeated(b"a"),
    "short words": lambda: numbered("w# "),
    "spaces": lambda: repeated(b" \n"),
    "zero bytes": lambda: repeated(b"\0"),
    "garbage": lambda: garbage(1),
}


class Worker:
    """The reader of one worker, and what else it does with each page."""

    def __init__(self) -> None:
        settings = Settings()
        links = LinkReader(Keys(settings.keys))
        pdfs = PdfReader(settings.fetch)
        self.reader = PageReader(settings, links, pdfs, STANDARD, needs_text=True, needs_anchors=True)
        self._packer = Packer(settings.archive)

    def read(self, url: str, body: bytes) -> tuple[float, float]:
        """CPU seconds to read it, and to pack it for the archive."""
        exchange = Exchange(
            url=url,
            request=b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            head=_HEAD,
            body=body,
            status=200,
            headers=_HEADERS,
            address="192.0.2.7",
            sent_at=1_767_323_045.25,
        )
        began = time.thread_time()
        answer = answer_of(exchange)
        reading = self.reader.read(answer, None)
        if reading.page is not None:
            simhash(reading.page.text)
        read = time.thread_time()
        page = reading.page
        facts = Facts(kind="page", text=page.text if page else "", title=page.title if page else "")
        self._packer.pack(exchange, answer.digests, media_type="text/html", facts=facts)
        return read - began, time.thread_time() - read


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.paying", description=__doc__.splitlines()[0])
    parser.add_argument("--kind", action="append", choices=[*KINDS], help="only this one")
    options = parser.parse_args()
    bound = Settings().fetch.reading_seconds
    rows: list[tuple[object, ...]] = [
        ("CPU seconds of 2 MB of", "first", "second", "then at most", "packing")
    ]
    costs: dict[str, list[float]] = {}
    for number, kind in enumerate(options.kind or KINDS):
        worker, body = Worker(), KINDS[kind]()
        spent = [worker.read(f"http://site{number}.test/{page}", body) for page in range(PAGES)]
        costs[kind] = [read for read, _ in spent]
        packing = max(packing for _, packing in spent)
        figures = (costs[kind][0], costs[kind][1], max(costs[kind][2:]), packing)
        rows.append((kind, *(round(figure, 3) for figure in figures)))
    reached = [
        Target("CPU seconds of a first page", max(one[0] for one in costs.values()), most=FIRST * bound),
        Target(
            "CPU seconds of a later page", max(max(one[2:]) for one in costs.values()), most=LATER * bound
        ),
    ]
    print(table(rows), "", sep="\n")
    show_targets(reached)
    last_line({"bench": "paying", "costs": costs, "targets": {one.words: one.row() for one in reached}})
    return 0 if judged(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
