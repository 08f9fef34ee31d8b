"""Serve the trap web: `python -m skitter.testing.traps --log requests.jsonl`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from skitter.errors import SkitterError, UsageError
from skitter.testing.traps.plan import TrapPlan
from skitter.testing.traps.server import LOOPBACK, TrapServer


async def serve(plan: TrapPlan, log: BinaryIO | None, *, port: int, with_parent: bool) -> None:
    listening = await TrapServer(plan, log).start(port)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if with_parent:
        # The end of standard input is the end of whoever started it: no server outlives its test.
        loop.add_reader(sys.stdin.fileno(), stop.set)
    print(f"*:80:{LOOPBACK}:{listening.sockets[0].getsockname()[1]}", flush=True)
    await stop.wait()
    listening.close()


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        plan = _plan(options)
        plan.sites  # noqa: B018  made before it listens: the first request does not wait for it
        with _log(options.log) as log:
            asyncio.run(serve(plan, log, port=options.port, with_parent=options.with_parent))
    except SkitterError as fault:
        print(f"skitter.testing.traps: {fault}", file=sys.stderr)
        return fault.exit_code
    except OSError as fault:
        print(f"skitter.testing.traps: {fault}", file=sys.stderr)
        return 1
    return 0


def _plan(options: argparse.Namespace) -> TrapPlan:
    fields = {name: getattr(options, name) for name in TrapPlan.__struct_fields__}
    try:
        return msgspec.convert(fields, TrapPlan)
    except msgspec.ValidationError as fault:
        raise UsageError(f"that is no plan of a trap web: {fault}") from fault


@contextlib.contextmanager
def _log(path: Path | None) -> Iterator[BinaryIO | None]:
    if path is None:
        yield None
        return
    with path.open("wb") as log:
        yield log


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        allow_abbrev=False,
        prog="python -m skitter.testing.traps",
        description="Serve a web of traps and of hosts that look like them.",
    )
    parser.add_argument("--seed", type=int, default=1, help="another seed is another web")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="size of the honest hosts (1: 120,000 pages)"
    )
    parser.add_argument("--cut", type=int, default=0, help="hosts of an endless domain, 0 for no end")
    parser.add_argument("--only", dest="kinds", action="append", default=[], metavar="KIND", help="no others")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--log", type=Path, metavar="FILE", help="write a row for every request")
    parser.add_argument("--with-parent", action="store_true", help="stop when standard input is closed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
