"""The command line of what a crawl owes to those whom it asks. Arguments only; the work is imported late."""

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
_HOST = "example.org (both schemes) or https://example.org:8443"


def add_citizen(commands: Any, command: Command) -> None:
    ledger = command(commands, "ledger", "say what one host was asked, for its webmaster", _ledger)
    ledger.add_argument("host", metavar="HOST", help=_HOST)
    _add_folder(ledger)
    ledger.add_argument(
        "--limit", type=_whole, default=20, metavar="N", help="list the latest N requests (default 20)"
    )


def _add_folder(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--in", dest="folder", required=True, type=Path, metavar="DIR", help="the crawl's folder"
    )


def _whole(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 0 or more")
    return int(text)


def _ledger(arguments: argparse.Namespace) -> int:
    from skitter.console.citizen.ledger import ledger

    folder, settings = _existing(arguments)
    return _say(ledger(folder, settings, arguments.host, limit=arguments.limit, as_json=arguments.json))


def _existing(arguments: argparse.Namespace) -> tuple[CrawlFolder, Settings]:
    from skitter.folder import CrawlFolder
    from skitter.settings.load import load

    folder = CrawlFolder.existing(arguments.folder)
    return folder, load(crawl_file=folder.settings_file, environ=os.environ).settings


def _say(command: Coroutine[Any, Any, str]) -> int:
    import asyncio  # here: half of the time that --help takes

    write(asyncio.run(command) + "\n")
    return 0
