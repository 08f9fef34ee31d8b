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
    _add_subscribe(commands, command)


def _add_subscribe(commands: Any, command: Command) -> None:
    subscribe = command(commands, "subscribe", "have a hub tell of what changes (WebSub)", _subscribe)
    _add_folder(subscribe)
    subscribe.add_argument("topic", nargs="?", metavar="TOPIC", help="the feed or page, as it names itself")
    subscribe.add_argument("--hub", default="", metavar="URL", help="who tells of it")
    subscribe.add_argument(
        "--callback", default="", metavar="URL", help="where the hub reaches skitter serve from outside"
    )
    subscribe.add_argument("--end", action="store_true", help="be told no longer")
    subscribe.add_argument(
        "--renew", action="store_true", help="ask again for all that end within three days"
    )


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


def _subscribe(arguments: argparse.Namespace) -> int:
    from skitter.console.steer import subscribe

    folder, settings = _existing(arguments)
    asked = None
    if arguments.topic:
        asked = subscribe.asked_of(arguments.topic, arguments.hub, arguments.callback, end=arguments.end)
    return _say(subscribe.subscribe(folder, settings, asked, renew=arguments.renew, as_json=arguments.json))


def _existing(arguments: argparse.Namespace) -> tuple[CrawlFolder, Settings]:
    from skitter.folder import CrawlFolder
    from skitter.settings.load import load

    folder = CrawlFolder.existing(arguments.folder)
    return folder, load(crawl_file=folder.settings_file, environ=os.environ).settings


def _say(command: Coroutine[Any, Any, str]) -> int:
    import asyncio  # here: half of the time that --help takes

    write(asyncio.run(command) + "\n")
    return 0
