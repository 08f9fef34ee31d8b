"""The command line of the reading commands: query, show, verify, export. Arguments only; the work is imported
late."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skitter.errors import UsageError

EXPORTS = ("wacz", "warc", "parquet", "jsonl", "markdown", "files", "cdxj")
_QUERY_HELP = """\
examples:
  skitter query DIR "select host, status, count(*) from pages group by all order by 3 desc"
  skitter query DIR "select url, title from pages where status = 200 and mime = 'text/html'" --format csv
  skitter query DIR "describe pages"
"""
_WHERE = "SQL on the columns of pages, such as \"status = 200 and host = 'example.org'\""
Command = Callable[..., argparse.ArgumentParser]


def add_reading(commands: Any, command: Command) -> None:
    raw = argparse.RawDescriptionHelpFormatter
    query = command(
        commands, "query", "ask the archive's tables in SQL", _query, epilog=_QUERY_HELP, formatter_class=raw
    )
    _add_folder(query)
    query.add_argument("sql", metavar="SQL", help="one select over pages, links and text")
    _add_format(query, ("table", "csv", "json"))
    show = command(commands, "show", "show an archived page", _show)
    _add_folder(show)
    show.add_argument("url", metavar="URL")
    part = show.add_mutually_exclusive_group()
    for name, text in (
        ("body", "the body, content coding undone (default)"),
        ("headers", "the response's status line and headers"),
        ("text", "the text of the page"),
    ):
        part.add_argument(
            f"--{name}", dest="part", action="store_const", const=name, default="body", help=text
        )
    show.add_argument(
        "--at", metavar="TIME", help="as of then: 2026-01-31, 2026-01-31T12:00:00Z or 14 digits"
    )
    verify = command(commands, "verify", "read the whole archive again and name every defect", _verify)
    _add_folder(verify)
    _add_format(verify, ("table", "json"))
    export = command(commands, "export", "write the archive, or a part of it, in another form", _export)
    _add_folder(export)
    export.add_argument("--to", required=True, choices=EXPORTS, help="the form")
    export.add_argument("path", type=Path, metavar="PATH", help="a file, or a folder, to be made")
    export.add_argument("--where", default="", metavar="SQL", help=_WHERE)
    export.add_argument("--force", action="store_true", help="replace what is at PATH")


def _add_folder(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "folder",
        type=_place,
        metavar="DIR",
        help="the crawl's folder, or the URL of an archive in an object store",
    )


def _place(text: str) -> Path | str:
    return text if "://" in text else Path(text)


def _add_format(command: argparse.ArgumentParser, forms: tuple[str, ...]) -> None:
    command.add_argument("--format", dest="form", choices=forms, help="how to print it (default table)")


def _form(arguments: argparse.Namespace) -> str:
    if arguments.json and arguments.form not in (None, "json"):
        raise UsageError(f"--json and --format {arguments.form} contradict each other: give one")
    return "json" if arguments.json else arguments.form or "table"


def _query(arguments: argparse.Namespace) -> int:
    from skitter.console.query import run_query

    run_query(arguments.folder, arguments.sql, _form(arguments))
    return 0


def _show(arguments: argparse.Namespace) -> int:
    from skitter.console.show import run_show

    run_show(arguments.folder, arguments.url, arguments.part, arguments.at, as_json=arguments.json)
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    import asyncio
    import os

    from skitter.console.verify import read_ledger, run_verify
    from skitter.folder import CrawlFolder
    from skitter.settings.load import load

    form = _form(arguments)
    if isinstance(arguments.folder, str):
        return run_verify(arguments.folder, None, as_json=form == "json")
    folder = CrawlFolder.existing(arguments.folder)
    settings = load(crawl_file=folder.settings_file, config_file=None, environ=os.environ, flags={}).settings
    ledger = asyncio.run(read_ledger(folder, settings))
    return run_verify(folder.path, ledger, as_json=form == "json")


def _export(arguments: argparse.Namespace) -> int:
    from skitter.console.export import run_export

    run_export(
        arguments.folder,
        arguments.to,
        arguments.path,
        arguments.where,
        force=arguments.force,
        as_json=arguments.json,
    )
    return 0
