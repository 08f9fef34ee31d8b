"""Four real sites, crawled with the defences against traps and without: the same URLs must come back.

    python -m bench.docs_equal

nginx serves four Debian packages of documentation on loopback, some 16,000 pages full of numbers, repetition and
templates, and not one trap. What is refused with the defences and fetched without is a good page lost. A table,
what differs, one JSON object as the last line; exit code 1 when anything differs, 2 when a package is missing.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench._crawls import Usage, run_with_usage, skitter_command
from bench._nginx import serving
from bench._peers import DOCS, complain, found, want
from bench._records import records
from bench._report import last_line, progress, table, ticking
from bench.traps import switch

SHOWN = 20
NOT_FOUND = 404
SETTINGS = """\
[politeness]
delay = 0
slow_factor = 0
"""


class Documentation(NamedTuple):
    """A package, where its pages lie, and where a crawl begins."""

    package: str
    root: Path
    home: str

    @property
    def host(self) -> str:
        return f"{self.package}.test"

    @property
    def seed(self) -> str:
        return f"http://{self.host}{self.home}"


DOCUMENTATION = (
    Documentation("openjdk-17-doc", DOCS, "/index.html"),
    Documentation("python3-doc", Path("/usr/share/doc/python3.11/html"), "/index.html"),
    Documentation("postgresql-doc-15", Path("/usr/share/doc/postgresql-doc-15/html"), "/index.html"),
    Documentation("cppreference-doc-en-html", Path("/usr/share/cppreference/doc/html"), "/en/index.html"),
)


class Pass(msgspec.Struct, frozen=True):
    """One crawl: every URL that was answered, and its status."""

    fetched: set[tuple[str, int]]
    usage: Usage


def crawl(sites: Sequence[Documentation], ports: Mapping[str, int], *, defended: bool) -> Pass:
    words = "with the defences" if defended else "without"
    with tempfile.TemporaryDirectory(prefix="skitter-docs-") as scratch, ticking(words, every=10.0):
        folder = Path(scratch)
        (folder / "settings.toml").write_text(SETTINGS + switch(enabled=defended) + parallel(sites))
        command = skitter_command("crawl", *(site.seed for site in sites), "--into", str(folder / "crawl"))
        for site in sites:
            command += ["--resolve", f"{site.host}:80:127.0.0.1:{ports[site.host]}"]
        usage = run_with_usage(
            [*command, "--config", str(folder / "settings.toml"), "--allow-private", "--json"]
        )
        fetched = {(record.url, record.status) for record in records(folder / "crawl" / "archive")}
    progress(f"{words}: {len(fetched):,} URLs, {usage.wall:.0f} s, CPU {usage.cpu:.0f} s")
    return Pass(fetched, usage)


def parallel(sites: Sequence[Documentation]) -> str:
    return "".join(f'\n[hosts."http://{site.host}"]\ndelay = 0\nparallel = 8\n' for site in sites)


def differences(defended: Pass, undefended: Pass) -> list[str]:
    """Every URL that only one of them fetched, or that was answered differently; without what was probed."""
    lost, more = undefended.fetched - defended.fetched, defended.fetched - undefended.fetched
    return [
        *(f"lost with the defences: {url} {status}" for url, status in sorted(lost)),
        *(f"fetched with them only: {url} {status}" for url, status in sorted(more) if status != NOT_FOUND),
    ]


def probes(defended: Pass, undefended: Pass) -> list[str]:
    """The defences may ask a host for a page that it cannot have, to see what it answers then."""
    return sorted(url for url, status in defended.fetched - undefended.fetched if status == NOT_FOUND)


def compare(nginx: str, sites: Sequence[Documentation], folder: Path) -> int:
    with ExitStack() as stack:
        ports = {}
        for site in sites:
            own = folder / site.package
            own.mkdir(mode=0o755)
            ports[site.host] = stack.enter_context(serving(nginx, site.root, own))
        defended = crawl(sites, ports, defended=True)
        undefended = crawl(sites, ports, defended=False)
    return report(sites, defended, undefended)


def report(sites: Sequence[Documentation], defended: Pass, undefended: Pass) -> int:
    def pages(done: Pass, host: str) -> int:
        return sum(url.startswith(f"http://{host}/") for url, _ in done.fetched)

    lines = [(site.package, pages(defended, site.host), pages(undefended, site.host)) for site in sites]
    print(table([("URLs fetched", "with the defences", "without"), *lines]))
    different = differences(defended, undefended)
    different += [
        f"exit code {done.usage.code} {words}"
        for words, done in (("with", defended), ("without", undefended))
        if done.usage.code
    ]
    print(*(different[:SHOWN] or ["the same URLs"]), sep="\n")
    asked = probes(defended, undefended)
    print(*(f"probed, and not there: {url}" for url in asked[:SHOWN]), sep="\n", end="\n" if asked else "")
    last_line(
        {
            "bench": "docs_equal",
            "with": len(defended.fetched),
            "without": len(undefended.fetched),
            "differences": len(different),
            "probes": len(asked),
            "cpu_us_per_url": {
                words: round(done.usage.cpu / max(1, len(done.fetched)) * 1e6)
                for words, done in (("with", defended), ("without", undefended))
            },
        }
    )
    return 1 if different else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.docs_equal", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", choices=[site.package for site in DOCUMENTATION], action="append", help="of the four"
    )
    options = parser.parse_args(arguments)
    sites = [site for site in DOCUMENTATION if not options.only or site.package in options.only]
    absent = want("nginx", *(site.package for site in sites))
    if absent:
        return complain("docs_equal", absent)
    with tempfile.TemporaryDirectory(prefix="skitter-nginx-") as folder:
        os.chmod(folder, 0o755)
        return compare(found("nginx") or "nginx", sites, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
