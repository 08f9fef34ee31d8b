"""What the benchmarks need beside skitter: Debian's packages, and the peers in an environment of their own.

As root, missing packages are installed by apt; the peers always go to `.bench/` in the project's folder, so that
nothing of theirs mixes with what skitter is tested with. What cannot be had is named, never guessed around.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench._report import progress

PROJECT = Path(__file__).parents[1]
CACHE = PROJECT / ".bench"
SCRIPTS = Path(__file__).parent / "peers"
# Exact, so that a ratio of last month can be compared with one of today.
PINNED = (
    "beautifulsoup4==4.15.0",
    "crawlee[parsel]==1.11.0",
    "lxml==6.1.3",
    "scrapy==2.19.0",
    "selectolax==1.0.2",
    "simhash==2.1.2",
    "url-normalize==3.1.0",
    "w3lib==2.5.0",
    "yarl==1.25.1",
)
_FILES = {
    "nginx": ("/usr/sbin/nginx", "/usr/bin/nginx"),
    "wget2": ("/usr/bin/wget2",),
    "wrk": ("/usr/bin/wrk",),
    "openjdk-17-doc": ("/usr/share/doc/openjdk-17-doc/api/index.html",),
    "python3-doc": ("/usr/share/doc/python3.11/html/index.html",),
    "postgresql-doc-15": ("/usr/share/doc/postgresql-doc-15/html/index.html",),
    "cppreference-doc-en-html": ("/usr/share/cppreference/doc/html/en/index.html",),
}
DOCS = Path("/usr/share/doc/openjdk-17-doc/api")


def found(package: str) -> str | None:
    """The file that a package was asked for. Debian keeps nginx where only root's PATH leads."""
    there = next((file for file in _FILES[package] if Path(file).exists()), None)
    return there or shutil.which(package)


def missing(*packages: str) -> list[str]:
    return [package for package in packages if found(package) is None]


def want(*packages: str) -> list[str]:
    """Debian's packages that are missing even after an attempt to install them."""
    absent = missing(*packages)
    if absent and os.geteuid() == 0 and shutil.which("apt-get"):
        progress(f"installing {' '.join(absent)}")
        command = ["apt-get", "install", "-y", "--no-install-recommends", *absent]
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
        absent = missing(*packages)
    return absent


def complain(bench: str, absent: Sequence[str]) -> int:
    """The exit code of a benchmark that cannot run."""
    names = " ".join(absent)
    print(f"bench.{bench}: {names} missing: apt-get install {names}", file=sys.stderr)
    return 2


def peers_python() -> str | None:
    """The interpreter of the peers' environment, made on first use; None where it cannot be made. It is of
    the Python that runs skitter: how one was compiled is worth 10 to 12 %."""
    python = CACHE / "peers" / "bin" / "python"
    mark = CACHE / "peers" / "installed"
    wanted = "\n".join((*PINNED, sys.base_prefix))
    if mark.exists() and mark.read_text() == wanted:
        return str(python)
    progress(f"setting up the peers in {CACHE}")
    make = [sys.executable, "-m", "venv", "--clear", str(CACHE / "peers")]
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PINNED]
    for command in (make, install):
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode:
            print(
                f"the peers cannot be set up: {' '.join(command)} failed; they are left out", file=sys.stderr
            )
            return None
    mark.write_text(wanted)
    return str(python)
