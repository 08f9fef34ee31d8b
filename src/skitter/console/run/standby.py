"""`skitter standby`: a folder that follows a crawl which another machine works on, until that machine is silent.

Arguments and the loop around `frontier/log/standby.py`. Never works on the crawl itself: when it ends, the
folder is one to go on with, by `skitter crawl` or `skitter serve` like any other.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skitter.errors import LogFailed, UsageError

if TYPE_CHECKING:
    from skitter.folder import CrawlFolder
    from skitter.frontier.log.base import Standing
    from skitter.frontier.log.standby import Standby

Command = Callable[..., argparse.ArgumentParser]
_LOOK = 0.5
_SAY_EVERY = 120


def add_standby(commands: Any, command: Command) -> None:
    standby = command(
        commands,
        "standby",
        "follow a crawl that another machine works on, until it can be taken over",
        _standby,
        has_json=False,
    )
    standby.add_argument("folder", type=Path, metavar="DIR", help="the crawl's folder on this machine")
    standby.add_argument(
        "--frontier-log", default="", metavar="URL", help="the crawl's log; needed where DIR is new"
    )
    standby.add_argument(
        "--once", action="store_true", help="end when all that is in the log is here, whoever works on it"
    )


def _standby(arguments: argparse.Namespace) -> int:
    from skitter.folder import CrawlFolder

    folder = CrawlFolder.for_crawling(arguments.folder)
    if folder.is_new and not arguments.frontier_log:
        raise UsageError(f"{folder.path} holds no crawl yet: name the log to follow with --frontier-log URL")
    with folder.locked():
        _follow(folder, arguments.frontier_log, once=arguments.once)
    return 0


def _follow(folder: CrawlFolder, url: str, *, once: bool) -> None:
    from skitter.frontier_log import open_standby

    standby = open_standby(folder, url)
    try:
        standing = standby.step()
        _say(f"{folder.path} has all {standing.sequence:,} commits of the log")
        if not once:
            standing = _until_free(standby)
    finally:
        standby.close()
    if standing.is_free:
        _say(f"nobody works on this crawl: go on with skitter crawl --into {folder.path}, or skitter serve")


def _until_free(standby: Standby) -> Standing:
    """Also with all that was appended before: whoever is silent may have appended just before."""
    for look in itertools.count(1):
        try:
            standing = standby.step()
            if standing.is_free and not standby.behind:
                return standing
            if look % _SAY_EVERY == 0:
                _say(f"following {standing.place}, at commit {standing.sequence:,}")
        except LogFailed as error:
            # the database is away, and with it whatever it could tell of the owner
            _say(f"{error}; it is asked again")
        time.sleep(_LOOK)
    raise AssertionError("it looks for ever")


def _say(text: str) -> None:
    print(f"skitter: {text}", file=sys.stderr, flush=True)
