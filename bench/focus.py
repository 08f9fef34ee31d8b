"""A crawl about a topic beside one breadth first: how much of what is first fetched is about it?

    python -m bench.focus

nginx serves Debian's documentation of PostgreSQL and Python on loopback. For each topic three crawls fetch the
first tenth of the site: breadth first, by words, and by a model that was trained from a few example pages.
A page is about a topic when every hundredth word of its text is one of the topic's: that is judged from the
files, not by what the crawl says. A table, one JSON object as the last line; exit code 1 when the harvest over
all topics is less than 3 times breadth first's, 2 without the packages.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import skitter
from bench._crawls import run_with_usage, skitter_command
from bench._nginx import serving
from bench._peers import complain, found, want
from bench._report import last_line, progress, table
from skitter.focus.classifier import train
from skitter.focus.model_file import write_model
from skitter.focus.words import Words
from skitter.parse.page import read_page

LEAST_RATIO = 3.0
_ABOUT = 0.5
_EXAMPLES, _OTHERS = 6, 60
_SETTINGS = """\
[politeness]
delay = {delay}
slow_factor = 0
[sitemaps]
use = "off"
[traps]
mode = "off"
"""


class Site(NamedTuple):
    package: str
    root: Path
    topics: tuple[tuple[str, tuple[str, ...]], ...]


# Replication, triggers and asyncio were looked at while the rules were chosen; e-mail and xml came last.
SITES = (
    Site(
        "postgresql-doc-15",
        Path("/usr/share/doc/postgresql-doc-15/html"),
        (
            ("replication", ("replication", "standby")),
            ("triggers", ("trigger*",)),
            ("authentication", ("authentication", "password*", "certificate*")),
        ),
    ),
    Site(
        "python3-doc",
        Path("/usr/share/doc/python3.11/html"),
        (
            ("asyncio", ("asyncio", "coroutine*", "await*")),
            ("e-mail", ("email*", "mime*")),
            ("xml", ("xml", "dom", "sax")),
        ),
    ),
)


class Texts(NamedTuple):
    """Of a site: the text of each page by its path."""

    pages: dict[str, str]

    @classmethod
    def read(cls, root: Path) -> Texts:
        pages = {}
        for file in sorted(root.rglob("*.html")):
            path = "/" + file.relative_to(root).as_posix()
            page = read_page(
                file.read_bytes(), url=f"http://x{path}", content_type="text/html", with_text=True
            )
            pages[path] = page.text
        return cls(pages)

    def about(self, words: Sequence[str]) -> list[str]:
        wanted = Words(words)
        found = [path for path, text in self.pages.items() if wanted.density(text) >= _ABOUT]
        # a general index names everything and is about nothing
        return [path for path in found if "genindex" not in path]


class Harvest(NamedTuple):
    """Pages about a topic: in all, and among those first fetched. Of `by_model` and `breadth_for_model` without
    the examples that the model was trained from."""

    topic: str
    pages: int
    relevant: int
    first: int
    by_breadth: int
    by_words: int
    breadth_for_model: int
    by_model: int


def measure(site: Site, port: int, folder: Path, texts: Texts, share: float, delay: float) -> list[Harvest]:
    config = folder / "settings.toml"
    config.write_text(_SETTINGS.format(delay=delay))
    first = max(10, round(share * len(texts.pages)))
    jobs: list[tuple[str, list[str]]] = [("breadth", [])]
    examples: dict[str, set[str]] = {}
    for name, words in site.topics:
        jobs.append((f"{name}-words", [flag for word in words for flag in ("--focus", word)]))
        examples[name] = _trained(texts, words, folder / f"{name}.json")
        jobs.append((f"{name}-model", ["--focus-model", str(folder / f"{name}.json")]))
    with ThreadPoolExecutor(len(jobs)) as pool:
        fetched = dict(
            zip(
                [job for job, _ in jobs],
                pool.map(lambda job: _first_pages(site, port, folder, config, first, *job), jobs),
                strict=True,
            )
        )
    harvests = []
    for name, words in site.topics:
        relevant = {*texts.about(words)}
        unseen = relevant - examples[name]
        counts = (
            len(relevant.intersection(fetched["breadth"])),
            len(relevant.intersection(fetched[f"{name}-words"])),
            len(unseen.intersection(fetched["breadth"])),
            len(unseen.intersection(fetched[f"{name}-model"])),
        )
        harvests.append(Harvest(name, len(texts.pages), len(relevant), first, *counts))
    return harvests


def _trained(texts: Texts, words: Sequence[str], file: Path) -> set[str]:
    """Pages that somebody would show as examples: those with the most of the words, every other one; and others
    at random."""
    about, wanted = texts.about(words), Words(words)
    others = [path for path in texts.pages if path not in set(about)]
    ranked = sorted(about, key=lambda path: (-wanted.density(texts.pages[path]), -len(texts.pages[path])))
    good = ranked[::2][:_EXAMPLES]
    bad = others[:: max(1, len(others) // _OTHERS)][:_OTHERS]
    write_model(file, train([texts.pages[path] for path in good], [texts.pages[path] for path in bad]))
    return set(good)


def _first_pages(
    site: Site, port: int, folder: Path, config: Path, first: int, job: str, flags: list[str]
) -> list[str]:
    host, into = f"{site.package}.test", folder / job
    command = skitter_command(
        *("crawl", f"http://{host}/index.html", "--into", str(into), "--config", str(config)),
        *("--max-pages", str(first), "--allow-private", "--resolve", f"{host}:80:127.0.0.1:{port}", "--json"),
        *flags,
    )
    progress(f"{site.package}: {job}")
    usage = run_with_usage(command)
    if usage.code:
        raise SystemExit(f"bench.focus: {' '.join(command)} ended with {usage.code}")
    asked = "select url from pages where kind = 'page' and status = 200 order by fetch_time"
    with skitter.open(into) as crawl, crawl.duckdb() as tables:
        rows = tables.execute(asked).fetchall()
    return [url.removeprefix(f"http://{host}") for (url,) in rows][:first]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.focus", description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=0.1, help="of the site that is fetched")
    parser.add_argument("--delay", type=float, default=0.25, help="between two requests; 1 is usual")
    options = parser.parse_args(arguments)
    if absent := want("nginx", *(site.package for site in SITES)):
        return complain("focus", absent)
    nginx = found("nginx")
    assert nginx is not None
    harvests: list[Harvest] = []
    with tempfile.TemporaryDirectory(prefix="skitter-focus-") as name:
        for site in SITES:
            folder = Path(name) / site.package
            folder.mkdir()
            texts = Texts.read(site.root)
            with serving(nginx, site.root, folder) as port:
                harvests += measure(site, port, folder, texts, options.share, options.delay)
    heading = (
        "topic",
        "pages",
        "about it",
        "fetched",
        "breadth first",
        "by words",
        "breadth first*",
        "by model*",
    )
    words = sum(each.by_words for each in harvests) / max(1, sum(each.by_breadth for each in harvests))
    model = sum(each.by_model for each in harvests) / max(1, sum(each.breadth_for_model for each in harvests))
    print(table([heading, *harvests]))
    print("* without the pages that the model was trained from")
    print(f"all topics: {words:.1f} times breadth first by words, {model:.1f} times by model")
    last_line(
        {"bench": "focus", "words": words, "model": model, "topics": [each._asdict() for each in harvests]}
    )
    return int(min(words, model) < LEAST_RATIO)


if __name__ == "__main__":
    sys.exit(main())
