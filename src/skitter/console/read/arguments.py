"""The command line of the reading commands: query, show, changes, history, verify, export, sink.
Arguments only; the
work is imported late."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skitter.errors import UsageError

EXPORTS = ("wacz", "warc", "parquet", "jsonl", "csv", "markdown", "files", "shards", "duckdb", "cdxj")
_QUERY_HELP = """\
examples:
  skitter query DIR "select host, status, count(*) from pages group by all order by 3 desc"
  skitter query DIR "select url, title from pages where status = 200 and mime = 'text/html'" --format csv
  skitter query DIR "describe pages"
"""
_SINK_HELP = """\
examples:
  skitter sink DIR --to postgresql://crawler@db.example.org/crawls --tables pages,links,changes
  skitter sink DIR --to s3://bucket/shop --tables items --once
  SKITTER_SINK_TOKEN=... skitter sink DIR --to https://example.org/rows --where "status = 200"
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
    show.add_argument(
        "--to", type=Path, metavar="FILE.warc.gz", help="save its records in this file, for tests of plugins"
    )
    changes = command(commands, "changes", "list pages that are new, changed or gone", _changes)
    _add_folder(changes)
    changes.add_argument(
        "--since", required=True, metavar="TIME", help="a time, or so long ago: 2026-01-31, 7d, 12h"
    )
    _add_format(changes, ("table", "csv", "json"))
    history = command(commands, "history", "show the visits of a page, and its last change", _history)
    history.add_argument("url", metavar="URL")
    history.add_argument(
        "--in", dest="folder", required=True, type=_place, metavar="DIR", help="the crawl's folder"
    )
    verify = command(commands, "verify", "read the whole archive again and name every defect", _verify)
    _add_folder(verify)
    _add_format(verify, ("table", "json"))
    report = command(
        commands, "report", "say what an archive holds, lacks and lost, as a page or as JSON", _report
    )
    _add_folder(report)
    report.add_argument("--to", type=Path, metavar="PATH", help="write it to this HTML file too")
    report.add_argument("--force", action="store_true", help="replace what is at PATH")
    export = command(commands, "export", "write the archive, or a part of it, in another form", _export)
    _add_folder(export)
    export.add_argument("--to", required=True, choices=EXPORTS, help="the form")
    export.add_argument("path", type=Path, metavar="PATH", help="a file, or a folder, to be made")
    export.add_argument("--where", default="", metavar="SQL", help=_WHERE)
    export.add_argument(
        "--items", metavar="TYPE", help="the items of this type that extractors made: jsonl, csv or parquet"
    )
    export.add_argument("--force", action="store_true", help="replace what is at PATH")
    export.add_argument(
        "--sign", action="store_true", help="sign the WACZ package, with a new key that is then forgotten"
    )
    export.add_argument(
        "--sign-key", type=Path, metavar="FILE", help="sign it with this private key, in PEM form"
    )
    _add_extract(commands, command)
    _add_focus(commands, command)
    _add_page_shell(commands, command)
    _add_render(commands, command)
    _add_sink(commands, command)


def _add_render(commands: Any, command: Command) -> None:
    render = command(commands, "render", "render archived pages in a browser that has no network", _render)
    _add_folder(render)
    render.add_argument("url", metavar="URL", nargs="?", default="", help="this page, whatever it looks like")
    render.add_argument(
        "--all", action="store_true", help="also pages that look as if they needed no browser"
    )
    render.add_argument("--where", default="", metavar="SQL", help=_WHERE)
    render.add_argument(
        "--to", type=Path, metavar="FILE.warc.gz", help="write the rendered pages into this WARC file"
    )
    render.add_argument(
        "--screenshots", type=Path, metavar="FOLDER", help="make this folder of pictures, with an index.html"
    )
    render.add_argument("--force", action="store_true", help="replace what is there")


