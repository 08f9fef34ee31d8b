"""The flags that are settings of a crawl: the same for `skitter crawl` and `skitter serve`.

Arguments only, and what was given of them as a layer of the settings. Never looks at a value: the settings do.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

# flag, setting, metavar (the words to choose from, or what it is), help
_CRAWL_FLAGS: tuple[tuple[str, str, str, str], ...] = (
    (
        "--scope",
        "crawl.scope",
        "host|domain|prefix|any",
        "follow links within the seeds' host (default), domain, prefix, or any",
    ),
    ("--include", "crawl.include", "REGEX", "follow only URLs that match; may be repeated"),
    ("--exclude", "crawl.exclude", "REGEX", "never fetch URLs that match; may be repeated"),
    ("--max-pages", "crawl.max_pages", "N", "stop after N pages"),
    ("--max-depth", "crawl.max_depth", "N", "follow at most N links from a seed (default 15)"),
    (
        "--sitemaps",
        "sitemaps.use",
        "also|only|off",
        "read sitemaps also (default), only what they name, or off",
    ),
    ("--delay", "politeness.delay", "SECONDS", "between two requests to one host (default 1)"),
    ("--concurrency", "fetch.concurrency", "N", "requests in flight over all hosts (default 256)"),
    ("--workers", "crawl.workers", "N", "processes that fetch and read pages (default: as needed)"),
    (
        "--traps",
        "traps.mode",
        "off|observe|on",
        "endless kinds of pages: on (default) stops them, observe, off",
    ),
    (
        "--render",
        "crawl.render",
        "never|auto|always",
        "show pages in a browser that has no network: never (default), auto (those that need it), always",
    ),
    (
        "--revisits-per-second",
        "revisit.per_second",
        "N",
        "with --keep-fresh, revisits over all hosts (default: a tenth of the pages a day)",
    ),
    ("--revisit-share", "revisit.share", "SHARE", "of revisits among requests (default 0.3)"),
    ("--never-revisit", "revisit.never", "REGEX", "never visit pages again that match; may be repeated"),
    ("--contact", "identity.contact", "ADDRESS", "e-mail or URL for site owners; needed for public hosts"),
    (
        "--with",
        "plugins.with",
        "PLUGIN",
        "your code sees the pages: a file, a module or a built-in; may be repeated",
    ),
    (
        "--focus",
        "focus.words",
        "WORD",
        "a word of the topic that the crawl is about: its pages first; may be repeated",
    ),
    ("--focus-model", "focus.model", "FILE", "the topic as skitter focus train learnt it"),
    (
        "--dedup-against",
        "archive.dedup_against",
        "ARCHIVE",
        "store no body again that this archive, or this CDXJ index, has; may be repeated",
    ),
    ("--archive", "archive.url", "URL", "object store for the archive, such as s3://BUCKET/PREFIX"),
    (
        "--frontier-log",
        "frontier.log",
        "URL",
        "PostgreSQL that keeps every commit, so that another machine can go on: postgresql://HOST/DATABASE",
    ),
    (
        "--resolve",
        "fetch.resolve",
        "HOST:PORT:ADDRESS[:PORT]",
        "dial ADDRESS for HOST (* for any); may be repeated",
    ),
)
_SWITCHES = (
    ("--keep-fresh", "revisit.keep_fresh", "visit pages again as they change; goes on until it is stopped"),
    ("--requisites", "crawl.requisites", "fetch styles, images, scripts and fonts of pages too, for replay"),
    (
        "--screenshots",
        "render.screenshots",
        "with --render, archive what pages look like (urn:view: records)",
    ),
    ("--allow-private", "fetch.allow_private", "let names lead to loopback and private addresses"),
    (
        "--frontier-log-unreplicated",
        "frontier.log_unreplicated",
        "take a --frontier-log without a synchronous standby: what it loses is lost",
    ),
    ("--log-json", "log.json", "log to standard error too, in JSON lines, and nothing else there"),
)
_REPEATED = (
    "archive.dedup_against",
    "crawl.include",
    "crawl.exclude",
    "fetch.resolve",
    "revisit.never",
    "plugins.with",
    "focus.words",
)
_MEMORY = ("--memory", "frontier.memory")
_MAX_AGE = ("--max-age", "revisit.max_age")
_FRESH_WITHIN = ("--fresh-within", "revisit.fresh_within")
# A served crawl fetches nothing itself: its workers are processes of their own.
_ONLY_CRAWL = ("crawl.workers",)


def add_crawl_flags(command: argparse.ArgumentParser, *, served: bool = False) -> None:
    for flag, setting, metavar, text in _CRAWL_FLAGS:
        if not (served and setting in _ONLY_CRAWL):
            action = "append" if setting in _REPEATED else "store"
            command.add_argument(flag, dest=setting, action=action, metavar=metavar, help=text)
    flag, setting = _MEMORY
    command.add_argument(
        flag,
        dest=setting,
        type=_size,
        metavar="SIZE",
        help="RAM for the frontier's caches, such as 500M or 2G (default 256M)",
    )
    _add_promises(command)
    for flag, setting, text in _SWITCHES:
        command.add_argument(flag, dest=setting, action="store_const", const=True, help=text)
    command.add_argument("--config", type=Path, metavar="FILE", help="settings in TOML; see skitter settings")


def _add_promises(command: argparse.ArgumentParser) -> None:
    flag, setting = _MAX_AGE
    command.add_argument(
        flag,
        dest=setting,
        type=duration,
        metavar="DURATION",
        help="with --keep-fresh, visit each page again after this long at the latest, such as 7d",
    )
    flag, setting = _FRESH_WITHIN
    command.add_argument(
        flag,
        dest=setting,
        action="append",
        nargs=2,
        metavar=("DURATION", "REGEX"),
        help="the same for URLs that match, such as 1h /news/; may be repeated",
    )


def given_flags(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings that the command line gives, each with its flag."""
    from skitter.settings.load import Flag

    names = {
        setting: flag for flag, setting, *_ in (*_CRAWL_FLAGS, *_SWITCHES, _MEMORY, _MAX_AGE, _FRESH_WITHIN)
    }
    given = dict(vars(arguments))
    if promises := given.get(_FRESH_WITHIN[1]):
        given[_FRESH_WITHIN[1]] = [" ".join(promise) for promise in promises]
    return {
        setting: Flag(given[setting], flag)
        for setting, flag in names.items()
        if given.get(setting) is not None
    }


def duration(text: str) -> float:
    from skitter.settings.durations import seconds_of

    found = seconds_of(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text} is not a duration such as 10m, 1h or 7d")
    return found


def _size(text: str) -> int:
    """Bytes, or a number with k, M or G."""
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    factor = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}.get(unit)
    if factor is None or not number.replace(".", "", 1).isdigit():
        raise argparse.ArgumentTypeError(f"{text} is not a size such as 500M or 2G")
    return int(float(number) * factor)
