"""One real site, mirrored by skitter and by wget2 in turn: CPU, time and memory for the same pages.

    python -m bench.mirror --rounds 3

nginx serves Debian's openjdk-17-doc (10,137 pages of 29 KB) on loopback. skitter runs as one process with its
defaults, and with the delay that the operator of that one host may waive; wget2 as its manual advises for
speed, with the number of threads that proves best here. A table, what differs, one JSON object as the last
line; exit code 1 when skitter did not archive each reachable page exactly once, 2 when a program is missing.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from html import unescape
from pathlib import Path
from statistics import median
from urllib.parse import unquote, urlsplit

import msgspec

from bench._crawls import Usage, run_with_usage, skitter_command
from bench._nginx import serving
from bench._records import archive_faults, records
from bench._report import last_line, progress, table, ticking

DOCS = Path("/usr/share/doc/openjdk-17-jre-headless/api")
PACKAGES = ("openjdk-17-doc", "nginx", "wget2")
HOST = "docs.test"
HOME = "/index.html"

SETTINGS = f"""\
[hosts."http://{HOST}"]
delay = 0
parallel = 16
"""

# The manual's advice for speed is --max-threads; the rest takes away what is not mirroring: reports, state
# files for TLS and cookies, and everything that is not a page (skitter does not follow these either).
WGET2 = (
    "--recursive --level=inf --quiet --progress=none --no-hsts --no-ocsp --no-cookies --no-local-db"
    " --filter-urls --reject=css,js,png,gif,svg,zip --no-host-directories"
).split()
WGET2_THREADS = (1, 2, 5, 8, 16)
TRIES = 2

_HREF = re.compile(r"""<(?:a|area)\s[^>]*?\bhref\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
SHOWN = 5


class Round(msgspec.Struct):
    """One mirror of the site. `pages` are the paths that were stored, as often as they were; `elsewhere` is the
    CPU time that the machine spent meanwhile on all but the crawler: on nginx and on whatever else ran."""

    usage: Usage
    pages: Counter[str]
    faults: list[str]
    elsewhere: float = 0.0


def reachable(root: Path, home: str = HOME) -> set[str]:
    """The pages on disk to which links lead from the first one, found by a regular expression and nothing else:
    javadoc's markup allows it, and it shares no code with either crawler."""
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


def measured(command: Sequence[str]) -> tuple[Usage, float]:
    before = machine_cpu()
    usage = run_with_usage(command)
    return usage, machine_cpu() - before - usage.cpu


def machine_cpu() -> float:
    """Seconds that the machine's cores have been busy (proc(5), /proc/stat)."""
    ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = ticks
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def mirror_by_skitter(port: int, folder: Path) -> Round:
    config = folder / "settings.toml"
    config.write_text(SETTINGS)
    command = skitter_command("crawl", f"http://{HOST}{HOME}", "--into", str(folder / "crawl"))
    command += ["--config", str(config), "--resolve", f"{HOST}:80:127.0.0.1:{port}", "--allow-private"]
    usage, elsewhere = measured(command)
    archive = folder / "crawl" / "archive"
    found = records(archive)
    faults = archive_faults(archive, found)
    if usage.code:
        faults.append(f"exit code {usage.code}")
    pages = Counter(unquote(urlsplit(record.url).path) for record in found if record.status == 200)
    return Round(usage, pages, faults, elsewhere)


def mirror_by_wget2(threads: int) -> Callable[[int, Path], Round]:
    def mirror(port: int, folder: Path) -> Round:
        where = [f"--max-threads={threads}", f"--directory-prefix={folder}/files"]
        usage, elsewhere = measured(["wget2", *WGET2, *where, f"http://127.0.0.1:{port}{HOME}"])
        files = folder / "files"
        pages = Counter(f"/{path.relative_to(files)}" for path in files.rglob("*.html"))
        return Round(usage, pages, [f"exit code {usage.code}"] if usage.code else [], elsewhere)

    return mirror


def run_once(mirror: Callable[[int, Path], Round], port: int, words: str) -> Round:
    with tempfile.TemporaryDirectory(prefix="skitter-mirror-") as folder, ticking(words):
        done = mirror(port, Path(folder))
    progress(f"{words}: {len(done.pages):,} pages, {done.usage.wall:.1f} s, CPU {done.usage.cpu:.1f} s")
    return done


def best_threads(port: int, choices: Sequence[int]) -> int:
    """By the least wall time of two tries: the peer is measured at its fastest. The first run, which also warms
    the page cache, is not counted."""
    run_once(mirror_by_wget2(choices[0]), port, "warming up with wget2")
    walls = {threads: float("inf") for threads in choices}
    for number in range(1, TRIES + 1):
        for threads in choices:
            words = f"try {number} of {TRIES}, wget2 with {threads} threads"
            walls[threads] = min(walls[threads], run_once(mirror_by_wget2(threads), port, words).usage.wall)
    return min(choices, key=lambda threads: walls[threads])


