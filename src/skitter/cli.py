"""The command line: arguments to commands, errors to one line and an exit code.

Exit codes: 0 done; 1 our own fault (disk, store); 2 the command cannot be carried out as given; 3 the crawl ended
with URLs that still wait for a retry; 130 interrupted. Modules are imported when a command needs them, so that
`--help` is quick.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import re
import sys
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from skitter import __version__
from skitter.console.citizen.arguments import add_citizen
from skitter.console.citizen.plan_arguments import add_plan
from skitter.console.display.output import write
from skitter.console.parser import Parser
from skitter.console.read.arguments import add_reading
from skitter.console.run.cluster_arguments import add_cluster
from skitter.console.run.crawl_flags import add_crawl_flags, duration, given_flags
from skitter.console.run.import_arguments import add_import
from skitter.console.run.serve_arguments import add_serve
from skitter.console.run.standby import add_standby
from skitter.console.run.worker_arguments import add_working
from skitter.console.shell_arguments import add_shell
from skitter.console.steer.arguments import add_steering
from skitter.errors import MissingExtra, SkitterError, UsageError
from skitter.extras import EXTRAS, advice

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

DASHBOARD = "127.0.0.1:8600"


def run() -> NoReturn:
    """`main`, and then the end of the process as the kernel has it. All that matters was closed and flushed; the
    interpreter would free a crawl's caches row by row, 0.1 s after 10,000 pages."""
    code = main()
    if threading.active_count() > 1:
        sys.exit(code)
    atexit._run_exitfuncs()
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    arguments = argparse.Namespace()
    try:
        try:
            arguments = _parse(words)
            code: int = arguments.run(arguments)
        finally:
            write("")  # what is left to be said
        return code
    except SkitterError as error:
        _complain(error, as_json=_is_for_a_log(words, arguments))
        return error.exit_code
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        _complain(MissingExtra(advice(error.name)), as_json=_is_for_a_log(words, arguments))
        return MissingExtra.exit_code
    except KeyboardInterrupt:
        return 130


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    if not words:
        return argparse.Namespace(run=lambda _: _help(parser))
    arguments, rest = parser.parse_known_args(words)
    # argparse takes one run of positionals only: in `crawl a --into d b` it would not know what b is
    if rest and not (hasattr(arguments, "seeds") and all(word[:1] != "-" or word == "-" for word in rest)):
        arguments.parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        arguments.seeds = [*arguments.seeds, *rest]
    return arguments


def _help(parser: argparse.ArgumentParser) -> int:
    """For `skitter` alone. Nothing was done: a script whose command came out empty should notice."""
    parser.print_help()
    return UsageError.exit_code


def _is_for_a_log(words: Sequence[str], arguments: argparse.Namespace) -> bool:
    """Whether standard error is read by a log collector, as far as is known when something went wrong."""
    by_environment = os.environ.get("SKITTER_LOG_JSON", "").lower() in ("1", "true")
    return by_environment or "--log-json" in words or getattr(arguments, "is_for_a_log", False)


def _complain(error: SkitterError, *, as_json: bool) -> None:
    if not as_json:
        print(f"skitter: {_one_line(error)}", file=sys.stderr)
        return
    from skitter.clock import SystemClock
    from skitter.log import stamped
    from skitter.telemetry import Event

    told = stamped(SystemClock().now(), Event.COMMAND_FAILED)
    told |= {"message": _one_line(error), "code": error.exit_code}
    print(json.dumps(told), file=sys.stderr)


def _one_line(error: SkitterError) -> str:
    return " ".join(str(error).splitlines())


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="skitter",
        description="A web crawler that is fast globally and polite locally.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"skitter {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_crawl(commands)
    add_import(commands, _command)
    add_serve(commands, _command)
    _add_stats(commands)
    _add_explain(commands)
    _add_hosts(commands)
    _add_dead(commands)
    _add_refresh(commands)
    _add_traps(commands)
    _add_policy(commands)
    add_reading(commands, _command)
    add_steering(commands, _command)
    add_working(commands, _command)
    add_citizen(commands, _command)
    add_plan(commands, _command)
    add_standby(commands, _command)
    add_cluster(commands, _command)
    _add_settings(commands)
    add_shell(commands, _command, parser, _EPILOG)
    return parser


def _command(
    commands: Any, name: str, help_text: str, run: Any, *, has_json: bool = True, **kwargs: Any
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=help_text, description=help_text[0].upper() + help_text[1:] + ".", **kwargs
    )
    command.set_defaults(run=run, parser=command)
    if has_json:
        command.add_argument("--json", action="store_true", help="output for programs")
    return command


def _add_crawl(commands: Any) -> None:
    command = _command(commands, "crawl", "crawl from seed URLs into a folder, or go on with one", _crawl)
    # a default, or argparse takes it for required and says so where something else is missing
    command.add_argument(
        "seeds",
        nargs="*",
        default=[],
        metavar="SEED",
        help="a URL or a bare domain, a file with one a line, or - for standard input",
    )
    command.add_argument(
        "--into",
        required=True,
        type=Path,
        metavar="DIR",
        help="the crawl's folder; a known one is gone on with",
    )
    command.add_argument(
        "--sitemap",
        action="append",
        default=[],
        metavar="URL",
        help="a sitemap or feed to begin with; may be repeated",
    )
    add_crawl_flags(command)
    command.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="NAME: VALUE",
        help="for the seeds' hosts; a secret is NAME: env:VARIABLE or NAME: file:PATH; may be repeated",
    )
    command.add_argument(
        "--dashboard",
        nargs="?",
        const=DASHBOARD,
        metavar="HOST:PORT",
        help=f"serve the dashboard and the API while it runs (default {DASHBOARD}; SKITTER_TOKENS guards it)",
    )


