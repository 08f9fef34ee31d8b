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

    forget = command(commands, "forget", "remove a host or a URL from a crawl, for good", _forget)
    forget.add_argument("what", metavar="HOST|URL", help="a host, as for ledger, or a whole URL")
    _add_folder(forget)
    forget.add_argument("--receipt", type=Path, metavar="FILE", help="write the receipt to this file as well")

    identity = command(commands, "identity", "make or show the key that requests are signed with", _identity)
    identity.add_argument("key", type=Path, metavar="FILE", help="holds the private key, in PEM")
    identity.add_argument("--new", action="store_true", help="make a key, in a new file")
    identity.add_argument(
        "--agent", default="", metavar="URL", help="the host that will serve the key directory"
    )
    identity.add_argument(
        "--directory", type=Path, metavar="FILE", help="write the key directory to this file"
    )
    identity.add_argument("--purpose", default="crawling", metavar="WORD", help="in the key directory")
    page = command(commands, "bot-page", "write a page that says who crawls, for webmasters", _bot_page)
    _add_folder(page)
    page.add_argument(
        "--into", required=True, type=Path, metavar="FOLDER", help="to be served by a web server"
    )
    page.add_argument(
        "--range", action="append", default=[], metavar="CIDR", help="addresses crawled from; may be repeated"
    )
    page.add_argument("--why", default="", metavar="TEXT", help="what the crawl is for")


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


def _identity(arguments: argparse.Namespace) -> int:
    from skitter.console.citizen.identity import identity

    asked = identity(
        arguments.key,
        new=arguments.new,
        agent=arguments.agent,
        directory=arguments.directory,
        purpose=arguments.purpose,
        as_json=arguments.json,
    )
    return _say(asked)


def _bot_page(arguments: argparse.Namespace) -> int:
    from skitter.console.citizen.identity import bot_page

    folder, settings = _existing(arguments)
    asked = bot_page(
        folder,
        settings,
        into=arguments.into,
        ranges=arguments.range,
        why=arguments.why,
        as_json=arguments.json,
    )
    return _say(asked)


def _forget(arguments: argparse.Namespace) -> int:
    from skitter.console.citizen.forget import forget

    folder, settings = _existing(arguments)
    asked = forget(folder, settings, arguments.what, receipt_file=arguments.receipt, as_json=arguments.json)
    return _say(asked)


def _existing(arguments: argparse.Namespace) -> tuple[CrawlFolder, Settings]:
    from skitter.folder import CrawlFolder
    from skitter.settings.load import load

    folder = CrawlFolder.existing(arguments.folder)
    return folder, load(crawl_file=folder.settings_file, environ=os.environ).settings


def _say(command: Coroutine[Any, Any, str]) -> int:
    import asyncio  # here: half of the time that --help takes

    write(asyncio.run(command) + "\n")
    return 0
