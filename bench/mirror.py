"""One real site, mirrored by skitter and its peers in turn: CPU, time and memory for the same pages.

    python -m bench.mirror --rounds 3
    python -m bench.mirror --peers wget2,colly --kill
    python -m bench.mirror --quick

nginx serves Debian's openjdk-17-doc (10,137 pages of 29 KB) on loopback; skitter and its peers take turns. A
table, their duties, what differs, the targets and one JSON object as the last line; exit code 1 when skitter did
not archive each reachable page exactly once or a target is missed, 2 when a program is missing.
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

from bench._apart import leave_the_network
from bench._duties import Duties, duties, duty_rows, first_of_those_with_a_frontier, notes
from bench._lost import HEADING, Loss, killed_once
from bench._mirrors import HOME, Crawler, Round, Site, by_wget2, mirror_once
from bench._nginx import logged, serving
from bench._peers import DOCS, complain, found, want
from bench._report import last_line, progress, table, ticking
from bench._roster import ALL, LEAN, QUICK, RECOMMENDED, Roster, chosen, interpreter, roster
from bench._targets import Target, judged, show_targets

WGET2_THREADS = (1, 2, 5, 8, 16)
TRIES = 2
QUICK_PAGES = 1_500
# Where crawlers are killed: 1,169 pages, which the slowest mirrors in a minute.
KILLED_DOCS = Path("/usr/share/doc/postgresql-doc-15/html")

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


def run_once(crawler: Crawler, site: Site, place: Path, words: str) -> Round:
    """What was stored stays in `place` until the last crawler has ended: for minutes after ten thousand files
    were removed, ext4 looks at each of their inodes before it gives one to a new file. wget2 took twice the CPU
    so."""
    with ticking(words):
        done = mirror_once(crawler, site, Path(tempfile.mkdtemp(dir=place)))
    progress(f"{words}: {len(done.pages):,} pages, {done.usage.wall:.1f} s, CPU {done.usage.cpu:.1f} s")
    return done


def best_threads(site: Site, place: Path, choices: Sequence[int]) -> int:
    """By the least wall time of two tries: the peer is measured at its fastest. The first run, which also warms
    the page cache, is not counted."""
    run_once(by_wget2(choices[0]), site, place, "warming up with wget2")
    walls = {threads: float("inf") for threads in choices}
    for number in range(1, TRIES + 1):
        for threads in choices:
            words = f"try {number} of {TRIES}, wget2 with {threads} threads"
            wall = run_once(by_wget2(threads), site, place, words).usage.wall
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


def with_best_threads(taking: Roster, site: Site, place: Path, options: argparse.Namespace) -> Roster:
    """wget2 by a name that says how many threads it has."""
    if "wget2" not in taking.crawlers:
        return taking
    threads = options.threads or best_threads(site, place, WGET2_THREADS)
    named = {f"wget2, {threads} threads": by_wget2(threads)}
    rest = {name: crawler for name, crawler in taking.crawlers.items() if name != "wget2"}
    taking.crawlers = {"skitter": rest.pop("skitter"), **named, **rest}
    return taking


def compare(site: Site, place: Path, taking: Roster, options: argparse.Namespace) -> int:
    with ticking("looking for the pages that are reachable"):
        wanted = reachable(options.docs)
    taking = with_best_threads(taking, site, place, options)
    rounds: dict[str, list[Round]] = {name: [] for name in taking.crawlers}
    for number in range(1, options.rounds + 1):
        for name, crawler in taking.crawlers.items():
            words = f"round {number} of {options.rounds}, {name}"
            rounds[name].append(run_once(crawler, site, place, words))
    wrong = [line for done in rounds["skitter"] for line in differences("skitter", done, wanted)]
    differing = [
        line
        for name, done in rounds.items()
        if name != "skitter"
        for line in differences(name, done[0], wanted, is_cut=name in taking.cut)
    ]
    measured = {name: figures(done) for name, done in rounds.items()}
    if LEAN in measured:
        differing.append(_beside_lean(measured))
    verdicts = targets(measured, duties())
    show(len(wanted), measured, taking, wrong + differing, verdicts)
    return 1 if wrong or not judged(verdicts) else 0


def killed(place: Path, taking: Roster, log: Path, site: Site) -> int:
    """Each once: what a `kill -9` halfway cost."""
    wanted = reachable(KILLED_DOCS)
    losses: dict[str, Loss] = {}
    for name, crawler in taking.crawlers.items():
        with ticking(f"killing {name}"):
            losses[name] = killed_once(crawler, site, Path(tempfile.mkdtemp(dir=place)), log, wanted)
    print(table([HEADING, *(loss.row(name) for name, loss in losses.items())]))
    print(f"{len(wanted):,} pages are reachable")
    show_duties([*losses], taking.absent)
    ours = losses["skitter"]
    verdicts = [
        Target("pages lost after kill -9", float(ours.missing), most=0),
        Target("pages archived twice", float(ours.stored_twice), most=0),
    ]
    show_targets(verdicts)
    rows = {name: dict(zip(HEADING[1:], loss.row(name)[1:], strict=True)) for name, loss in losses.items()}
    last_line({"bench": "mirror --kill", "reachable": len(wanted), "crawlers": rows, "absent": taking.absent})
    return 0 if judged(verdicts) else 1


def targets(measured: Mapping[str, Figures], known: Mapping[str, Duties]) -> list[Target]:
    cpu = {name.partition(",")[0]: median(values["cpu_us_per_page"]) for name, values in measured.items()}
    found = []
    if "wget2" in cpu:
        found.append(Target("CPU a page, times wget2's", cpu["skitter"] / cpu["wget2"], most=1.5))
    if RECOMMENDED in cpu:
        found.append(Target("Scrapy's CPU a page, times ours", cpu[RECOMMENDED] / cpu["skitter"], least=20.0))
    first = first_of_those_with_a_frontier(cpu, known)
    found.append(
        Target(
            "CPU a page, times the least of all that keep a frontier", cpu["skitter"] / cpu[first], most=1.0
        )
    )
    return found


def _beside_lean(measured: Mapping[str, Figures]) -> str:
    """Not a target: no documentation tells how to strip Scrapy to this."""
    lean, ours = (median(measured[name]["cpu_us_per_page"]) for name in (LEAN, "skitter"))
    return f"{LEAN}: {lean / ours:.1f} times our CPU a page"


def show(
    wanted: int, measured: Mapping[str, Figures], taking: Roster, differing: list[str], verdicts: list[Target]
) -> None:
    print(table(rows_of(measured)))
    rounds = len(measured["skitter"]["pages"])
    print(f"{wanted:,} pages are reachable; medians of {rounds} rounds; skitter on Python {interpreter()}")
    print(*differing, sep="\n", end="\n" if differing else "")
    show_duties([*measured], taking.absent)
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
            "absent": taking.absent,
            "notes": differing,
        }
    )


def rows_of(measured: Mapping[str, Figures]) -> list[Sequence[object]]:
    """One row a crawler: a median, and its spread in the next column."""
    names = [*next(iter(measured.values()))]
    heading = [cell for name in names for cell in (name.replace("_", " "), "spread")]
    rows: list[Sequence[object]] = [("", *heading)]
    for crawler, values in measured.items():
        rows.append((crawler, *(c for name in names for c in (median(values[name]), _spread(values[name])))))
    return rows


def show_duties(names: Sequence[str], absent: Mapping[str, str]) -> None:
    known = duties()
    print(table(duty_rows(names, known)))
    print(*notes(names, known), sep="\n")
    for name, why in absent.items():
        print(f"{name} takes no part: {why}")


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
    options = _options(arguments)
    site = KILLED_DOCS if options.kill else options.docs
    packages = {DOCS: ["openjdk-17-doc"], KILLED_DOCS: ["postgresql-doc-15"]}
    absent = want("nginx", "wget2", *packages.get(site, []))
    if absent:
        return complain("mirror", absent)
    cut = QUICK_PAGES if options.quick else 0
    taking = roster(chosen(options.peers), options.python, cut=cut, goes_on=options.kill)
    if not leave_the_network():
        progress("without root the peers are not kept from the network")
    with (
        tempfile.TemporaryDirectory(prefix="skitter-nginx-") as folder,
        tempfile.TemporaryDirectory(prefix="skitter-mirror-") as place,
    ):
        os.chmod(folder, 0o755)
        log = Path(folder) / "access.log"
        server = {"server": logged(log)} if options.kill else {}
        with serving(found("nginx") or "nginx", site, Path(folder), **server) as port:
            if options.kill:
                return killed(Path(place), taking, log, Site(port))
            return compare(Site(port), Path(place), taking, options)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.mirror", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, help="of wget2; without it several are tried")
    parser.add_argument("--docs", type=Path, default=DOCS, help="the site, with an index.html")
    parser.add_argument("--quick", action="store_true", help="one round, five threads, a part by Scrapy")
    parser.add_argument(
        "--peers", help=f"all, none, or some of {','.join(ALL)}; with --quick {','.join(QUICK)}"
    )
    parser.add_argument("--python", action="append", default=[], help="skitter on this interpreter as well")
    parser.add_argument("--kill", action="store_true", help="only: what a kill -9 halfway costs each")
    options = parser.parse_args(arguments)
    if options.quick:
        options.rounds, options.threads = 1, options.threads or 5
    options.peers = options.peers or (",".join(QUICK) if options.quick else "all")
    return options


if __name__ == "__main__":
    sys.exit(main())
