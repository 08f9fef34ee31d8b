"""How each crawler mirrors one site: its command, what it stored, and what that took.

Used by `bench.mirror`, which compares them. All get the same site, the same first page and at most 16 requests at
once; none is asked to do without its own robots.txt.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from bench._crawls import Usage, run_with_usage, skitter_command
from bench._peers import SCRIPTS
from bench._records import archive_faults, records

HOST = "docs.test"
HOME = "/index.html"

SETTINGS = """\
[hosts."{origin}"]
delay = 0
parallel = 16
"""
TRUSTED = """
[fetch]
ca_file = "{ca_file}"
"""

# The manual's advice for speed is --max-threads; the rest takes away what is not mirroring: reports, state
# files for TLS and cookies, and everything that is not a page (skitter does not follow these either).
WGET2 = (
    "--recursive --level=inf --quiet --progress=none --no-hsts --no-ocsp --no-cookies --no-local-db"
    " --filter-urls --reject=css,js,png,gif,svg,zip --no-host-directories"
).split()


class Site(msgspec.Struct, frozen=True):
    """What is mirrored: a server on loopback; with https where crawlers get an issuer to trust."""

    port: int
    ca_file: Path | None = None

    @property
    def scheme(self) -> str:
        return "https" if self.ca_file else "http"

    @property
    def home(self) -> str:
        """For crawlers that know no other name of it."""
        return f"{self.scheme}://127.0.0.1:{self.port}{HOME}"


class Round(msgspec.Struct):
    """One mirror of the site. `pages` are the paths that were stored, as often as they were; `elsewhere` is the
    CPU time that the machine spent meanwhile on all but the crawler: on nginx and on whatever else ran."""

    usage: Usage
    pages: Counter[str]
    faults: list[str]
    elsewhere: float = 0.0


class Crawler(msgspec.Struct, frozen=True):
    """How one is called for a site and a folder, and what it has stored there. The same command goes on."""

    command: Callable[[Site, Path], list[str]]
    stored: Callable[[Path], Counter[str]]
    faults: Callable[[Path], list[str]] = lambda folder: []
    environ: Callable[[Site], Mapping[str, str]] = lambda site: {}


def mirror_once(crawler: Crawler, site: Site, folder: Path) -> Round:
    before = machine_cpu()
    usage = run_with_usage(crawler.command(site, folder), environ=crawler.environ(site))
    elsewhere = machine_cpu() - before - usage.cpu
    faults = [*crawler.faults(folder), *([f"exit code {usage.code}"] if usage.code else [])]
    return Round(usage, crawler.stored(folder), faults, elsewhere)


def machine_cpu() -> float:
    """Seconds that the machine's cores have been busy (proc(5), /proc/stat)."""
    ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = ticks
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def crawl_arguments(port: int, folder: Path, ca_file: Path | None = None) -> list[str]:
    """The arguments of `skitter` for this mirror; the crawl goes to `crawl` in the folder."""
    config = folder / "settings.toml"
    site = Site(port, ca_file)
    origin = f"{site.scheme}://{HOST}"
    config.write_text(SETTINGS.format(origin=origin) + (TRUSTED.format(ca_file=ca_file) if ca_file else ""))
    places = ["--into", str(folder / "crawl"), "--config", str(config)]
    places += ["--resolve", f"{HOST}:{443 if ca_file else 80}:127.0.0.1:{port}", "--allow-private"]
    return ["crawl", f"{origin}{HOME}", *places]


def by_skitter(python: Path | None = None) -> Crawler:
    """With a `python`, as it is installed there, and not from the source that runs this."""
    program = ["env", "-u", "PYTHONPATH", str(python), "-m", "skitter"] if python else skitter_command()

    def command(site: Site, folder: Path) -> list[str]:
        return [*program, *crawl_arguments(site.port, folder, site.ca_file)]

    return Crawler(command, _records_of, _faults_of)


def _records_of(folder: Path) -> Counter[str]:
    found = records(folder / "crawl" / "archive")
    return Counter(unquote(urlsplit(record.url).path) for record in found if record.status == 200)


def _faults_of(folder: Path) -> list[str]:
    archive = folder / "crawl" / "archive"
    return archive_faults(archive, records(archive))


def by_wget2(threads: int, *more: str) -> Crawler:
    def command(site: Site, folder: Path) -> list[str]:
        where = [f"--max-threads={threads}", f"--directory-prefix={folder}/files", *more]
        where += [f"--ca-certificate={site.ca_file}"] if site.ca_file else []
        return ["wget2", *WGET2, *where, site.home]

    return Crawler(command, files_of)


def by_script(python: str, script: str, pages: int, *form: str) -> Crawler:
    """A peer in Python. `pages` is where it stops; 0 is never."""

    def command(site: Site, folder: Path) -> list[str]:
        return [python, str(SCRIPTS / script), site.home, str(folder / "files"), str(pages), *form]

    return Crawler(command, files_of)


def files_of(folder: Path) -> Counter[str]:
    """Of a crawler that writes a file a page, under its path."""
    files = folder / "files"
    return Counter(f"/{path.relative_to(files)}" for path in files.rglob("*.html"))
