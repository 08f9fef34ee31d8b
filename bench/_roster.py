"""Who takes part: skitter on one interpreter or several, and every peer that could be had, set up for a mirror.

`bench.mirror` and `bench.tls` run all of a roster in turns. Who could not be had is in it too, with the reason.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from bench import _installed as installed
from bench._mirrors import Crawler, by_script, by_skitter, by_wget2
from bench._other_mirrors import by_colly, by_heritrix, by_katana, by_spider
from bench._peers import peers_python

# Half a minute of it: Crawlee takes 22 ms a page. A CrawlSpider takes more for the later pages than for these.
CUT_PAGES = 1_500
RECOMMENDED, LEAN = "Scrapy (CrawlSpider)", "Scrapy (lean)"
QUICK = ("wget2", "scrapy", "crawlee")
# Built from source, or unpacked: minutes when they are asked for the first time.
COMPILED: dict[str, tuple[str, Callable[[], installed.Had], Callable[[Path], Crawler] | None]] = {
    "colly": ("Colly", installed.colly, by_colly),
    "spider": ("spider", installed.spider, by_spider),
    "heritrix": ("Heritrix", installed.heritrix, by_heritrix),
    "katana": ("Katana", installed.katana, by_katana),
    "zeno": ("Zeno", installed.zeno, None),
    "nutch": ("Nutch", installed.nutch, None),
    "stormcrawler": ("StormCrawler", installed.stormcrawler, None),
    "bubing": ("BUbiNG", installed.bubing, None),
}
ALL = (*QUICK, *COMPILED)


class Roster(msgspec.Struct):
    """By name, skitter first. `cut` are those that stop before they have all pages; `absent` says why."""

    crawlers: dict[str, Crawler]
    cut: set[str] = msgspec.field(default_factory=set)
    absent: dict[str, str] = msgspec.field(default_factory=dict)


def roster(names: Sequence[str], pythons: Sequence[str], *, cut: int = 0, goes_on: bool = False) -> Roster:
    """`cut` is where Scrapy (lean) stops; `goes_on` sets up each so that it can be started again, if it can."""
    found = Roster({"skitter": by_skitter()})
    for python in pythons:
        _add_skitter(found, python)
    if "wget2" in names:
        found.crawlers["wget2"] = by_wget2(5, *(["--no-clobber"] if goes_on else []))
    _add_scripts(found, names, cut, goes_on)
    for name, (title, had, crawler) in COMPILED.items():
        if name in names:
            _add_compiled(found, title, had(), crawler)
    return found


def chosen(text: str) -> list[str]:
    """The peers of a list like `wget2,colly`; `all` and `none` are lists too."""
    names = {"all": [*ALL], "none": []}.get(text, [name for name in text.split(",") if name])
    unknown = [name for name in names if name not in ALL]
    if unknown:
        raise SystemExit(
            f"--peers: {', '.join(unknown)} is not known; give some of {','.join(ALL)}, or all, or none"
        )
    return names


def _add_skitter(found: Roster, python: str) -> None:
    title = f"skitter ({python})"
    had = installed.skitter_on(python)
    if isinstance(had, installed.Absent):
        found.absent[title] = had.why
    else:
        found.crawlers[title] = by_skitter(had.path)


def _add_scripts(found: Roster, names: Sequence[str], cut: int, goes_on: bool) -> None:
    python = peers_python() if {"scrapy", "crawlee"} & set(names) else None
    if python is None:
        return
    more = ["goes-on"] if goes_on else []
    if "scrapy" in names:
        found.crawlers[LEAN] = by_script(python, "scrapy_mirror.py", cut, "lean", *more)
        found.cut |= {LEAN} if cut else set()
        if not goes_on:
            found.crawlers[RECOMMENDED] = by_script(python, "scrapy_mirror.py", CUT_PAGES, "crawl-spider")
            found.cut.add(RECOMMENDED)
    if "crawlee" in names:
        found.crawlers["Crawlee"] = by_script(python, "crawlee_mirror.py", 0 if goes_on else CUT_PAGES, *more)
        found.cut |= set() if goes_on else {"Crawlee"}


def _add_compiled(
    found: Roster, title: str, had: installed.Had, crawler: Callable[[Path], Crawler] | None
) -> None:
    if isinstance(had, installed.Absent):
        found.absent[title] = had.why
    elif crawler is None:
        found.absent[title] = "it has no end of its own, so it takes part in bench.broad only"
    else:
        found.crawlers[title] = crawler(had.path)


def interpreter() -> str:
    """The one that runs skitter from its source, in words for a table."""
    return f"{sys.version.split()[0]} of {sys.base_prefix}"
