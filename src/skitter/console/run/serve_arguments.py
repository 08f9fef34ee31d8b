"""The command line of the service: arguments only; the work is imported late."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skitter.console.display.output import write
from skitter.console.run.crawl_flags import add_crawl_flags, given_flags
from skitter.errors import UsageError

if TYPE_CHECKING:
    from skitter.folder import CrawlFolder

Command = Callable[..., argparse.ArgumentParser]
# Enough for four nodes of four; each has an archive and a log of its own, so many more cost more than they bring.
PARTS = 16


def add_serve(commands: Any, command: Command) -> None:
    serve = command(
        commands, "serve", "serve a crawl's frontier over HTTP, for workers and operators", _serve
    )
    serve.add_argument(
        "folder",
        type=Path,
        metavar="DIR",
        nargs="?",
        help="the crawl's folder; of a cluster, this node's own",
    )
    serve.add_argument(
        "seeds",
        nargs="*",
        default=[],
        metavar="SEED",
        help="a URL or a bare domain, or a file with one a line",
    )
    serve.add_argument(
        "--new", action="store_true", help="begin a crawl in DIR if it holds none; seeds mean this as well"
    )
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
        help="who may do what: lines of a role (read, worker, trusted-worker, operator), a name and a token; "
        "also SKITTER_TOKENS",
    )
    serve.add_argument(
        "--cluster",
        metavar="URL",
        default="",
        help="be a node of the cluster in this database (postgresql://...), which the first node makes with its "
        "settings; `demo` tries one out on this machine",
    )
    serve.add_argument(
        "--parts",
        type=int,
        default=PARTS,
        metavar="N",
        help=f"partitions of a cluster that is made, for good (default {PARTS})",
    )
    serve.add_argument(
        "--advertise",
        default="",
        metavar="URL",
        help="where other nodes and workers reach this node (default: where it listens)",
    )
    serve.add_argument(
        "--nodes", type=int, default=3, metavar="N", help="of --cluster demo: how many nodes (default 3)"
    )
    add_crawl_flags(serve, served=True)


def _serve(arguments: argparse.Namespace) -> int:
    import asyncio  # 20 ms that `--help` need not pay

    import uvloop

    from skitter.console.display.display import JsonDisplay, PlainDisplay
    from skitter.console.run.serve import run_serve
    from skitter.folder import CrawlFolder
    from skitter.seeds import read_seeds
    from skitter.service.http.access import ENVIRONMENT, read_tokens
    from skitter.settings.load import load
    from skitter.urls.keys import Keys

    if arguments.cluster == "demo":
        return _demo(arguments.nodes)
    if arguments.folder is None:
        raise UsageError(
            "the following arguments are required: DIR; with --cluster it is this node's own folder; see skitter "
            "serve --help"
        )
    makes_one = arguments.new or bool(arguments.seeds) or bool(arguments.cluster)
    folder = CrawlFolder.for_crawling(arguments.folder) if makes_one else _known(arguments.folder)
    loaded = load(
        crawl_file=None if folder.is_new else folder.settings_file,
        config_file=arguments.config,
        environ={name: value for name, value in os.environ.items() if name != ENVIRONMENT},
        flags=given_flags(arguments),
    )
    arguments.is_for_a_log = loaded.settings.log.json
    seeds = read_seeds([*arguments.seeds, *loaded.settings.seeds], (), Keys(loaded.settings.keys))
    tokens = read_tokens(arguments.tokens, os.environ.get(ENVIRONMENT, ""))

    display = JsonDisplay(sys.stderr) if loaded.settings.log.json else PlainDisplay(sys.stderr)

    def say(where: str) -> None:
        if arguments.json:
            write(json.dumps({"serving": where}) + "\n")
            sys.stdout.flush()
            return
        who = "anybody on this machine may use it" if tokens.is_open else "a token is needed"
        display.note(f"serving {arguments.folder} at {where} ({who}); Ctrl-C stops")

    if arguments.cluster:
        from skitter.console.run.serve_cluster import run_node

        node = run_node(
            folder,
            arguments.cluster,
            arguments.listen,
            arguments.advertise,
            tokens,
            seeds,
            say,
            display.note,
            given=loaded.settings,
            parts=arguments.parts,
        )
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(node)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run_serve(folder, loaded, seeds, arguments.listen, tokens, say, display))


def _demo(nodes: int) -> int:
    """A program of its own, which starts this one several times."""
    import subprocess

    command = [sys.executable, "-m", "skitter.testing.cluster_demo", "--nodes", str(nodes)]
    return subprocess.call(command)


def _known(path: Path) -> CrawlFolder:
    """A misspelt name must not become a crawl of its own, served as if it were the one that was meant."""
    from skitter.errors import NotACrawl
    from skitter.folder import CrawlFolder

    folder = CrawlFolder.for_crawling(path)
    if folder.is_new:
        raise NotACrawl(
            f"{path} holds no crawl: check its name, or begin one there with --new or with seeds "
            f"(skitter serve {shlex.quote(str(path))} SEED ...)"
        )
    return folder
