"""A web in a child process: started, waited for until it is ready, and stopped with the test that uses it."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import skitter
from skitter.errors import SkitterError

START_TIMEOUT = 60.0


def start_web(module: str, arguments: Sequence[str]) -> tuple[subprocess.Popen[bytes], bytes]:
    """The child, and the line that it prints once it listens. Its standard input ends with this process."""
    source = str(Path(skitter.__file__).parents[1])
    paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
    child = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert child.stdout is not None
    readable, _, _ = select.select([child.stdout], [], [], START_TIMEOUT)
    line = child.stdout.readline() if readable else b""
    if not line:
        stop_web(child)
        raise SkitterError(f"{module} did not start; its own message is on standard error")
    return child, line


def stop_web(child: subprocess.Popen[bytes]) -> None:
    """Stop the child; its log is complete afterwards."""
    with child:
        child.terminate()
