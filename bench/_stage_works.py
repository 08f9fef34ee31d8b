"""Single stages of a page's path, each as a piece of work on real pages, with what can stand beside it here.

`bench.stages` times them; libraries that skitter is not tested with run in the peers' environment
(`bench/peers/stages.py`).
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
import warnings
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import blake2b, sha256
from pathlib import Path
from typing import TypeVar

import msgspec
from isal import isal_zlib

import skitter.archive.tables.parquet_files  # noqa: F401  (once a process, not a cost of a page)
from bench._growing import Grown
from bench._keys import KEYS, key_of
from bench.archive import Given, archived, by_fastwarc, by_warcio, described, exchanges, read
from skitter.archive.schema import TABLES
from skitter.archive.tables.journal import entry
from skitter.archive.tables.rows import pack_rows
from skitter.archive.warc.surt import surt
from skitter.frontier.opening import open_rocks_frontier
from skitter.model import Discovered, RecordAt
from skitter.parse.fingerprints.fingerprint import simhash
from skitter.parse.page import read_page
from skitter.settings import ArchiveSettings, CrawlSettings, Settings
from skitter.testing.clock import FakeClock
from skitter.urls.canonical import host_of, normalise
from skitter.urls.links import LinkReader

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from surt import surt as surt_of_the_archives  # type: ignore[import-untyped]

OURS = "skitter"
HOME = "http://docs.test/"
_BATCH = 400
_URLS = 20_000
_PAGES = 2_000
_KNOWN = 20_000
_HOSTS = 500


class Pages:
    """Some pages of a folder, read once."""

    def __init__(self, docs: Path, count: int) -> None:
        self.given = read(exchanges(docs, count), LinkReader(KEYS))
        self.docs = docs
        self.links = [
            (given.exchange.url, link.href)
            for given in self.given
            for link in read_page(given.exchange.body, url=given.exchange.url, content_type="text/html").links
        ]

    def write(self, path: Path) -> None:
        """For the peers."""
        pages = [str(self.docs / one.exchange.url.removeprefix(HOME)) for one in self.given]
        texts = [given.facts.text for given in self.given]
        path.write_text(json.dumps({"pages": pages, "links": self.links, "texts": texts}))


Work = Callable[[], int]
"""Does it once for all pages, and says how many it was."""


def works(pages: Pages) -> dict[str, dict[str, Work]]:
    """By stage and library."""
    given = pages.given
    return {
        "parse": {
            OURS: _each(given, lambda one: _read(one, with_text=False)),
            "skitter, with text": _each(given, lambda one: _read(one, with_text=True)),
        },
        "canonicalise": {
            "skitter, with the key": _each(
                pages.links, lambda link: key_of(normalise(*reversed(link)) or HOME)
            ),
        },
        "fingerprint": {OURS: _each(given, lambda one: simhash(one.facts.text))},
        "digest": {
            OURS + " (SHA-256)": _each(given, lambda one: sha256(one.exchange.body).digest()),
            "BLAKE2b": _each(given, lambda one: blake2b(one.exchange.body).digest()),
        },
        "compress": {
            OURS + " (ISA-L, level 1)": _each(
                given, lambda one: isal_zlib.compress(one.exchange.body, 1, 31)
            ),
            "zlib, level 1": _each(given, lambda one: zlib.compress(one.exchange.body, 1)),
            "zlib, level 6": _each(given, lambda one: zlib.compress(one.exchange.body, 6)),
        },
        "archive": {
            OURS + ", records and index": lambda: _archive(given, ArchiveSettings(tables=(), metadata=False)),
            OURS + ", all": lambda: _archive(given, ArchiveSettings()),
            "fastwarc, records only": lambda: _told(by_fastwarc, given),
            "warcio, records only": lambda: _told(by_warcio, given),
        },
        "index key": {
            OURS: _each(given, lambda one: surt(one.exchange.url)),
            "surt of PyPI": _each(given, lambda one: surt_of_the_archives(one.exchange.url)),
        },
        "table row": {OURS: _each(given, _row), "json": _each(given, _row_as_json)},
    }


T = TypeVar("T")


def _each(given: Sequence[T], work: Callable[[T], object]) -> Work:
    def all_of_them() -> int:
        for one in given:
            work(one)
        return len(given)

    return all_of_them


def _read(one: Given, *, with_text: bool) -> object:
    exchange = one.exchange
    return read_page(
        exchange.body, url=exchange.url, content_type="text/html", with_text=with_text, with_anchors=False
    )


def _archive(given: Sequence[Given], settings: ArchiveSettings) -> int:
    archived(given, settings)
    return len(given)


def _told(write: Callable[[Sequence[Given]], None], given: Sequence[Given]) -> int:
    write(given)
    return len(given)


_AT = RecordAt("skitter-20260101000000-00001.warc.gz", 9_000, 9_000)


_pack_rows = pack_rows(TABLES)


def _row(one: Given) -> tuple[bytes, bytes]:
    return entry(_pack_rows(described(one.exchange, one.facts)), _AT, "")


def _row_as_json(one: Given) -> str:
    """The same columns of the same page, links side by side."""
    links = [(target, link.text, link.rel, link.tag) for target, link in one.facts.links]
    said = msgspec.structs.asdict(one.facts)
    return json.dumps({"url": one.exchange.url, "status": 200, **said, "links": links})


# -- the frontier


def frontier_works() -> dict[str, dict[str, Work]]:
    """Each in a fresh folder: what is new must be new every time."""
    return {
        "admit, a new URL": {OURS: lambda: asyncio.run(_admit(1)), "sqlite3, no rules": _into_sqlite},
        "admit, a new URL and again": {OURS: lambda: asyncio.run(_admit(2))},
    }


def lease_and_settle() -> float:
    """Microseconds a page with 20 links, by the frontier's own meter: the making of outcomes does not count."""

    async def crawl() -> float:
        with tempfile.TemporaryDirectory(prefix="skitter-stages-") as folder:
            load = Grown(Path(folder) / "frontier", _HOSTS, seed=1)
            await load.admit(_KNOWN, _KNOWN)
            await load.greet(1_000)
            await load.crawl(_PAGES, _PAGES)
            return load.last.us

    return asyncio.run(crawl())


