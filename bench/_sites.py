"""Sites of real pages that all say something else: one documentation, on every host in an alphabet of its own.

With the same pages on sixteen hosts fifteen of sixteen bodies are known already, and who reads all hosts in step
has each text compressed right behind its twin: 14 us a page of zstd were seen instead of 29. That is the case of
one process, and of no crawl of the web. Links, tags and sizes are those of the real pages.
"""

from __future__ import annotations

import functools
import json
import random
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from bench._crawls import run_with_usage, skitter_command
from bench._nginx import serving
from bench._peers import CACHE
from bench._report import progress
from bench.archive import DOCUMENTS

SERVER = """\
    server {{
        listen 127.0.0.1:{port};
        root {root}/$host;
    }}
"""
MEMORY = Path("/dev/shm")
_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_TEXT = re.compile(rb">([^<]+)<")
# What a crawl of a site meets in another order, because it is not alone, is there as well.
_SPARE = 1.5
_AT_ONCE = 50
_PROCESSES = 2


def names(count: int) -> list[str]:
    return [f"d{number}.test" for number in range(count)]


def sites(nginx: str, count: int, pages: int) -> Path:
    """A folder with one for each of so many hosts, with enough for so many pages of all together; kept for the
    next time."""
    wanted = int(_SPARE * pages / count) + 1
    place = CACHE / f"sites-{count}-{wanted}"
    if place.is_dir():
        return place
    progress(f"{count} sites of {wanted:,} pages each are made, once: {count * wanted * 36_000 / 1e9:.1f} GB")
    paths = _met_first(nginx, wanted)
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as begun:
        with get_context("spawn").Pool(_PROCESSES) as pool:
            made = pool.imap_unordered(functools.partial(_make, Path(begun), names(count)), paths, _AT_ONCE)
            for number, _ in enumerate(made, 1):
                if number % 1_000 == 0:
                    progress(f"{number:,} of {len(paths):,} pages, {count} times")
        Path(begun).chmod(0o755)  # nginx reads as somebody else
        shutil.move(begun, place)
        Path(begun).mkdir()
    return place


@contextmanager
def in_memory(place: Path) -> Iterator[Path]:
    """A copy that is read from no disk. nginx waits for a file with all of its connections, and of two crawls by
    turns the faster one is the first to ask for each: two workers read 1,836 MB from the disk and one process
    behind them 177, and were 1.31 times as fast; where nobody had to read, 1.54 to 1.67 times."""
    need = sum(entry.stat().st_size for entry in place.rglob("*") if entry.is_file())
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < 2 * need:
        progress(f"no room for {2 * need / 1e9:.1f} GB in {MEMORY}: the sites are read from the disk")
        yield place
        return
    progress(f"{need / 1e9:.1f} GB of sites are copied to {MEMORY}")
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        Path(folder).chmod(0o755)  # nginx reads as somebody else
        yield Path(shutil.copytree(place, Path(folder) / place.name))


def _met_first(nginx: str, count: int) -> list[str]:
    """By a crawl of one host that serves all of the documentation."""
    with tempfile.TemporaryDirectory() as folder, serving(nginx, DOCUMENTS, Path(folder)) as port:
        config = Path(folder) / "settings.toml"
        config.write_text("[politeness]\ndelay = 0\nslow_factor = 0\n")
        into = Path(folder) / "crawl"
        command = skitter_command("crawl", "http://d0.test/index.html", "--into", str(into))
        command += ["--config", str(config), "--resolve", f"*:80:127.0.0.1:{port}", "--allow-private"]
        if run_with_usage([*command, "--max-pages", str(count), "--workers", "1"]).code:
            raise SystemExit("the crawl that was to find pages for the sites failed")
        with (into / "archive" / "index.cdxj").open() as lines:
            urls = [json.loads(line.split(" ", 2)[2])["url"] for line in lines]
    paths = {url.removeprefix("http://d0.test/") for url in urls}
    return sorted(path for path in paths if (DOCUMENTS / path).is_file())


def _make(place: Path, hosts: Sequence[str], path: str) -> None:
    raw = (DOCUMENTS / path).read_bytes()
    for number, host in enumerate(hosts):
        copy = place / host / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(_TEXT.sub(functools.partial(_spelt, _alphabet(number)), raw))


def _spelt(alphabet: bytes, text: re.Match[bytes]) -> bytes:
    return b">" + text[1].translate(alphabet) + b"<"


@functools.cache
def _alphabet(number: int) -> bytes:
    letters = [*_LETTERS]
    random.Random(number).shuffle(letters)
    return bytes.maketrans(_LETTERS, bytes(letters))
