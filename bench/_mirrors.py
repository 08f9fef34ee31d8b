"""How each crawler mirrors one site: its command, what it stored, and what that took.

Used by `bench.mirror`, which compares them. All get the same site, the same first page and at most 16 requests at
once; none is asked to do without its own robots.txt.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from bench._crawls import Usage, run_with_usage, skitter_command
from bench._peers import SCRIPTS
from bench._records import archive_faults, records

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


class Round(msgspec.Struct):
    """One mirror of the site. `pages` are the paths that were stored, as often as they were; `elsewhere` is the
    CPU time that the machine spent meanwhile on all but the crawler: on nginx and on whatever else ran."""

    usage: Usage
    pages: Counter[str]
    faults: list[str]
    elsewhere: float = 0.0


Mirror = Callable[[int, Path], Round]


def measured(command: Sequence[str]) -> tuple[Usage, float]:
    before = machine_cpu()
    usage = run_with_usage(command)
    return usage, machine_cpu() - before - usage.cpu


def machine_cpu() -> float:
    """Seconds that the machine's cores have been busy (proc(5), /proc/stat)."""
    ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = ticks
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def crawl_arguments(port: int, folder: Path) -> list[str]:
    """The arguments of `skitter` for this mirror; the crawl goes to `crawl` in the folder."""
    config = folder / "settings.toml"
    config.write_text(SETTINGS)
    places = ["--into", str(folder / "crawl"), "--config", str(config)]
    places += ["--resolve", f"{HOST}:80:127.0.0.1:{port}", "--allow-private"]
    return ["crawl", f"http://{HOST}{HOME}", *places]


def by_skitter(port: int, folder: Path) -> Round:
    usage, elsewhere = measured(skitter_command(*crawl_arguments(port, folder)))
    archive = folder / "crawl" / "archive"
    found = records(archive)
    faults = archive_faults(archive, found)
    if usage.code:
        faults.append(f"exit code {usage.code}")
    pages = Counter(unquote(urlsplit(record.url).path) for record in found if record.status == 200)
    return Round(usage, pages, faults, elsewhere)


def by_wget2(threads: int) -> Mirror:
    def mirror(port: int, folder: Path) -> Round:
        where = [f"--max-threads={threads}", f"--directory-prefix={folder}/files"]
        return _files(["wget2", *WGET2, *where, f"http://127.0.0.1:{port}{HOME}"], folder / "files")

    return mirror


def by_script(python: str, script: str, pages: int, *form: str) -> Mirror:
    """A peer in Python. `pages` is where it stops; 0 is never."""

    def mirror(port: int, folder: Path) -> Round:
        files = folder / "files"
        home = f"http://127.0.0.1:{port}{HOME}"
        return _files([python, str(SCRIPTS / script), home, str(files), str(pages), *form], files)

    return mirror


def _files(command: Sequence[str], files: Path) -> Round:
    usage, elsewhere = measured(command)
    pages = Counter(f"/{path.relative_to(files)}" for path in files.rglob("*.html"))
    return Round(usage, pages, [f"exit code {usage.code}"] if usage.code else [], elsewhere)
