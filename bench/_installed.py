"""Peers of other languages, each had by its ordinary client (go, cargo, mvn) and kept in `.bench/`.

Versions are exact. What cannot be had is an `Absent` with the client's own words: it is named in the table and
never guessed around. Builds run one job at a time at a low priority, since a machine may have other work.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from bench._peers import CACHE, PROJECT, SCRIPTS
from bench._report import progress, ticking

HERITRIX = "3.13.0"
BUBING = "0.9.15"
KATANA = "github.com/projectdiscovery/katana/cmd/katana"
ZENO = "github.com/internetarchive/Zeno@v1.0.0"
NUTCH = "org.apache.nutch:nutch:1.21"
STORMCRAWLER = "org.apache.stormcrawler:stormcrawler-core:3.4.0"
_NICE = ("nice", "-n", "15")
_LONGEST = 3600.0
_WORDS = 160


class Absent(msgspec.Struct, frozen=True):
    """A peer that cannot be had, and why, in the words of its client."""

    why: str


class Program(msgspec.Struct, frozen=True):
    """A peer that can be run: `path` is its executable, its home, or a folder of jars."""

    path: Path


Had = Program | Absent


def colly() -> Had:
    source, out = SCRIPTS / "colly", CACHE / "go" / "colly"
    return _built(source, out, ["go", "build", "-o", str(out), "."], "go.mod", "go.sum", "main.go")


def katana() -> Had:
    """Of the version in its go.mod. `go install` of a version asks for more than a build does."""
    source, out = SCRIPTS / "katana", CACHE / "go" / "katana"
    return _built(source, out, ["go", "build", "-o", str(out), KATANA], "go.mod", "go.sum")


def zeno() -> Had:
    return _go_installed(ZENO, "Zeno")


def spider() -> Had:
    target = CACHE / "spider"
    command = ["cargo", "build", "--release", "--locked", "-j1", "--target-dir", str(target)]
    out = target / "release" / "spider-bench"
    return _built(SCRIPTS / "spider", out, command, "Cargo.toml", "Cargo.lock", "src/main.rs")


def heritrix() -> Had:
    """Its distribution, unpacked."""
    home = CACHE / f"heritrix-{HERITRIX}"
    if (home / "lib").is_dir():
        return Program(home)
    artifact = f"org.archive.heritrix:heritrix:{HERITRIX}:zip:dist"
    copy = f"-DoutputDirectory={CACHE / 'maven'}"
    absent = _run(_mvn("dependency:copy", f"-Dartifact={artifact}", copy), "Heritrix")
    if absent is not None:
        return absent
    with zipfile.ZipFile(CACHE / "maven" / f"heritrix-{HERITRIX}-dist.zip") as packed:
        packed.extractall(CACHE)
    return Program(home)


def bubing() -> Had:
    """A folder with its jar and all that it needs."""
    return _jars("bubing")


def nutch() -> Had:
    absent = _run(_mvn("dependency:get", f"-Dartifact={NUTCH}", "-Dtransitive=false"), "Nutch")
    return absent or Absent(
        "the artifact of mvn is its jar without plugins, and nothing is fetched without them"
    )


def stormcrawler() -> Had:
    absent = _run(_mvn("dependency:get", f"-Dartifact={STORMCRAWLER}", "-Dtransitive=false"), "StormCrawler")
    return absent or Absent("its core came, but nothing here runs it yet")


def skitter_on(python: str) -> Had:
    """skitter as a user installs it, from this source, on another interpreter than the one that runs this."""
    version = _said([python, "-c", "import sys; print(sys.version.split()[0], sys.base_prefix)"])
    if version is None:
        return Absent(f"{python} does not run")
    sources = [path for path in sorted((PROJECT / "src").rglob("*")) if path.suffix in (".py", ".c", ".h")]
    wanted = _digest([*sources, PROJECT / "pyproject.toml", PROJECT / "constraints.txt"], version)
    home = CACHE / f"skitter-{version.split()[0]}"
    mark, there = home / "installed", home / "bin" / "python"
    if mark.exists() and mark.read_text() == wanted:
        return Program(there)
    pip = [str(there), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    constraints = ["--constraint", str(PROJECT / "constraints.txt")]
    for command in ([python, "-m", "venv", "--clear", str(home)], [*pip, *constraints, f"{PROJECT}[all]"]):
        if absent := _run(command, f"skitter on {python}"):
            return absent
    mark.write_text(wanted)
    return Program(there)


# -- the clients


def _go_installed(module: str, name: str) -> Had:
    out = CACHE / "go" / name
    if out.exists():
        return Program(out)
    absent = _run(["go", "install", module], name, environ={"GOBIN": str(CACHE / "go"), "GOMAXPROCS": "1"})
    return absent or Program(out)


def _built(source: Path, out: Path, command: Sequence[str], *parts: str) -> Had:
    """`parts` are the files that a build depends on."""
    mark = out.with_name(out.name + ".built")
    wanted = _digest([source / part for part in parts])
    if out.exists() and mark.exists() and mark.read_text() == wanted:
        return Program(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    absent = _run(command, out.name, folder=source, environ={"GOMAXPROCS": "1"})
    if absent is None:
        mark.write_text(wanted)
    return absent or Program(out)


def _jars(name: str) -> Had:
    """All that the pom of this name asks for."""
    folder, pom = CACHE / name, SCRIPTS / name / "pom.xml"
    mark = folder / "installed"
    wanted = _digest([pom])
    if mark.exists() and mark.read_text() == wanted:
        return Program(folder)
    copy = f"-DoutputDirectory={folder}"
    absent = _run(_mvn("dependency:copy-dependencies", "-f", str(pom), copy), name)
    if absent is None:
        mark.write_text(wanted)
    return absent or Program(folder)


def _mvn(*arguments: str) -> list[str]:
    return ["mvn", "--batch-mode", "-T1", *arguments]


def _run(
    command: Sequence[str],
    name: str,
    *,
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Absent | None:
    """None when it did what it was to do."""
    if shutil.which(command[0]) is None:
        return Absent(f"{command[0]} is not installed")
    with ticking(f"installing {name}", every=30.0):
        try:
            done = subprocess.run(
                [*_NICE, *command],
                cwd=folder,
                env={**os.environ, **(environ or {})},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_LONGEST,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Absent(f"{command[0]} took longer than {_LONGEST:.0f} s")
    if done.returncode == 0:
        return None
    progress(f"{name} cannot be had: {command[0]} ended with {done.returncode}")
    return Absent(complaint(done.stdout.decode("utf-8", "replace")))


def complaint(output: str) -> str:
    """The line that says why, of all that a client said: the first with an error in it, or else the last."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    telling = [
        line for line in lines if re.search(r"error|forbidden|not found|could not", line, re.IGNORECASE)
    ]
    found = (telling or lines or ["it ended without a word"])[0 if telling else -1]
    # the reason is at the end, and what was asked for at the beginning
    return found if len(found) <= _WORDS else f"{found[:60]} ... {found[60 + 5 - _WORDS :]}"


def _digest(files: Sequence[Path], also: str = "") -> str:
    found = hashlib.sha256(also.encode())
    for file in files:
        found.update(file.name.encode())
        found.update(file.read_bytes() if file.exists() else b"")
    return found.hexdigest()


def _said(command: Sequence[str]) -> str | None:
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
