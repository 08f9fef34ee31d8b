"""The command line of a worker that fetches for a crawl elsewhere: arguments only; the work is imported late."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Coroutine
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
    worker.add_argument("--log", type=Path, metavar="FILE", help="what happened, one JSON object a line")
    worker.add_argument("--name", default="", help=argparse.SUPPRESS)
    worker.add_argument("--leashed", action="store_true", help=argparse.SUPPRESS)


def _worker(arguments: argparse.Namespace) -> int:
    from skitter.console.worker import run_worker

    code: int = _run(
        run_worker(
            arguments.join,
            arguments.token_file,
            arguments.log,
            name=arguments.name,
            leashed=arguments.leashed,
        )
    )
    return code


def _run(command: Coroutine[Any, Any, Any]) -> Any:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(command)