def _add_sink(commands: Any, command: Command) -> None:
    sink = command(
        commands,
        "sink",
        "send committed rows on to a database, a stream, a server or files",
        _sink,
        epilog=_SINK_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_folder(sink)
    sink.add_argument(
        "--to",
        required=True,
        metavar="TARGET",
        help="postgresql://, kafka://, https://, s3:// or file://; env:NAME names a variable",
    )
    sink.add_argument(
        "--tables",
        default="pages,items",
        metavar="NAMES",
        help="of pages, links, text, items, changes (default pages,items)",
    )
    sink.add_argument(
        "--where", default="", metavar="SQL", help="only these rows: SQL on the columns of each table"
    )
    sink.add_argument("--once", action="store_true", help="end when all that is committed now is sent")
    sink.add_argument(
        "--name", default="", help="of the crawl, where a target holds several (default the folder's)"
    )
    sink.add_argument(
        "--format",
        dest="file_form",
        choices=("parquet", "jsonl"),
        default="parquet",
        help="of files (default parquet)",
    )
    sink.add_argument(
        "--note",
        type=Path,
        metavar="FILE",
        help="for https: where to keep how far it is (default DIR/sinks/NAME.parts)",
    )


def _add_extract(commands: Any, command: Command) -> None:
    extract = command(commands, "extract", "make items of what was archived, without fetching", _extract)
    extract.add_argument("folder", type=Path, metavar="DIR", help="the crawl's folder")
    _add_plugins(extract)
    extract.add_argument("--where", default="", metavar="SQL", help=_WHERE)
    extract.add_argument("--jobs", type=_jobs, default=1, metavar="N", help="processes (default 1)")
    plugins = command(
        commands, "plugins", "list extractors, their versions and where they come from", _plugins
    )
    plugins.add_argument("--in", dest="folder", type=Path, metavar="DIR", help="those of this crawl")
    plugins.add_argument(
        "--cost", action="store_true", help="with --in, also CPU a page, over up to 200 archived pages"
    )
    _add_plugins(plugins)


def _add_focus(commands: Any, command: Command) -> None:
    focus = command(commands, "focus", "learn a topic from example pages, or score pages by it", _focus)
    focus.add_argument("act", choices=("train", "score"), help="train a model, or try one out on pages")
    focus.add_argument(
        "pages",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="train: the folder of pages about the topic and that of others; score: pages",
    )
    focus.add_argument("--to", type=Path, metavar="FILE", help="train: the model (default topic.json)")
    focus.add_argument("--model", type=Path, metavar="FILE", help="score: the model (default topic.json)")


def _add_page_shell(commands: Any, command: Command) -> None:
    shell = command(
        commands,
        "shell",
        "try selectors out on one page: fetched politely, or archived",
        _shell,
        has_json=False,
    )
    shell.add_argument("url", metavar="URL")
    shell.add_argument(
        "--in",
        dest="folder",
        type=_place,
        metavar="DIR",
        help="take it from this archive; nothing is fetched",
    )
    shell.add_argument(
        "-c",
        dest="code",
        action="append",
        default=[],
        metavar="CODE",
        help="run this and end; may be repeated",
    )
    shell.add_argument("--contact", metavar="ADDRESS", help="e-mail or URL for site owners")
    shell.add_argument("--allow-private", action="store_true", help="also loopback and private addresses")
    _add_plugins(shell)


def _add_plugins(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--with",
        dest="plugins",
        action="append",
        metavar="PLUGIN",
        default=[],
        help="a file, module or built-in",
    )
    command.add_argument(
        "--config", type=Path, metavar="FILE", help="rules in TOML: its [extract.NAME] tables"
    )


def _jobs(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 64")
    return int(text)


def _add_folder(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "folder",
        type=_place,
        metavar="DIR",
        help="the crawl's folder, a WARC or WACZ file or a folder of them, or the URL of an object store",
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
    from skitter.console.read.query import run_query

    run_query(arguments.folder, arguments.sql, _form(arguments))
    return 0


def _show(arguments: argparse.Namespace) -> int:
    from skitter.console.read.show import run_show, save_page

    if arguments.to is not None:
        save_page(arguments.folder, arguments.url, arguments.at, arguments.to)
        return 0
    run_show(arguments.folder, arguments.url, arguments.part, arguments.at, as_json=arguments.json)
    return 0


def _changes(arguments: argparse.Namespace) -> int:
    from skitter.console.read.changes import run_changes

    run_changes(arguments.folder, arguments.since, _form(arguments))
    return 0


def _history(arguments: argparse.Namespace) -> int:
    from skitter.console.read.changes import run_history

    run_history(arguments.folder, arguments.url, as_json=arguments.json)
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    import asyncio
    import os

    from skitter.collection.foreign.files import is_foreign
    from skitter.console.read.verify import read_ledger, run_verify
    from skitter.folder import CrawlFolder
    from skitter.settings.load import load

    form = _form(arguments)
    if isinstance(arguments.folder, str) or is_foreign(arguments.folder):
        return run_verify(arguments.folder, None, as_json=form == "json")
    folder = CrawlFolder.existing(arguments.folder)
    settings = load(crawl_file=folder.settings_file, config_file=None, environ=os.environ, flags={}).settings
    ledger = asyncio.run(read_ledger(folder, settings))
    return run_verify(folder.path, ledger, as_json=form == "json")


def _report(arguments: argparse.Namespace) -> int:
    from skitter.console.read.report import run_report

    run_report(arguments.folder, arguments.to, force=arguments.force, as_json=arguments.json)
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from skitter.collection.export.wacz import Signing
    from skitter.console.read.export import run_export

    key = arguments.sign_key
    run_export(
        arguments.folder,
        arguments.to,
        arguments.path,
        arguments.where,
        items=arguments.items,
        signing=Signing(arguments.sign or key is not None, key),
        force=arguments.force,
        as_json=arguments.json,
    )
    return 0


def _extract(arguments: argparse.Namespace) -> int:
    from skitter.console.read.extract import run_extract

    asked = arguments.folder, arguments.plugins, arguments.config, arguments.where, arguments.jobs
    run_extract(*asked, as_json=arguments.json)
    return 0


def _render(arguments: argparse.Namespace) -> int:
    from skitter.console.read.render import run_render

    run_render(
        arguments.folder,
        arguments.url,
        arguments.where,
        arguments.to,
        arguments.screenshots,
        every=arguments.all,
        force=arguments.force,
        as_json=arguments.json,
    )
    return 0


def _plugins(arguments: argparse.Namespace) -> int:
    from skitter.console.read.extract import run_plugins

    asked = arguments.folder, arguments.plugins, arguments.config
    run_plugins(*asked, with_cost=arguments.cost, as_json=arguments.json)
    return 0


def _focus(arguments: argparse.Namespace) -> int:
    from skitter.console.read.focus import run_score, run_train

    if arguments.act == "train":
        run_train(arguments.pages, arguments.to or Path("topic.json"), as_json=arguments.json)
    else:
        run_score(arguments.pages, arguments.model or Path("topic.json"), as_json=arguments.json)
    return 0


def _shell(arguments: argparse.Namespace) -> int:
    from skitter.console.read.shell import run_shell

    settings = {"identity.contact": arguments.contact, "fetch.allow_private": arguments.allow_private or None}
    run_shell(arguments.url, arguments.folder, arguments.config, settings, arguments.plugins, arguments.code)
    return 0


def _sink(arguments: argparse.Namespace) -> int:
    from skitter.console.read.sink import run_sink

    run_sink(
        arguments.folder,
        arguments.to,
        arguments.tables,
        arguments.where,
        name=arguments.name,
        form=arguments.file_form,
        note=arguments.note,
        once=arguments.once,
        as_json=arguments.json,
    )
    return 0
