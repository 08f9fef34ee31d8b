"""One real site, mirrored by skitter and its peers in turn: CPU, time and memory for the same pages.

    python -m bench.mirror --rounds 3
    python -m bench.mirror --quick

nginx serves Debian's openjdk-17-doc (10,137 pages of 29 KB) on loopback; skitter, wget2, Scrapy and Crawlee take
turns. A table, what differs, the targets and one JSON object as the last line; exit code 1 when skitter did not
archive each reachable page exactly once or a target is missed, 2 when a program is missing.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from html import unescape
from pathlib import Path
from statistics import median
from urllib.parse import unquote, urlsplit

from bench._mirrors import HOME, Mirror, Round, by_script, by_skitter, by_wget2
from bench._nginx import serving
from bench._peers import DOCS, complain, found, peers_python, want
from bench._report import last_line, progress, table, ticking
from bench._targets import Target, judged, show_targets

WGET2_THREADS = (1, 2, 5, 8, 16)
TRIES = 2
# Half a minute of it: Crawlee takes 22 ms a page. A CrawlSpider takes more for the later pages than for these.
CUT_PAGES = 1_500
RECOMMENDED, LEAN = "Scrapy (CrawlSpider)", "Scrapy (lean)"
QUICK_PAGES = 1_500

_HREF = re.compile(r"""<(?:a|area)\s[^>]*?\bhref\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
SHOWN = 5
Figures = dict[str, list[float]]


def reachable(root: Path, home: str = HOME) -> set[str]:
    """The pages on disk to which links lead from the first one, found by a regular expression and nothing else:
    javadoc's markup allows it, and it shares no code with any of the crawlers."""
    seen, queue = {home}, [home]
    while queue:
        page = queue.pop()
        for path in _linked(page, (root / page[1:]).read_text("utf-8")) - seen:
            if path.endswith(".html") and (root / path[1:]).is_file():
                seen.add(path)
                queue.append(path)
    return seen


def _linked(page: str, text: str) -> set[str]:
    hrefs = {unescape(double or single).partition("#")[0] for double, single in _HREF.findall(text)}
    parts = [urlsplit(href) for href in hrefs if href]
    folder = posixpath.dirname(page)
    return {
        posixpath.normpath(posixpath.join(folder, unquote(part.path)))
        for part in parts
        if part.path and not part.scheme and not part.netloc
    }


def run_once(mirror: Mirror, port: int, place: Path, words: str) -> Round:
    """What was stored stays in `place` until the last crawler has ended: for minutes after ten thousand files
    were removed, ext4 looks at each of their inodes before it gives one to a new file. wget2 took twice the CPU
    so."""
    with ticking(words):
        done = mirror(port, Path(tempfile.mkdtemp(dir=place)))
    progress(f"{words}: {len(done.pages):,} pages, {done.usage.wall:.1f} s, CPU {done.usage.cpu:.1f} s")
    return done


def best_threads(port: int, place: Path, choices: Sequence[int]) -> int:
    """By the least wall time of two tries: the peer is measured at its fastest. The first run, which also warms
    the page cache, is not counted."""
    run_once(by_wget2(choices[0]), port, place, "warming up with wget2")
    walls = {threads: float("inf") for threads in choices}
    for number in range(1, TRIES + 1):
        for threads in choices:
            words = f"try {number} of {TRIES}, wget2 with {threads} threads"
            wall = run_once(by_wget2(threads), port, place, words).usage.wall
            walls[threads] = min(walls[threads], wall)
    return min(choices, key=lambda threads: walls[threads])


def figures(rounds: Sequence[Round]) -> Figures:
    return {
        "pages": [float(len(done.pages)) for done in rounds],
        "wall_seconds": [done.usage.wall for done in rounds],
        "cpu_seconds": [done.usage.cpu for done in rounds],
        "of_them_system": [done.usage.system for done in rounds],
        "cpu_us_per_page": [done.usage.cpu / max(1, len(done.pages)) * 1e6 for done in rounds],
        "cpu_seconds_elsewhere": [done.elsewhere for done in rounds],
        "pages_per_second": [len(done.pages) / done.usage.wall for done in rounds],
        "rss_mb": [done.usage.rss / 1e6 for done in rounds],
    }


def differences(name: str, done: Round, wanted: set[str], *, is_cut: bool = False) -> list[str]:
    """`is_cut`: the crawler was told to stop early, so what is missing says nothing."""
    there = set(done.pages)
    twice = [path for path, count in done.pages.items() if count > 1]
    lines = [f"{name}: {fault}" for fault in done.faults[:SHOWN]]
    missing = set[str]() if is_cut else wanted - there
    for what, paths in (("missing", missing), ("extra", there - wanted), ("twice", twice)):
        if paths:
            lines.append(f"{name}: {len(paths):,} {what}: {' '.join(sorted(paths)[:SHOWN])}")
    return lines