def _add_stats(commands: Any) -> None:
    command = _command(commands, "stats", "show a crawl's figures", _stats)
    _add_folder(command)
    command.add_argument(
        "--freshness", action="store_true", help="how many of its pages are expected to be current now"
    )


def _add_explain(commands: Any) -> None:
    command = _command(commands, "explain", "say why a URL was crawled, or was not", _explain)
    command.add_argument("url", metavar="URL", help="a URL, or its key as logs and listings print it")
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
    command.add_argument(
        "--retry",
        metavar="HOST",
        help="end this host's backoff or wait for a robots.txt now, and list nothing",
    )


def _add_dead(commands: Any) -> None:
    command = _command(commands, "dead", "list dead letters, or queue them again", _dead)
    _add_folder(command)
    command.add_argument("urls", nargs="*", default=[], metavar="URL", help="with --requeue: only these")
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
    command.add_argument("urls", nargs="*", default=[], metavar="URL", help="only these")
    command.add_argument("--host", metavar="HOST", help="only of this host")
    command.add_argument("--where", default="", metavar="SQL", help="only archived pages that SQL names")


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
        "--max-age",
        type=_duration_or_zero,
        metavar="DURATION",
        help="visit its pages again after that long at the latest, such as 12h; 0 for never",
    )
    command.add_argument(
        "--verify-tls", action=argparse.BooleanOptionalAction, help="check the host's certificate, or do not"
    )
    command.add_argument(
        "--daily-requests", type=_count, metavar="N", help="requests a day at most; 0 for no limit"
    )
    command.add_argument(
        "--daily-bytes",
        type=_count,
        metavar="N",
        help="bytes a day after which no more is asked; 0 for no limit",
    )
    command.add_argument(
        "--quiet-hours", metavar="HOURS", help="when it is not asked, by its clock: 22:00-06:00,12:00-13:00"
    )
    command.add_argument("--time-zone", metavar="ZONE", help="its clock, such as Europe/Berlin (default UTC)")
    command.add_argument("--weight", type=_weight, metavar="W", help="how urgent its pages are, from -1 to 1")
    command.add_argument("--region", metavar="NAME", help="ask it from this region, if a worker is there")
    command.add_argument(
        "--ignore-walls", action="store_true", help="its pages are pages, whatever they look like"
    )
    command.add_argument(
        "--render", choices=("never", "auto", "always"), help="show its pages in a browser without a network"
    )
    command.add_argument("--clear", action="store_true", help="forget the policy")


def _add_settings(commands: Any) -> None:
    command = _command(
        commands, "settings", "print the settings in force and where each came from", _settings
    )
    command.add_argument("--in", dest="folder", type=Path, metavar="DIR", help="of this crawl")
    command.add_argument("--config", type=Path, metavar="FILE", help="with this file")
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="with --in: change one for this crawl, also while it runs; may be repeated",
    )


