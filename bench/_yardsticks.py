"""What the same bytes cost where nothing can be left out: served by nginx, copied, hashed, compressed, written.

The physical reference points of `bench.profile`: microseconds of CPU a page of the same site.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from isal import isal_zlib

from bench._nginx import serving
from bench._peers import found

_PAGES = 1_000
_SECONDS = 3
_REQUESTS = re.compile(rb"(\d+) requests in")
_LUA = """\
local paths = {{ {paths} }}
local at = 0
request = function()
  at = at % #paths + 1
  return wrk.format("GET", paths[at])
end
"""


def sample(docs: Path, count: int = _PAGES) -> list[Path]:
    files = sorted(docs.rglob("*.html"))
    return files[:: max(1, len(files) // count)][:count]


def yardsticks(docs: Path) -> dict[str, float]:
    """By name, in microseconds of CPU a page."""
    files = sample(docs)
    bodies = [path.read_bytes() for path in files]
    works: dict[str, Callable[[bytes], object]] = {
        "memcpy": bytearray,
        "SHA-256": lambda body: sha256(body).digest(),
        "gzip (ISA-L, level 1)": lambda body: isal_zlib.compress(body, 1, 31),
        "gzip (zlib, level 1)": lambda body: zlib.compress(body, 1),
        "gzip (zlib, level 6)": lambda body: zlib.compress(body, 6),
    }
    taken = {name: _each(work, bodies) for name, work in works.items()}
    with tempfile.TemporaryFile() as file:
        taken["write to a file"] = _each(lambda body: os.write(file.fileno(), body), bodies)
    if found("wrk"):
        taken["served by nginx, 16 at once, nginx alone"], taken["asked by wrk"] = _served(docs, files)
    return taken


def _each(work: Callable[[bytes], object], bodies: list[bytes]) -> float:
    """The best of three: what disturbs only adds."""
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        for body in bodies:
            work(body)
        best = min(best, time.process_time() - began)
    return best / len(bodies) * 1e6


def _served(docs: Path, files: list[Path]) -> tuple[float, float]:
    """nginx's CPU and wrk's, by what the kernel says of children that have ended."""
    with tempfile.TemporaryDirectory(prefix="skitter-wrk-") as name:
        folder = Path(name)
        os.chmod(folder, 0o755)
        script = folder / "paths.lua"
        script.write_text(_LUA.format(paths=", ".join(f'"/{path.relative_to(docs)}"' for path in files)))
        before = _children()
        with serving(found("nginx") or "nginx", docs, folder) as port:
            command = [found("wrk") or "wrk", "-t1", "-c16", f"-d{_SECONDS}s", "-s", str(script)]
            said = subprocess.run(
                [*command, f"http://127.0.0.1:{port}/"], capture_output=True, check=True
            ).stdout
            asked = _children() - before
        match = _REQUESTS.search(said)
        count = int(match[1]) if match else 1
        return (_children() - before - asked) / count * 1e6, asked / count * 1e6


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