def crawlers(port: int, place: Path, options: argparse.Namespace) -> tuple[dict[str, Mirror], set[str]]:
    """By name, skitter first; and those that stop before they have all pages."""
    threads = options.threads or best_threads(port, place, WGET2_THREADS)
    known: dict[str, Mirror] = {"skitter": by_skitter, f"wget2, {threads} threads": by_wget2(threads)}
    python = None if options.without_python else peers_python()
    if python is None:
        return known, set()
    scrapy = QUICK_PAGES if options.quick else 0
    known[LEAN] = by_script(python, "scrapy_mirror.py", scrapy)
    known[RECOMMENDED] = by_script(python, "scrapy_mirror.py", CUT_PAGES, "crawl-spider")
    known["Crawlee"] = by_script(python, "crawlee_mirror.py", CUT_PAGES)
    return known, {"Crawlee", RECOMMENDED, *([LEAN] if scrapy else [])}


def compare(port: int, place: Path, options: argparse.Namespace) -> int:
    with ticking("looking for the pages that are reachable"):
        wanted = reachable(options.docs)
    running, cut = crawlers(port, place, options)
    rounds: dict[str, list[Round]] = {name: [] for name in running}
    for number in range(1, options.rounds + 1):
        for name, mirror in running.items():
            words = f"round {number} of {options.rounds}, {name}"
            rounds[name].append(run_once(mirror, port, place, words))
    wrong = [line for done in rounds["skitter"] for line in differences("skitter", done, wanted)]
    notes = [
        line
        for name, done in rounds.items()
        if name != "skitter"
        for line in differences(name, done[0], wanted, is_cut=name in cut)
    ]
    measured = {name: figures(done) for name, done in rounds.items()}
    if LEAN in measured:
        notes.append(_beside_lean(measured))
    verdicts = targets(measured)
    show(len(wanted), measured, wrong + notes, verdicts)
    return 1 if wrong or not judged(verdicts) else 0


def targets(measured: Mapping[str, Figures]) -> list[Target]:
    cpu = {name.partition(",")[0]: median(values["cpu_us_per_page"]) for name, values in measured.items()}
    found = [Target("CPU a page, times wget2's", cpu["skitter"] / cpu["wget2"], most=1.5)]
    if RECOMMENDED in cpu:
        found.append(Target("Scrapy's CPU a page, times ours", cpu[RECOMMENDED] / cpu["skitter"], least=20.0))
    return found


def _beside_lean(measured: Mapping[str, Figures]) -> str:
    """Not a target: no documentation tells how to strip Scrapy to this."""
    lean, ours = (median(measured[name]["cpu_us_per_page"]) for name in (LEAN, "skitter"))
    return f"{LEAN}: {lean / ours:.1f} times our CPU a page"


def show(wanted: int, measured: Mapping[str, Figures], notes: list[str], verdicts: list[Target]) -> None:
    heading = [cell for name in measured for cell in (name, "spread")]
    rows: list[Sequence[object]] = [("", *heading)]
    for figure in measured["skitter"]:
        columns = [values[figure] for values in measured.values()]
        rows.append((figure.replace("_", " "), *(c for v in columns for c in (median(v), _spread(v)))))
    print(table(rows))
    print(f"{wanted:,} pages are reachable; medians of {len(measured['skitter']['pages'])} rounds")
    print(*notes, sep="\n", end="\n" if notes else "")
    show_targets(verdicts)
    last_line(
        {
            "bench": "mirror",
            "reachable": wanted,
            "rounds": len(measured["skitter"]["pages"]),
            "crawlers": {
                name: {figure: _summary(values) for figure, values in found.items()}
                for name, found in measured.items()
            },
            "targets": {target.words: target.row() for target in verdicts},
            "notes": notes,
        }
    )


def _spread(values: Iterable[float]) -> str:
    ordered = sorted(values)
    return f"{ordered[0]:,.1f} to {ordered[-1]:,.1f}" if ordered[0] < ordered[-1] else "none"


def _summary(values: Sequence[float]) -> dict[str, float]:
    return {
        "median": round(median(values), 3),
        "least": round(min(values), 3),
        "most": round(max(values), 3),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.mirror", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, help="of wget2; without it several are tried")
    parser.add_argument("--docs", type=Path, default=DOCS, help="the site, with an index.html")
    parser.add_argument("--quick", action="store_true", help="one round, five threads, a part by Scrapy")
    parser.add_argument("--without-python", action="store_true", help="wget2 is the only peer")
    options = parser.parse_args(arguments)
    if options.quick:
        options.rounds, options.threads = 1, options.threads or 5
    absent = want("nginx", "wget2", *(["openjdk-17-doc"] if options.docs == DOCS else []))
    if absent:
        return complain("mirror", absent)
    with (
        tempfile.TemporaryDirectory(prefix="skitter-nginx-") as folder,
        tempfile.TemporaryDirectory(prefix="skitter-mirror-") as place,
    ):
        os.chmod(folder, 0o755)
        with serving(found("nginx") or "nginx", options.docs, Path(folder)) as port:
            return compare(port, Path(place), options)


if __name__ == "__main__":
    sys.exit(main())
