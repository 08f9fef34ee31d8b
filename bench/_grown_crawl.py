"""A whole crawl that knows so many URLs: what a page of it takes, fetched, read, archived and settled.

A part of `bench.growth`. Five hundred names for one nginx, on which the same pages are crawled whatever is known:
each host's first twenty, in their order, at a pace that keeps all hosts level. What else is known waits behind
them, and is what their links lead to. What starting and ending take is measured by itself and left out.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench._crawls import Usage, run_with_usage, skitter_command
from bench._growing import Stretch
from bench._nginx import serving
from bench._report import ticking
from bench.archive import DOCUMENTS

# Pages that are crawled before the first stretch: three of each host, after its robots.txt.
BEFORE = 1_500
HOSTS = 500
# Hosts whose number ends alike have the same pages, but for the names of the hosts that these link.
_SITES = 50
# Twenty are asked for, three before and sixteen in a stretch; some hosts get a little ahead of the others.
_PAGES = 25
_LINKED, _ELSEWHERE = 16, 2
_SMALLEST, _LARGEST = 4_000, 100_000
# Half a second between two requests to a host: a thousand pages a second, and no host far ahead of another.
_SETTINGS = "[politeness]\ndelay = 0.5\nslow_factor = 0\n"
# A host links the two that have its number with the last two figures swapped, and the next first figure.
_SERVED = r"""
    map $host $site {{ ~(?<site_tens>[01234])(?<site_ones>\d)\.test$ $site_tens$site_ones;
        ~5(?<site_a>\d)\.test$ 0$site_a; ~6(?<site_b>\d)\.test$ 1$site_b; ~7(?<site_c>\d)\.test$ 2$site_c;
        ~8(?<site_d>\d)\.test$ 3$site_d; ~9(?<site_e>\d)\.test$ 4$site_e; }}
    map $host $swapped {{ ~^g(?<s_a>\d)(?<s_b>\d)(?<s_c>\d) g$s_a$s_c$s_b.test; }}
    map $host $next {{ ~^g0(?<n_a>\d\d) g1$n_a.test; ~^g1(?<n_b>\d\d) g2$n_b.test; ~^g2(?<n_c>\d\d) g3$n_c.test;
        ~^g3(?<n_d>\d\d) g4$n_d.test; ~^g4(?<n_e>\d\d) g0$n_e.test; }}
    server {{
        listen 127.0.0.1:{port};
        root {root}/$site;
        sub_filter_once off;
        sub_filter elsewhere-0.test $swapped;
        sub_filter elsewhere-1.test $next;
    }}
"""
_LINK = re.compile(rb'href="([^"#:]+\.html)(#[^"]*)?"')


class GrownCrawl:
    """A folder with `urls` known, and what it takes to go on there. Each stretch goes on from a copy of it."""

    def __init__(self, folder: Path, urls: int, port: int) -> None:
        self._folder = folder
        self._port = port
        self.urls = urls
        seeds = folder / "seeds"
        seeds.write_text("".join(f"{url}\n" for url in _known(urls)))
        (folder / "settings.toml").write_text(_SETTINGS)
        # also the hosts' robots.txt, and what so many seeds left to be compacted: that is not what a page costs
        self._crawl("grown", BEFORE, str(seeds))

    def stretch(self, pages: int) -> Stretch:
        """By the CPU of all processes of the crawl."""
        shutil.copytree(self._folder / "grown", self._folder / "crawl")
        os.sync()  # or a disk is written to meanwhile, and more of it where more is known
        idle, *_ = self._crawl("crawl", BEFORE)
        usage, received, requests = self._crawl("crawl", BEFORE + pages)
        shutil.rmtree(self._folder / "crawl")
        return Stretch(
            (usage.cpu - idle.cpu) / pages * 1e6,
            0.0,
            self.urls,
            usage.rss,
            kb_a_page=received / pages / 1_000,
            requests=requests,
        )

    def _crawl(self, name: str, pages: int, *seeds: str) -> tuple[Usage, int, int]:
        """Until there are so many in all. Also the bytes that came, and how many requests were made for them."""
        output = self._folder / "output"
        command = skitter_command("crawl", *seeds, "--into", str(self._folder / name), "--workers", "1")
        command += ["--config", str(self._folder / "settings.toml"), "--allow-private", "--json"]
        command += ["--resolve", f"*:80:127.0.0.1:{self._port}", "--max-pages", str(pages)]
        with output.open("wb") as stream:
            usage = run_with_usage(command, stream)
        last = json.loads(output.read_text().splitlines()[-1])
        figures = last.get("last", last)
        if usage.code or figures["pages_in_all"] != pages:
            raise SystemExit(f"a crawl for {pages:,} pages ended otherwise: {last}")
        return usage, figures["bytes"], figures["requests"]


@contextmanager
def grown_crawls(nginx: str, folder: Path, sizes: Sequence[int]) -> Iterator[list[GrownCrawl]]:
    """Each with pages of its own, which differ in where their links lead."""
    originals = _originals()
    folder.chmod(0o755)  # nginx gives up being root, and is to read what is in it
    with contextlib.ExitStack() as stack:
        crawls = []
        for size in sizes:
            place = folder / str(size)
            _write_pages(place / "pages", originals, size // HOSTS)
            port = stack.enter_context(serving(nginx, place / "pages", place, _SERVED))
            with ticking(f"a crawl that knows {size:,} URLs", every=10.0):
                crawls.append(GrownCrawl(place, size, port))
        yield crawls


def _known(urls: int) -> Iterator[str]:
    for number in range(urls):
        yield f"http://g{number % HOSTS:03}.test/p{number // HOSTS}.html"


def _originals() -> list[bytes]:
    """Without the largest indexes: with thousands of links a page they would be most of a stretch."""
    found = sorted(path for path in DOCUMENTS.rglob("*.html") if _SMALLEST < path.stat().st_size < _LARGEST)
    chosen = random.Random(1).sample(found, _SITES * _PAGES)
    return [path.read_bytes() for path in chosen]


def _write_pages(folder: Path, originals: Sequence[bytes], known: int) -> None:
    for number, page in enumerate(originals):
        site, place = divmod(number, _PAGES)
        path = folder / f"{site:02}" / f"p{place}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_leading_to(page, _targets(number, known)))


def _targets(number: int, known: int) -> list[bytes]:
    """As many for every page and size, anywhere in what is known."""
    chance = random.Random(number)
    own = [b"p%d.html" % target for target in chance.sample(range(known), _LINKED)]
    return own + [
        b"http://elsewhere-%d.test/p%d.html" % (n, chance.randrange(known)) for n in range(_ELSEWHERE)
    ]


def _leading_to(page: bytes, targets: Sequence[bytes]) -> bytes:
    """The page with its links led elsewhere: the first to the first target, and so on around. One with few of
    them is given the others at its end."""
    turns = itertools.count()

    def led(link: re.Match[bytes]) -> bytes:
        return b'href="%b%b"' % (targets[next(turns) % len(targets)], link[2] or b"")

    changed = _LINK.sub(led, page)
    return changed + b"".join(b'<a href="%b">more</a>' % target for target in targets[next(turns) :])
