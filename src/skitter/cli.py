"""The command line: arguments to commands, errors to one line and an exit code.

Exit codes: 0 done; 1 our own fault (disk, store); 2 the command cannot be carried out as given; 3 the crawl ended
with URLs that still wait for a retry; 130 interrupted. Modules are imported when a command needs them, so that
`--help` is quick.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import os
import re
import sys
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from skitter import __version__
from skitter.console.output import write
from skitter.console.reading import add_reading
from skitter.console.serving import add_serve
from skitter.console.working import add_working
from skitter.errors import SkitterError, UsageError

if TYPE_CHECKING:
    from skitter.folder import CrawlFolder
    from skitter.model import HostPolicy
    from skitter.settings.load import Loaded

_EPILOG = """\
examples:
  skitter crawl https://example.org/ --into example --contact you@example.org
  skitter crawl --into example                       go on where it stopped
  skitter crawl seeds.txt --into many --scope any --max-pages 10000 --contact you@example.org
  skitter explain https://example.org/page --in example
  skitter query example "select host, status, count(*) from pages group by all"
"""

# flag, setting, metavar, help
_CRAWL_FLAGS: tuple[tuple[str, str, str, str], ...] = (
    (
        "--scope",
        "crawl.scope",
        "KIND",
        "follow links within the seeds' host (default), domain, prefix, or any",
    ),
    ("--include", "crawl.include", "REGEX", "follow only URLs that match; may be repeated"),
    ("--exclude", "crawl.exclude", "REGEX", "never fetch URLs that match; may be repeated"),
    ("--max-pages", "crawl.max_pages", "N", "stop after N pages"),
    ("--max-depth", "crawl.max_depth", "N", "follow at most N links from a seed (default 15)"),
    ("--delay", "politeness.delay", "SECONDS", "between two requests to one host (default 1)"),
    ("--concurrency", "fetch.concurrency", "N", "requests in flight over all hosts (default 256)"),
    ("--workers", "crawl.workers", "N", "processes that fetch and read pages (default: as needed)"),
    ("--contact", "identity.contact", "ADDRESS", "e-mail or URL for site owners; needed for public hosts"),
    ("--archive", "archive.url", "URL", "object store for the archive, such as s3://BUCKET/PREFIX"),
    (
        "--resolve",
        "fetch.resolve",
        "HOST:PORT:ADDRESS[:PORT]",
        "dial ADDRESS for HOST (* for any); may be repeated",
    ),
)
_SWITCHES = (
    ("--requisites", "crawl.requisites", "fetch styles, images, scripts and fonts of pages too, for replay"),
    ("--allow-private", "fetch.allow_private", "let names lead to loopback and private addresses"),
    ("--log-json", "log.json", "log to standard error too, in JSON lines, and nothing else there"),
)
_REPEATED = ("crawl.include", "crawl.exclude", "fetch.resolve")


def run() -> NoReturn:
    """`main`, and then the end of the process as the kernel has it. All that matters was closed and flushed; the
    interpreter would free a crawl's caches row by row, 0.1 s after 10,000 pages."""
    code = main()
    if threading.active_count() > 1:
        sys.exit(code)
    atexit._run_exitfuncs()
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    try:
        try:
            arguments = _parse(argv)
            code: int = arguments.run(arguments)
        finally:
            write("")  # what is left to be said
        return code
    except SkitterError as error:
        print(f"skitter: {_one_line(error)}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    arguments, rest = parser.parse_known_args(argv)
    # argparse takes one run of positionals only: in `crawl a --into d b` it would not know what b is
    if rest and not (hasattr(arguments, "seeds") and all(word[:1] != "-" or word == "-" for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        arguments.seeds += rest
    return arguments


def _one_line(error: SkitterError) -> str:
    return " ".join(str(error).splitlines())


class _Parser(argparse.ArgumentParser):
    """Complains as everything else does: one line, `skitter: ` first, and what to do."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")

    def _print_message(self, message: str, file: object = None) -> None:
        # argparse of Python 3.11.2 (Debian 12) does not forgive a reader that has left, as in `--help | head`
        write(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="skitter",
        description="A web crawler that is fast globally and polite locally.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"skitter {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_crawl(commands)
    add_serve(commands, _command)
    _add_stats(commands)
    _add_explain(commands)
    _add_hosts(commands)
    _add_dead(commands)
    _add_refresh(commands)
    _add_traps(commands)
    _add_policy(commands)
    add_reading(commands, _command)
    add_working(commands, _command)
    _add_settings(commands)
    return parser


def _command(commands: Any, name: str, help_text: str, run: Any, **kwargs: Any) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=help_text, description=help_text[0].upper() + help_text[1:] + ".", **kwargs
    )
    command.set_defaults(run=run)
    command.add_argument("--json", action="store_true", help="output for programs")
    return command


def _add_crawl(commands: Any) -> None:
    command = _command(commands, "crawl", "crawl from seed URLs into a folder, or go on with one", _crawl)
    command.add_argument(
        "seeds", nargs="*", metavar="SEED", help="a URL, a file with one URL a line, or - for standard input"
    )
    command.add_argument(
        "--into",
        required=True,
        type=Path,
        metavar="DIR",
        help="the crawl's folder; a known one is gone on with",
    )
    for flag, setting, metavar, text in _CRAWL_FLAGS:
        action = "append" if setting in _REPEATED else "store"
        command.add_argument(flag, dest=setting, action=action, metavar=metavar, help=text)
    command.add_argument(
        "--memory",
        dest="frontier.memory",
        type=_size,
        metavar="SIZE",
        help="RAM for the frontier's caches, such as 500M or 2G (default 256M)",
    )
    for flag, setting, text in _SWITCHES:
        command.add_argument(flag, dest=setting, action="store_const", const=True, help=text)
    command.add_argument("--config", type=Path, metavar="FILE", help="settings in TOML; see skitter settings")


def _add_stats(commands: Any) -> None:
    command = _command(commands, "stats", "show a crawl's figures", _stats)
    _add_folder(command)


def _add_explain(commands: Any) -> None:
    command = _command(commands, "explain", "say why a URL was crawled, or was not", _explain)
    command.add_argument("url", metavar="URL")
    command.add_argument(
        "--in", dest="folder", required=True, type=Path, metavar="DIR", help="the crawl's folder"
    )


def _add_hosts(commands: Any) -> None:
    command = _command(commands, "hosts", "list hosts, the most fetched first", _hosts)
    _add_folder(command)
    command.add_argument(
        "--limit", type=_at_least_one, default=50, metavar="N", help="at most N (default 50)"
    )
    command.add_argument(
        "--standing",
        choices=("idle", "waiting", "active", "backing_off", "blocked", "given_up"),
        help="only hosts that are so",
    )


def _add_dead(commands: Any) -> None:
    command = _command(commands, "dead", "list dead letters, or queue them again", _dead)
    _add_folder(command)
    command.add_argument("urls", nargs="*", metavar="URL", help="with --requeue: only these")
    command.add_argument(
        "--requeue", action="store_true", help="queue them again, with their attempts forgotten"
    )
    command.add_argument("--host", metavar="HOST", help="only of this host")
    command.add_argument(
        "--limit", type=_at_least_one, default=100, metavar="N", help="list at most N (default 100)"
    )


def _add_refresh(commands: Any) -> None:
    command = _command(commands, "refresh", "queue what was fetched again, to see what changed", _refresh)
    _add_folder(command)
    command.add_argument("urls", nargs="*", metavar="URL", help="only these")
    command.add_argument("--host", metavar="HOST", help="only of this host")


def _add_traps(commands: Any) -> None:
    command = _command(commands, "traps", "list kinds of pages that bring nothing new, or undo one", _traps)
    _add_folder(command)
    command.add_argument(
        "--undo", type=_at_least_one, metavar="ID", help="let this one's URLs in, now and from now on"
    )
    command.add_argument(
        "--limit", type=_at_least_one, default=100, metavar="N", help="list at most N (default 100)"
    )


def _add_policy(commands: Any) -> None:
    command = _command(commands, "policy", "show or set what holds for one host", _policy)
    _add_folder(command)
    command.add_argument(
        "host", metavar="HOST", help="example.org (both schemes) or https://example.org:8443"
    )
    command.add_argument("--delay", type=_not_negative, metavar="SECONDS", help="between two request starts")
    command.add_argument("--parallel", type=_at_least_one, metavar="N", help="requests in flight at once")
    command.add_argument("--budget", type=_count, metavar="N", help="pages at most; 0 for no limit")
    command.add_argument("--block", action="store_true", help="do not contact this host at all")
    command.add_argument(
        "--verify-tls", action=argparse.BooleanOptionalAction, help="check the host's certificate, or do not"
    )
    command.add_argument("--clear", action="store_true", help="forget the policy")


def _add_settings(commands: Any) -> None:
    command = _command(
        commands, "settings", "print the settings in force and where each came from", _settings
    )
    command.add_argument("--in", dest="folder", type=Path, metavar="DIR", help="of this crawl")
    command.add_argument("--config", type=Path, metavar="FILE", help="with this file")


def _add_folder(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", type=Path, metavar="DIR", help="the crawl's folder")


def _not_negative(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, 0 or more")
    return value


def _count(text: str, least: int = 0) -> int:
    # at most 18 digits: more would be no number that the store can keep
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, {least} or more")
    return int(text)


def _at_least_one(text: str) -> int:
    return _count(text, 1)


def _size(text: str) -> int:
    """Bytes, or a number with k, M or G."""
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    factor = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}.get(unit)
    if factor is None or not number.replace(".", "", 1).isdigit():
        raise argparse.ArgumentTypeError(f"{text} is not a size such as 500M or 2G")
    return int(float(number) * factor)


# -- running


def _crawl(arguments: argparse.Namespace) -> int:
    from skitter.console.crawl import EXIT_CODES, run_crawl
    from skitter.console.display import choose_display
    from skitter.console.hired import processes_for
    from skitter.console.spares import spared
    from skitter.folder import CrawlFolder
    from skitter.seeds import read_seeds
    from skitter.urls.keys import Keys

    folder = CrawlFolder.for_crawling(arguments.into)
    loaded = _load(folder, arguments.config, _flags(arguments))
    seeds = read_seeds(arguments.seeds, (), Keys(loaded.settings.keys))
    stream = sys.stdout if arguments.json else sys.stderr
    as_json = arguments.json or loaded.settings.log.json
    with spared(processes_for(loaded.settings.crawl.workers), main) as spares:
        ended = _run(run_crawl(folder, loaded, seeds, choose_display(stream, json=as_json), spares))
    return EXIT_CODES[ended]


def _flags(arguments: argparse.Namespace) -> dict[str, Any]:
    from skitter.settings.load import Flag

    names = {setting: flag for flag, setting, _, _ in _CRAWL_FLAGS}
    names |= {setting: flag for flag, setting, _ in _SWITCHES} | {"frontier.memory": "--memory"}
    given = vars(arguments)
    return {
        setting: Flag(given[setting], flag) for setting, flag in names.items() if given[setting] is not None
    }


def _load(folder: CrawlFolder | None, config: Path | None, flags: dict[str, Any]) -> Loaded:
    from skitter.settings.load import load

    crawl_file = folder.settings_file if folder and folder.settings_file.is_file() else None
    return load(crawl_file=crawl_file, config_file=config, environ=os.environ, flags=flags)


def _run(command: Coroutine[Any, Any, Any]) -> Any:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(command)


def _existing(arguments: argparse.Namespace) -> tuple[CrawlFolder, Any]:
    from skitter.folder import CrawlFolder

    folder = CrawlFolder.existing(arguments.folder)
    return folder, _load(folder, None, {}).settings


def _say(text: str) -> int:
    write(text + "\n")
    return 0


def _stats(arguments: argparse.Namespace) -> int:
    from skitter.console import inspect

    folder, settings = _existing(arguments)
    return _say(_run(inspect.stats(folder, settings, as_json=arguments.json)))


def _explain(arguments: argparse.Namespace) -> int:
    from skitter.console import inspect

    folder, settings = _existing(arguments)
    return _say(_run(inspect.explain(folder, settings, arguments.url, as_json=arguments.json)))


def _hosts(arguments: argparse.Namespace) -> int:
    from skitter.console import inspect

    folder, settings = _existing(arguments)
    asked = {"limit": arguments.limit, "standing": arguments.standing}
    return _say(_run(inspect.hosts(folder, settings, **asked, as_json=arguments.json)))


def _dead(arguments: argparse.Namespace) -> int:
    from skitter.console import inspect

    folder, settings = _existing(arguments)
    if arguments.requeue:
        asked = {"host": arguments.host, "urls": arguments.urls}
        return _say(_run(inspect.requeue(folder, settings, **asked, as_json=arguments.json)))
    if arguments.urls:
        raise UsageError("URLs are for requeueing: add --requeue, or ask skitter explain URL about one")
    asked = {"host": arguments.host, "limit": arguments.limit}
    return _say(_run(inspect.dead(folder, settings, **asked, as_json=arguments.json)))


def _refresh(arguments: argparse.Namespace) -> int:
    from skitter.console import inspect

    folder, settings = _existing(arguments)
    asked = {"host": arguments.host, "urls": arguments.urls}
    return _say(_run(inspect.refresh(folder, settings, **asked, as_json=arguments.json)))


def _traps(arguments: argparse.Namespace) -> int:
    from skitter.console import traps

    folder, settings = _existing(arguments)
    if arguments.undo is not None:
        return _say(_run(traps.undo(folder, settings, arguments.undo, as_json=arguments.json)))
    return _say(_run(traps.traps(folder, settings, limit=arguments.limit, as_json=arguments.json)))


def _policy(arguments: argparse.Namespace) -> int:
    from skitter.console import inspect

    folder, settings = _existing(arguments)
    change = _policy_change(arguments)
    return _say(_run(inspect.policy(folder, settings, arguments.host, change, as_json=arguments.json)))


def _policy_change(arguments: argparse.Namespace) -> HostPolicy | None:
    from skitter.model import HostPolicy

    change = HostPolicy(
        delay=arguments.delay,
        parallel=arguments.parallel,
        budget=arguments.budget,
        blocked=arguments.block,
        verify_tls=arguments.verify_tls,
    )
    if arguments.clear:
        if change != HostPolicy():
            raise UsageError("--clear forgets the policy: give it alone, then set a new one")
        return HostPolicy()
    return None if change == HostPolicy() else change


def _settings(arguments: argparse.Namespace) -> int:
    from skitter.folder import CrawlFolder
    from skitter.settings.load import as_json, render

    folder = CrawlFolder.existing(arguments.folder) if arguments.folder else None
    loaded = _load(folder, arguments.config, {})
    return _say(as_json(loaded) if arguments.json else render(loaded))