def _add_folder(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", type=Path, metavar="DIR", help="the crawl's folder")


def _duration_or_zero(text: str) -> float:
    return 0.0 if text == "0" else duration(text)


def _not_negative(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, 0 or more")
    return value


def _weight(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 2.0
    if not -1 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from -1 to 1")
    return value


def _count(text: str, least: int = 0) -> int:
    # at most 18 digits: more would be no number that the store can keep
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, {least} or more")
    return int(text)


def _at_least_one(text: str) -> int:
    return _count(text, 1)


# -- running


def _crawl(arguments: argparse.Namespace) -> int:
    from skitter.console.display.display import choose_display
    from skitter.console.run.crawl import EXIT_CODES, run_crawl
    from skitter.folder import CrawlFolder
    from skitter.seeds import read_seeds, read_sitemaps
    from skitter.service.http.access import ENVIRONMENT as TOKENS
    from skitter.service.http.access import read_tokens
    from skitter.urls.keys import Keys

    dashboard, seed_words = dashboard_and_seeds(arguments)
    folder = CrawlFolder.for_crawling(arguments.into)
    loaded = _load(folder, arguments.config, given_flags(arguments))
    arguments.is_for_a_log = loaded.settings.log.json
    keys = Keys(loaded.settings.keys)
    own_seeds = loaded.settings.seeds
    seeds = read_seeds([*seed_words, *own_seeds], (), keys) + read_sitemaps(arguments.sitemap, keys)
    if arguments.header:
        from skitter.console.run.header_flags import with_headers

        loaded = with_headers(loaded, arguments.header, seeds)
    tokens = read_tokens(None, os.environ.get(TOKENS, ""))
    stream = sys.stdout if arguments.json else sys.stderr
    as_json = arguments.json or loaded.settings.log.json
    display = choose_display(stream, json=as_json)
    return EXIT_CODES[_run(run_crawl(folder, loaded, seeds, display, dashboard, tokens))]


def dashboard_and_seeds(arguments: argparse.Namespace) -> tuple[str, list[str]]:
    """Where the dashboard is served, and the seeds: in `--dashboard https://example.org/` the word is one."""
    word = arguments.dashboard or ""
    if word and not re.fullmatch(r"[^/]*:[0-9]+|unix:.+", word):
        return DASHBOARD, [word, *arguments.seeds]
    return word, arguments.seeds


def _load(folder: CrawlFolder | None, config: Path | None, flags: dict[str, Any]) -> Loaded:
    from skitter.settings.load import load

    crawl_file = folder.settings_file if folder and folder.settings_file.is_file() else None
    return load(crawl_file=crawl_file, config_file=config, environ=os.environ, flags=flags)


def _run(command: Coroutine[Any, Any, Any]) -> Any:
    import asyncio  # 20 ms that `--help` need not pay

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
    from skitter.console.read import inspect

    folder, settings = _existing(arguments)
    show = inspect.freshness if arguments.freshness else inspect.stats
    return _say(_run(show(folder, settings, as_json=arguments.json)))


def _explain(arguments: argparse.Namespace) -> int:
    from skitter.console.read import inspect

    folder, settings = _existing(arguments)
    return _say(_run(inspect.explain(folder, settings, arguments.url, as_json=arguments.json)))


def _hosts(arguments: argparse.Namespace) -> int:
    from skitter.console.read import inspect

    folder, settings = _existing(arguments)
    if arguments.retry is not None:
        from skitter.console.steer import commands

        return _say(_run(commands.retry(folder, settings, arguments.retry, as_json=arguments.json)))
    asked = {"limit": arguments.limit, "standing": arguments.standing}
    return _say(_run(inspect.hosts(folder, settings, **asked, as_json=arguments.json)))


def _dead(arguments: argparse.Namespace) -> int:
    from skitter.console.read import inspect

    folder, settings = _existing(arguments)
    if arguments.requeue:
        asked = {"host": arguments.host, "urls": arguments.urls}
        return _say(_run(inspect.requeue(folder, settings, **asked, as_json=arguments.json)))
    if arguments.urls:
        raise UsageError("URLs are for requeueing: add --requeue, or ask skitter explain URL about one")
    asked = {"host": arguments.host, "limit": arguments.limit}
    return _say(_run(inspect.dead(folder, settings, **asked, as_json=arguments.json)))


def _refresh(arguments: argparse.Namespace) -> int:
    from skitter.console.read import inspect

    folder, settings = _existing(arguments)
    asked = {"host": arguments.host, "urls": arguments.urls, "where": arguments.where}
    return _say(_run(inspect.refresh(folder, settings, **asked, as_json=arguments.json)))


def _traps(arguments: argparse.Namespace) -> int:
    from skitter.console.read import traps

    folder, settings = _existing(arguments)
    if arguments.undo is not None:
        return _say(_run(traps.undo(folder, settings, arguments.undo, as_json=arguments.json)))
    return _say(_run(traps.traps(folder, settings, limit=arguments.limit, as_json=arguments.json)))


def _policy(arguments: argparse.Namespace) -> int:
    from skitter.console.read import inspect

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
        max_age=arguments.max_age,
        daily_requests=arguments.daily_requests,
        daily_bytes=arguments.daily_bytes,
        quiet_hours=arguments.quiet_hours,
        time_zone=arguments.time_zone,
        ignore_walls=arguments.ignore_walls,
        render=arguments.render,
        weight=arguments.weight,
        region=arguments.region,
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
    if arguments.set:
        from skitter.console.steer import commands

        if folder is None:
            raise UsageError("--set changes the settings of a crawl: name its folder with --in DIR")
        asked = commands.change(folder, loaded.settings, arguments.set, as_json=arguments.json)
        return _say(_run(asked))
    return _say(as_json(loaded) if arguments.json else render(loaded))
