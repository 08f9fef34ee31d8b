"""The commands that put a crawl on several processes or machines: `serve` keeps it, `worker` fetches for it."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

Command = Callable[..., argparse.ArgumentParser]
_LISTEN = "127.0.0.1:8600"


def add_working(commands: Any, command: Command) -> None:
    serve = command(commands, "serve", "keep a crawl that workers elsewhere fetch for", _serve)
    serve.add_argument("folder", type=Path, metavar="DIR", help="the crawl's folder; made when it is missing")
    serve.add_argument("seeds", nargs="*", metavar="SEED", help="a URL, or a file with one URL a line")
    serve.add_argument(
        "--listen", default=_LISTEN, metavar="HOST:PORT", help=f"or unix:PATH (default {_LISTEN})"
    )
    serve.add_argument(
        "--tokens", type=Path, metavar="FILE", help="lines of a role (read, worker, operator) and a token"
    )
    serve.add_argument("--config", type=Path, metavar="FILE", help="settings in TOML; see skitter settings")
    serve.add_argument(
        "--log-json",
        action="store_true",
        help="log to standard error too, in JSON lines, and nothing else there",
    )
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


def _serve(arguments: argparse.Namespace) -> int:
    from skitter.console.display import choose_display
    from skitter.console.serve import run_serve
    from skitter.folder import CrawlFolder
    from skitter.seeds import read_seeds
    from skitter.service.access import ENVIRONMENT, read_tokens
    from skitter.settings.load import Flag, load
    from skitter.urls.keys import Keys

    folder = CrawlFolder.for_crawling(arguments.folder)
    crawl_file = folder.settings_file if folder.settings_file.is_file() else None
    flags = {"log.json": Flag(True, "--log-json")} if arguments.log_json else {}
    loaded = load(crawl_file=crawl_file, config_file=arguments.config, environ=os.environ, flags=flags)
    seeds = read_seeds(arguments.seeds, (), Keys(loaded.settings.keys))
    as_json = arguments.json or loaded.settings.log.json
    display = choose_display(sys.stdout if arguments.json else sys.stderr, json=as_json)
    tokens = read_tokens(arguments.tokens, os.environ.get(ENVIRONMENT, ""))
    _run(run_serve(folder, loaded, seeds, display, arguments.listen, tokens))
    return 0


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
