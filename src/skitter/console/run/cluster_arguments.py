"""`skitter cluster`: make a cluster in a database, look at it, drain a node. Asks the database; needs no node."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from skitter.console.display.output import write
from skitter.console.run.crawl_flags import add_crawl_flags, given_flags
from skitter.console.run.serve_arguments import PARTS
from skitter.errors import UsageError

if TYPE_CHECKING:
    from skitter.frontier.log.members import Members

Command = Callable[..., argparse.ArgumentParser]


def add_cluster(commands: Any, command: Command) -> None:
    cluster = command(commands, "cluster", "make a cluster in a database, or look after one", _cluster)
    cluster.add_argument(
        "act",
        choices=("init", "status", "drain"),
        help="make one with these settings; who has which partition; have a node hand over and end",
    )
    cluster.add_argument("--node", default="", metavar="URL", help="drain: which, by its URL, name or place")
    cluster.add_argument(
        "--database", required=True, metavar="URL", help="postgresql://..., as of skitter serve --cluster"
    )
    cluster.add_argument(
        "--parts", type=int, default=PARTS, metavar="N", help=f"init: partitions, for good (default {PARTS})"
    )
    add_crawl_flags(cluster, served=True)


def _cluster(arguments: argparse.Namespace) -> int:
    from skitter.extras import need

    need("psycopg")
    from skitter.frontier.log.members import Members
    from skitter.frontier.log.postgres import Link

    link = Link(arguments.database, None)
    try:
        members = Members(link)
        acts = {"init": _init, "status": _status, "drain": _drain}
        return acts[arguments.act](members, arguments)
    finally:
        link.close()


def _init(members: Members, arguments: argparse.Namespace) -> int:
    from skitter.frontier_log import checkpoints_url
    from skitter.settings.load import dump_toml, load

    settings = load(config_file=arguments.config, environ=os.environ, flags=given_flags(arguments)).settings
    checkpoints_url(settings)
    told = settings.frontier.log_unreplicated
    crawl = members.begin(arguments.parts, dump_toml(settings), is_unreplicated=told)
    write(f"a cluster of {crawl.parts} partitions: start nodes with skitter serve DIR --cluster URL\n")
    return 0


def _status(members: Members, arguments: argparse.Namespace) -> int:
    from skitter.console.display.table import table  # 30 ms that `--help` need not pay

    crawl = members.crawl()
    if crawl is None:
        raise UsageError("there is no cluster in this database: make one with skitter cluster init")
    nodes, parts = members.nodes(), members.parts()
    if arguments.json:
        import msgspec

        told = {"crawl": crawl.crawl, "nodes": nodes, "partitions": parts}
        write(json.dumps(msgspec.to_builtins(told)) + "\n")
        return 0
    rows = [("node", "place", "heard", "partitions", "")]
    for node in nodes:
        own = [row.part for row in parts if row.owner == node.ident and not row.is_free]
        word = "draining" if node.is_draining else "" if node.is_live else "silent"
        rows.append((node.url, node.place, f"{node.silent:.0f} s ago", str(len(own)), word))
    free = [row.part for row in parts if row.is_free]
    write("".join(f"{line}\n" for line in table(rows)))
    write(f"{crawl.parts} partitions, {len(free)} without an owner{_named(free)}; ")
    write(f"{sum(row.sequence for row in parts):,} commits, settings version {crawl.settings_version}\n")
    return 0


def _named(parts: list[int]) -> str:
    return f" ({', '.join(map(str, parts))})" if parts else ""


def _drain(members: Members, arguments: argparse.Namespace) -> int:
    if not arguments.node:
        raise UsageError("name the node to drain (--node URL), as skitter cluster status shows it")
    if not members.drain(arguments.node):
        raise UsageError(f"there is no node {arguments.node}: skitter cluster status shows them")
    write(f"{arguments.node} hands its partitions over and ends\n")
    return 0
