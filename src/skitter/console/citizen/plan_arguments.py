"""The command line of `skitter plan`. Arguments only; the work is imported late."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skitter.console.display.output import write
from skitter.console.run.crawl_flags import duration

Command = Callable[..., argparse.ArgumentParser]


def add_plan(commands: Any, command: Command) -> None:
    plan = command(commands, "plan", "say how long, how large and how dear a crawl will be", _plan)
    plan.add_argument(
        "seeds",
        nargs="*",
        default=[],
        metavar="DIR|SEED",
        help="the folder of a crawl so far, or seeds of one to come; neither for the sums of a target",
    )
    plan.add_argument("--pages", type=_amount, metavar="N", help="pages in all, such as 5000 or 1e9")
    plan.add_argument(
        "--in", dest="within", type=duration, metavar="DURATION", help="how long it may take, such as 7d"
    )
    plan.add_argument(
        "--pages-per-host",
        type=_amount,
        default=1_000.0,
        metavar="N",
        help="assumed of hosts that nothing is known of (default 1000)",
    )
    plan.add_argument(
        "--page-size", type=_amount, metavar="BYTES", help="assumed of pages (default 100e3, or as crawled)"
    )
    plan.add_argument(
        "--machine-cores", type=_amount, default=8.0, metavar="N", help="of a machine (default 8)"
    )
    plan.add_argument("--config", type=Path, metavar="FILE", help="with these settings")
    plan.add_argument("--prices", type=Path, metavar="FILE", help="a table of prices of your own (TOML)")
    plan.add_argument("--example-prices", action="store_true", help="print the table of prices to begin with")


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 <= value <= 1e15:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, 1 or more")
    return value


def _plan(arguments: argparse.Namespace) -> int:
    import asyncio  # here: half of the time that --help takes

    from skitter.console.citizen.plan import Asked, example_prices, plan, read_prices

    if arguments.example_prices:
        write(example_prices())
        return 0
    asked = Asked(
        words=tuple(arguments.seeds),
        pages=arguments.pages,
        seconds=arguments.within,
        pages_per_host=arguments.pages_per_host,
        page_bytes=arguments.page_size,
        machine_cores=int(arguments.machine_cores),
        prices=read_prices(arguments.prices),
        config=arguments.config,
    )
    write(asyncio.run(plan(asked, os.environ, as_json=arguments.json)) + "\n")
    return 0
