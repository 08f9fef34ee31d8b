"""The command line of `skitter import`: arguments only; the work is imported late."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., argparse.ArgumentParser]


def add_import(commands: Any, command: Command) -> None:
    taking = command(
        commands, "import", "take an archive into a crawl, so that it goes on from there", _import
    )
    taking.add_argument(
        "archive", type=Path, metavar="ARCHIVE", help="a WARC or WACZ file, a folder of them, or a crawl"
    )
    taking.add_argument(
        "--into", required=True, type=Path, metavar="DIR", help="the crawl's folder, known or new"
    )
    taking.add_argument(
        "--seed",
        dest="seeds",
        action="append",
        default=[],
        metavar="SEED",
        help="take only what is in the scope of this URL; may be repeated (default all)",
    )
    taking.add_argument(
        "--where", default="", metavar="SQL", help="only pages that this condition lets through"
    )
    taking.add_argument("--config", type=Path, metavar="FILE", help="settings of the crawl, in TOML")


def _import(arguments: argparse.Namespace) -> int:
    import asyncio

    from skitter.console.run.import_archive import run_import
    from skitter.folder import CrawlFolder
    from skitter.seeds import read_seeds
    from skitter.settings.load import load
    from skitter.urls.keys import Keys

    folder = CrawlFolder.for_crawling(arguments.into)
    crawl_file = None if folder.is_new else folder.settings_file
    loaded = load(crawl_file=crawl_file, config_file=arguments.config, environ=os.environ, flags={})
    seeds = read_seeds(arguments.seeds, (), Keys(loaded.settings.keys)) if arguments.seeds else []
    asyncio.run(
        run_import(arguments.archive, folder, loaded.settings, seeds, arguments.where, as_json=arguments.json)
    )
    return 0