def figures(rounds: Sequence[Round]) -> dict[str, list[float]]:
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


def differences(name: str, done: Round, wanted: set[str]) -> list[str]:
    found = set(done.pages)
    twice = [path for path, count in done.pages.items() if count > 1]
    lines = [f"{name}: {fault}" for fault in done.faults[:SHOWN]]
    for what, paths in (("missing", wanted - found), ("extra", found - wanted), ("twice", twice)):
        if paths:
            lines.append(f"{name}: {len(paths):,} {what}: {' '.join(sorted(paths)[:SHOWN])}")
    return lines


def compare(port: int, options: argparse.Namespace) -> int:
    with ticking("looking for the pages that are reachable"):
        wanted = reachable(options.docs)
    threads = options.threads or best_threads(port, WGET2_THREADS)
    ours: list[Round] = []
    theirs: list[Round] = []
    for number in range(1, options.rounds + 1):
        words = f"round {number} of {options.rounds}"
        ours.append(run_once(mirror_by_skitter, port, f"{words}, skitter"))
        theirs.append(run_once(mirror_by_wget2(threads), port, f"{words}, wget2 with {threads} threads"))
    wrong = [line for done in ours for line in differences("skitter", done, wanted)]
    theirs_wrong = [line for done in theirs[:1] for line in differences("wget2", done, wanted)]
    show(len(wanted), threads, figures(ours), figures(theirs), wrong + theirs_wrong)
    return 1 if wrong else 0


def show(
    wanted: int, threads: int, ours: dict[str, list[float]], theirs: dict[str, list[float]], notes: list[str]
) -> None:
    rows: list[Sequence[object]] = [("", "skitter", "spread", f"wget2, {threads} threads", "spread", "ratio")]
    ratios = {name: median(ours[name]) / median(theirs[name]) for name in ours if median(theirs[name])}
    for name in ours:
        cells = [cell for values in (ours[name], theirs[name]) for cell in (median(values), _spread(values))]
        rows.append((name.replace("_", " "), *cells, ratios.get(name, 0.0)))
    print(table(rows))
    print(
        f"{wanted:,} pages are reachable; medians of {len(ours['pages'])} rounds; ratio is skitter to wget2"
    )
    print(*notes, sep="\n", end="\n" if notes else "")
    last_line(
        {
            "bench": "mirror",
            "reachable": wanted,
            "rounds": len(ours["pages"]),
            "wget2_threads": threads,
            "skitter": {name: _summary(values) for name, values in ours.items()},
            "wget2": {name: _summary(values) for name, values in theirs.items()},
            "ratio": {name: round(ratio, 3) for name, ratio in ratios.items()},
            "notes": notes,
        }
    )


def _spread(values: Iterable[float]) -> str:
    found = sorted(values)
    return f"{found[0]:,.1f} to {found[-1]:,.1f}" if found[0] < found[-1] else "none"


def _summary(values: Sequence[float]) -> dict[str, float]:
    return {
        "median": round(median(values), 3),
        "least": round(min(values), 3),
        "most": round(max(values), 3),
    }


def find_nginx() -> str | None:
    """Debian keeps it where only root's PATH leads."""
    return shutil.which("nginx", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))


def missing(docs: Path) -> list[str]:
    here = (docs / HOME[1:]).is_file(), find_nginx(), shutil.which("wget2")
    return [package for package, found in zip(PACKAGES, here, strict=True) if not found]


def install(packages: Sequence[str]) -> None:
    progress(f"installing {' '.join(packages)}")
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.mirror", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, help="of wget2; without it several are tried")
    parser.add_argument("--docs", type=Path, default=DOCS, help="the site, with an index.html")
    options = parser.parse_args(arguments)
    absent = missing(options.docs)
    if absent and os.geteuid() == 0 and shutil.which("apt-get"):
        install(absent)
        absent = missing(options.docs)
    nginx = find_nginx()
    if absent or nginx is None:
        print(
            f"bench.mirror: {', '.join(absent)} missing: apt-get install {' '.join(absent)}", file=sys.stderr
        )
        return 2
    with tempfile.TemporaryDirectory(prefix="skitter-nginx-") as folder:
        os.chmod(folder, 0o755)
        with serving(nginx, options.docs, Path(folder)) as port:
            return compare(port, options)


if __name__ == "__main__":
    sys.exit(main())
