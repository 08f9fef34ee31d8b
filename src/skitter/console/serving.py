"""The command line of the service: arguments only; the work is imported late."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skitter.console.output import write

Command = Callable[..., argparse.ArgumentParser]


def add_serve(commands: Any, command: Command) -> None:
    serve = command(
        commands, "serve", "serve a crawl's frontier over HTTP, for workers and operators", _serve
    )
    serve.add_argument("folder", type=Path, metavar="DIR", help="the crawl's folder, made when there is none")
    serve.add_argument("seeds", nargs="*", metavar="SEED", help="a URL, or a file with one URL a line")
    serve.add_argument(
        "--listen",
        default="127.0.0.1:8600",
        metavar="HOST:PORT",
        help="or unix:PATH; port 0 takes a free one (default 127.0.0.1:8600)",
    )
    serve.add_argument(
        "--tokens",
        type=Path,
        metavar="FILE",
        help="who may do what: lines of a role (read, worker, operator) and a token; also SKITTER_TOKENS",
    )
    serve.add_argument(
        "--log-json",
        action="store_true",
        help="log to standard error too, in JSON lines, and nothing else there",
    )
    serve.add_argument("--config", type=Path, metavar="FILE", help="settings in TOML; see skitter settings")


def _serve(arguments: argparse.Namespace) -> int:
    import uvloop

    from skitter.console.serve import run_serve
    from skitter.folder import CrawlFolder
    from skitter.seeds import read_seeds
    from skitter.service.access import ENVIRONMENT, read_tokens
    from skitter.settings.load import Flag, load
    from skitter.urls.keys import Keys

    folder = CrawlFolder.for_crawling(arguments.folder)
    loaded = load(
        crawl_file=None if folder.is_new else folder.settings_file,
        config_file=arguments.config,
        environ={name: value for name, value in os.environ.items() if name != ENVIRONMENT},
        flags={"log.json": Flag(True, "--log-json")} if arguments.log_json else {},
    )
    seeds = read_seeds(arguments.seeds, (), Keys(loaded.settings.keys))
    tokens = read_tokens(arguments.tokens, os.environ.get(ENVIRONMENT, ""))

    def say(where: str) -> None:
        if arguments.json:
            write(json.dumps({"serving": where}) + "\n")
            sys.stdout.flush()
            return
        who = "anybody on this machine may use it" if tokens.is_open else "a token is needed"
        print(f"serving {arguments.folder} at {where} ({who}); Ctrl-C stops", file=sys.stderr, flush=True)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run_serve(folder, loaded, seeds, arguments.listen, tokens, say))
