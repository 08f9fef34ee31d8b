"""The hostile web in a child process, for tests and benchmarks.

with HostileWeb() as web:
    skitter crawl ... with web.resolve and web.nameserver
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections import Counter
from pathlib import Path
from types import TracebackType

import msgspec

import skitter
from skitter.errors import SkitterError
from skitter.testing.hostile.catalogue import CATALOGUE, FOUND_ONLY

START_TIMEOUT = 60.0


class Ready(msgspec.Struct):
    """What the server says when it listens."""

    resolve: tuple[str, ...]
    nameserver: str


class HostileWeb:
    """Runs within its context. `resolve` and `nameserver` are for the crawl's settings of the same name."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="hostile-web-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._log = Path(folder) / "requests.jsonl"
        self._child: subprocess.Popen[bytes] | None = None
        self.resolve: tuple[str, ...] = ()
        self.nameserver = ""

    def __enter__(self) -> HostileWeb:
        command = [sys.executable, "-m", "skitter.testing.hostile", "--json", "--with-parent"]
        source = str(Path(skitter.__file__).parents[1])
        paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._child = subprocess.Popen(
            [*command, "--log", str(self._log)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        assert self._child.stdout is not None
        readable, _, _ = select.select([self._child.stdout], [], [], START_TIMEOUT)
        line = self._child.stdout.readline() if readable else b""
        if not line:
            self.__exit__(None, None, None)
            raise SkitterError("the hostile web did not start; its own message is on standard error")
        ready = msgspec.json.decode(line, type=Ready)
        self.resolve, self.nameserver = ready.resolve, ready.nameserver
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        child, self._child = self._child, None
        if child is not None:
            with child:
                child.terminate()

    @property
    def seeds(self) -> list[str]:
        return [case.origin() + "/" for case in CATALOGUE.values() if case.name not in FOUND_ONLY]

    def requests(self) -> Counter[tuple[str, str]]:
        """How often each path of each host was asked for so far."""
        rows = map(json.loads, self._log.read_text().splitlines()) if self._log.exists() else ()
        return Counter((row["host"], row["path"]) for row in rows)