@cache
def _found() -> list[Discovered]:
    """Made once: what is timed is what becomes of them."""
    urls = (f"https://h{n % _HOSTS}.example.com/section-{n % 31}/article-{n}.html" for n in range(_URLS))
    return [Discovered(url=url, key=key_of(url), host=host_of(url), depth=1) for url in urls]


async def _admit(times: int) -> int:
    found = _found()
    with tempfile.TemporaryDirectory(prefix="skitter-stages-") as folder:
        settings = Settings(crawl=CrawlSettings(scope="any"))
        frontier = open_rocks_frontier(Path(folder) / "frontier", settings, FakeClock())
        for _ in range(times):
            for start in range(0, _URLS, _BATCH):
                await frontier.admit(found[start : start + _BATCH])
        await frontier.close()
    return _URLS


def _into_sqlite() -> int:
    """The least that a polite queue needs: an exact seen check, an order for each host, and how many wait there,
    committed batch by batch. No scope, no budgets, no priorities."""
    found = _found()
    with tempfile.TemporaryDirectory(prefix="skitter-stages-") as folder:
        store = sqlite3.connect(Path(folder) / "queue.sqlite")
        store.executescript(_TABLES)
        for start in range(0, _URLS, _BATCH):
            batch = found[start : start + _BATCH]
            with store:
                store.executemany("INSERT OR IGNORE INTO urls VALUES (?, ?)", [(d.key, d.url) for d in batch])
                store.executemany("INSERT INTO queue VALUES (?, ?, ?)", [(d.host, 0, d.key) for d in batch])
                store.executemany(
                    "INSERT INTO hosts VALUES (?, 1) ON CONFLICT DO UPDATE SET queued = queued + 1",
                    [(d.host,) for d in batch],
                )
        store.close()
    return _URLS


_TABLES = """\
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE urls (key BLOB PRIMARY KEY, url TEXT) WITHOUT ROWID;
CREATE TABLE queue (host TEXT, at INT, key BLOB, PRIMARY KEY (host, at, key)) WITHOUT ROWID;
CREATE TABLE hosts (host TEXT PRIMARY KEY, queued INT) WITHOUT ROWID;
"""
