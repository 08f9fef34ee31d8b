"""The command line of a worker that fetches for a crawl elsewhere: arguments only; the work is imported late."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., argparse.ArgumentParser]


def add_working(commands: Any, command: Command) -> None:
    worker = command(commands, "worker", "fetch pages for a crawl that is served elsewhere", _worker)
    worker.add_argument(
        "--join", required=True, metavar="URL", help="the server: http://HOST:PORT or unix:PATH"
    )
    worker.add_argument(
        "--token-file", type=Path, metavar="FILE", help="holds the token (or set SKITTER_TOKEN)"
    )
    worker.add_argument(
        "--allow",
        action="append",
        default=[],
        choices=("private", "resolve", "tls", "secrets"),
        help="what the server may loosen here: special addresses, other answers of DNS, certificates, the use of "
        "this machine's secrets (may be repeated)",
    )
    worker.add_argument(
        "--give-up-after",
        type=_seconds,
        default=float("inf"),
        metavar="SECONDS",
        help="end when the server does not answer for so long (it is waited for without end)",
    )
    worker.add_argument("--log", type=Path, metavar="FILE", help="what happened, one JSON object a line")
    worker.add_argument(
        "--log-json",
        action="store_true",
        help="log to standard error too, in JSON lines, and nothing else there",
    )
    worker.add_argument(
        "--region",
        type=_region,
        metavar="NAME",
        help="where this worker is: hosts are given to workers that get their answers soonest",
    )
    worker.add_argument("--name", default="", help=argparse.SUPPRESS)
    worker.add_argument("--end-with-parent", action="store_true", help=argparse.SUPPRESS)


def _region(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,31}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no region: small letters, digits and -, 32 at most")
    return text


def _seconds(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return value


def _worker(arguments: argparse.Namespace) -> int:
    import asyncio  # 20 ms that `--help` need not pay

    import uvloop

    from skitter.runtime.worker_guard import Allowed
    from skitter.runtime.worker_process import run_worker

    working = run_worker(
        arguments.join,
        _token(arguments.token_file),
        arguments.log,
        name=arguments.name,
        region=arguments.region or "",
        is_child=arguments.end_with_parent,
        note=_silent if arguments.end_with_parent or arguments.log_json else _tell,
        log_json=arguments.log_json,
        allowed=[Allowed(what) for what in arguments.allow],
        give_up_after=arguments.give_up_after,
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(working)
    return 0


def _tell(text: str) -> None:
    print(f"skitter: {text}", file=sys.stderr)


def _silent(text: str) -> None:
    """The log says it all, or the crawl that started this worker does."""


def _token(file: Path | None) -> str:
    from skitter.secret_files import read_secret

    if file is None:
        return os.environ.get("SKITTER_TOKEN", "")
    return read_secret(file, "the token").strip()
