"""A whole crawl that knows so many URLs: what a page of it takes, fetched, read, archived and settled.

A part of `bench.growth`. Hundreds of names for one nginx; so many pages of each are known before the first is
asked for. What starting and ending take is measured by itself and left out: an opened frontier is no page.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench._crawls import Usage, run_with_usage, skitter_command
from bench._gauge import Meter
from bench._growing import Stretch
from bench._nginx import serving
from bench._report import ticking
from bench.archive import DOCUMENTS

# Pages that are crawled before the first stretch.
BEFORE = 1_500
_HOSTS = 500
# Of one size, more or less: which of them a stretch meets depends on how far each host has got.
_SMALLEST, _LARGEST = 14_000, 30_000


class GrownCrawl:
    """A folder with `urls` known, and what it takes to go on there. Each stretch goes on from a copy of it: were
    it continued, the smallest crawl would soon be done with what it knew, and read the site's indexes, where
    larger ones still read plain pages."""

    def __init__(self, folder: Path, urls: int, port: int) -> None:
        self._folder = folder
        self._port = port
        self.urls = urls
        seeds = folder / "seeds"
        seeds.write_text("".join(f"{url}\n" for url in _known(urls)))
        (folder / "settings.toml").write_text("[politeness]\ndelay = 0\nslow_factor = 0\n")
        # also the hosts' robots.txt, and what so many seeds left to be compacted: that is not what a page costs
        self._crawl("grown", BEFORE, str(seeds))

    def stretch(self, pages: int) -> Stretch:
        """By the CPU of all processes of the crawl."""
        shutil.copytree(self._folder / "grown", self._folder / "crawl")
        os.sync()  # or a disk is written to meanwhile, and more of it where more is known
        meter = Meter()
        with meter.aside():
            idle = self._crawl("crawl", BEFORE)
        with meter.aside():
            usage = self._crawl("crawl", BEFORE + pages)
        meter.read()
        shutil.rmtree(self._folder / "crawl")
        return Stretch((usage.cpu - idle.cpu) / pages * 1e6, meter.pace, self.urls, usage.rss)

    def _crawl(self, name: str, pages: int, *seeds: str) -> Usage:
        """Until there are so many in all."""
        output = self._folder / "output"
        command = skitter_command("crawl", *seeds, "--into", str(self._folder / name), "--workers", "1")
        command += ["--config", str(self._folder / "settings.toml"), "--allow-private", "--json"]
        command += ["--resolve", f"*:80:127.0.0.1:{self._port}", "--max-pages", str(pages)]
        with output.open("wb") as stream:
            usage = run_with_usage(command, stream)
        last = json.loads(output.read_text().splitlines()[-1])
        found = last.get("last", last)["pages"]
        if usage.code or found > pages:
            raise SystemExit(f"a crawl for {pages:,} pages ended with {found:,}: {last}")
        return usage


@contextmanager
def grown_crawls(nginx: str, folder: Path, sizes: Sequence[int]) -> Iterator[list[GrownCrawl]]:
    with serving(nginx, DOCUMENTS, folder) as port:
        crawls = []
        for size in sizes:
            place = folder / str(size)
            place.mkdir()
            with ticking(f"a crawl that knows {size:,} URLs", every=10.0):
                crawls.append(GrownCrawl(place, size, port))
        yield crawls


def _known(urls: int) -> Iterator[str]:
    """Without the indexes: with thousands of links a page they would be most of a stretch. 2,523 are left."""
    paths = sorted(
        path.relative_to(DOCUMENTS).as_posix()
        for path in DOCUMENTS.rglob("*.html")
        if _SMALLEST < path.stat().st_size < _LARGEST
    )
    random.Random(1).shuffle(paths)
    for number in range(urls):
        yield f"http://g{number % _HOSTS}.test/{paths[number // _HOSTS]}"
