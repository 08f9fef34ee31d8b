"""The command line of what steers a crawl: arguments only; the work is imported late."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skitter.console.display.output import write

if TYPE_CHECKING:
    from skitter.folder import CrawlFolder
    from skitter.settings import Settings

Command = Callable[..., argparse.ArgumentParser]


def add_steering(commands: Any, command: Command) -> None:
    seeds = command(commands, "seeds", "add URLs to crawl from, also while the crawl runs", _seeds)
    _add_folder(seeds)
    seeds.add_argument(
        "seeds", nargs="*", metavar="SEED", help="a URL, a file with one URL a line, or - for standard input"
    )
    _add_folder(command(commands, "pause", "let a running crawl make no new requests", _pause))
    _add_folder(command(commands, "resume", "let a paused crawl go on", _resume))


def _add_folder(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", type=Path, metavar="DIR", help="the crawl's folder")


def _seeds(arguments: argparse.Namespace) -> int:
    from skitter.console.steer import commands
    from skitter.seeds import read_seeds
    from skitter.urls.keys import Keys

    folder, settings = _existing(arguments)
    urls = [seed.url for seed in read_seeds(arguments.seeds, (), Keys(settings.keys))]
    return _say(commands.seeds(folder, settings, urls, as_json=arguments.json))


def _pause(arguments: argparse.Namespace) -> int:
    from skitter.console.steer import commands

    return _say(commands.pause(*_existing(arguments), as_json=arguments.json))


def _resume(arguments: argparse.Namespace) -> int:
    from skitter.console.steer import commands

    return _say(commands.resume(*_existing(arguments), as_json=arguments.json))


def _existing(arguments: argparse.Namespace) -> tuple[CrawlFolder, Settings]:
    from skitter.folder import CrawlFolder
    from skitter.settings.load import load

    folder = CrawlFolder.existing(arguments.folder)
    return folder, load(crawl_file=folder.settings_file, environ=os.environ).settings


def _say(command: Coroutine[Any, Any, str]) -> int:
    import asyncio  # here: half of the time that --help takes

    write(asyncio.run(command) + "\n")
    return 0
