"""`skitter serve` as a process of its own, for as long as a block lasts."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.command import ENVIRON, command


class Served:
    """`where` it answers; `said` is what it wrote to standard error, once it has ended."""

    def __init__(self, where: str, process: subprocess.Popen[bytes]) -> None:
        self.where = where
        self.process = process
        self.said = b""


@contextmanager
def served(folder: Path, *arguments: object, environ: Mapping[str, str] | None = None) -> Iterator[Served]:
    """Ends with SIGTERM, and must end well, unless the test has killed it."""
    started = command("serve", folder, "--new", "--listen", "127.0.0.1:0", "--json", *arguments)
    environ = {**ENVIRON, **(environ or {})}
    with subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first, process.communicate(timeout=20)
        server = Served(json.loads(first)["serving"], process)
        try:
            yield server
        finally:
            was_killed = process.poll() is not None
            if not was_killed:
                process.send_signal(signal.SIGTERM)
            server.said = process.communicate(timeout=20)[1]
            assert was_killed or process.returncode == 0, server.said
