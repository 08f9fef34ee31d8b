"""Serve the hostile web: `python -m skitter.testing.hostile`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import resource
import signal
import sys
from pathlib import Path

import msgspec

from skitter.testing.hostile.catalogue import CATALOGUE, reference_page
from skitter.testing.hostile.server import HostileServer
from skitter.testing.hostile.web import Ready


async def serve(options: argparse.Namespace) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    if options.with_parent:
        loop.add_reader(sys.stdin.fileno(), stopping.set)
    with contextlib.ExitStack() as closing:
        log = closing.enter_context(options.log.open("a")) if options.log else None
        server = HostileServer(log)
        await server.start()
        closing.callback(server.close)
        announce(server, as_json=options.json)
        await stopping.wait()


def announce(server: HostileServer, *, as_json: bool) -> None:
    if as_json:
        print(msgspec.json.encode(Ready(server.resolve, server.nameserver)).decode(), flush=True)
        return
    places = " ".join(f"--resolve '{entry}'" for entry in server.resolve)
    print(f"{len(CATALOGUE)} hostile hosts, for example http://{next(iter(CATALOGUE.values())).host()}/")
    print(f"crawl them: SKITTER_FETCH_NAMESERVERS={server.nameserver} skitter crawl URL {places}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        allow_abbrev=False, prog="python -m skitter.testing.hostile", description=__doc__
    )
    parser.add_argument("--log", type=Path, metavar="FILE", help="write a row for every request")
    parser.add_argument("--json", action="store_true", help="announce as JSON")
    parser.add_argument("--with-parent", action="store_true", help="stop when standard input is closed")
    parser.add_argument("--page", action="store_true", help="print the catalogue as Markdown, and exit")
    options = parser.parse_args()
    if options.page:
        print(reference_page(), end="")
        return 0
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(serve(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
