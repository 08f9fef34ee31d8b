"""Bombs in every coding, in a process of their own: bounded memory, bounded time, an outcome."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import brotlicffi
import msgspec
import pytest

from skitter.testing.hostile.codings import brotli_bomb, gzip_bomb, stacked_gzip_bomb, zstd_bomb
from tests.e2e.command import ENVIRON

BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip, 1,000 to 1": ("gzip", gzip_bomb),
    "gzip in gzip in gzip": ("gzip, gzip, gzip", stacked_gzip_bomb),
    "br": ("br", brotli_bomb),
    "zstd": ("zstd", zstd_bomb),
    "zstd in br": ("zstd, br", lambda: brotlicffi.compress(zstd_bomb())),
    # ten megabytes on the wire, as much as is ever kept: 100 GB
    "as large as a body may be": ("zstd", lambda: zstd_bomb(blocks=2_500_000)),
}
MOST_MEMORY = 100_000_000
MOST_SECONDS = 5.0

# Limits as a crawl has them, then the page is read; what it reports is the rise of its own largest resident size
# (not getrusage's, which a child begins with its parent's).
CHILD = """
import json, pathlib, re, sys, time
from skitter.fetch.coding import decode_body
from skitter.parse.page import read_page
from skitter.settings import FetchSettings

coding = sys.argv[1]
body = sys.stdin.buffer.read()
limits = FetchSettings()
read_page(b"<title>warm</title>", url="http://e.org/", content_type="text/html")
status = lambda: pathlib.Path("/proc/self/status").read_text()
peak = lambda: int(re.search("VmHWM:\\s*([0-9]+)", status())[1]) * 1024
before, began = peak(), time.process_time()
found = decode_body(body, coding, limit=limits.max_decoded, max_ratio=limits.max_ratio)
page = read_page(found.body, url="http://e.org/", content_type="text/html")
print(json.dumps({
    "rise": peak() - before,
    "seconds": time.process_time() - began,
    "size": len(found.body),
    "truncated": found.truncated,
}))
"""


class Report(msgspec.Struct):
    rise: int
    seconds: float
    size: int
    truncated: bool


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_costs_bounded_memory_and_time_and_is_marked(name: str) -> None:
    coding, make = BOMBS[name]
    command = [sys.executable, "-c", CHILD, coding]
    done = subprocess.run(command, input=make(), capture_output=True, env=ENVIRON, timeout=60, check=True)
    found = msgspec.json.decode(done.stdout, type=Report)
    print(name, found)
    assert found.rise < MOST_MEMORY
    assert found.seconds < MOST_SECONDS
    assert found.truncated
    assert 0 < found.size <= 1_048_576
