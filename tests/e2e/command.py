"""The command as its users run it: a process of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import skitter as package
from tests.raw_server import RawServer, page, serving

Done = subprocess.CompletedProcess[str]
SOURCE = str(Path(package.__file__).parents[1])
ENVIRON = {**os.environ, "PYTHONPATH": SOURCE, "PYTHONWARNINGS": "default"}


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "skitter", *map(str, arguments)]


def skitter(*arguments: object, given: bytes = b"", environ: Mapping[str, str] | None = None) -> Done:
    done = subprocess.run(
        command(*arguments), input=given, capture_output=True, env={**ENVIRON, **(environ or {})}, timeout=90
    )
    return Done(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def complaint(done: Done, code: int) -> str:
    """The one line that a failed command says."""
    assert done.returncode == code, (done.stdout, done.stderr)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("skitter: ")
    return done.stderr.strip()


def said(done: Done, code: int = 0) -> str:
    assert done.returncode == code, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stdout


def read_json(*arguments: object) -> Any:
    return json.loads(said(skitter(*arguments, "--json")))


def site(pages: Mapping[str, bytes]) -> Iterator[RawServer]:
    """A small site on loopback: by path, whole responses or the HTML of a page."""

    def answer(connection: socket.socket, raw: bytes) -> bool:
        found = pages.get(raw.split()[1].decode(), page(b"nothing here", status=b"404 Not Found"))
        connection.sendall(found if found.startswith(b"HTTP/") else page(found))
        return True

    with serving(answer) as server:
        yield server


serving_site = contextmanager(site)
