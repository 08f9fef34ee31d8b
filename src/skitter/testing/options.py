"""The command-line options that describe a synthetic web."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from skitter.errors import UsageError
from skitter.testing.features import Feature, RobotsKind
from skitter.testing.plan import WebPlan


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the web")
    group.add_argument("--preset", choices=("demo", "plain", "full"), default="full")
    group.add_argument("--hosts", type=int, help="virtual hosts")
    group.add_argument("--pages", type=int, help="pages of a host, in the mean")
    group.add_argument("--seed", type=int, help="another seed is another web (default 1)")
    group.add_argument("--crawl-delay", type=float, help="seconds, on hosts whose robots.txt asks for one")
    group.add_argument("--flaky-failures", type=int, help="500s at most before a flaky page answers")
    group.add_argument("--listed", type=float, help="share of pages that only sitemaps name (default 0)")
    group.add_argument("--lies", type=float, help="share of dates in sitemaps that are wrong (default 0)")
    group.add_argument(
        "--share",
        action="append",
        default=[],
        metavar="NAME=SHARE",
        help=f"share of hosts with a feature ({', '.join(Feature)}) or, as robots.NAME, with a kind of"
        f" robots.txt ({', '.join(RobotsKind)})",
    )
    group.add_argument("--plan", metavar="JSON", help="a whole plan as JSON, instead of all of the above")


def plan_of(options: argparse.Namespace) -> WebPlan:
    """Raises `UsageError` for what cannot be a web."""
    if options.plan:
        return read_plan_text(options.plan)
    try:
        return msgspec.convert(_fields(options), WebPlan, strict=False)
    except msgspec.ValidationError as fault:
        raise UsageError(f"that is no plan of a web: {fault}") from fault


def read_plan_text(text: str) -> WebPlan:
    try:
        return msgspec.json.decode(text, type=WebPlan)
    except msgspec.DecodeError as fault:
        raise UsageError(f"that is no plan of a web: {fault}") from fault


def _fields(options: argparse.Namespace) -> dict[str, Any]:
    presets = {"demo": WebPlan.demo(), "plain": WebPlan.plain(), "full": WebPlan()}
    fields: dict[str, Any] = msgspec.to_builtins(presets[options.preset])
    for name in ("hosts", "pages", "seed", "crawl_delay", "flaky_failures", "listed", "lies"):
        if getattr(options, name) is not None:
            fields[name] = getattr(options, name)
    for share in options.share:
        name, equals, value = share.partition("=")
        if not equals:
            raise UsageError(f"--share {share}: write NAME=SHARE, as in flaky=0.1 or robots.delay=0.5")
        section = "robots" if name.startswith("robots.") else "features"
        fields[section][name.removeprefix("robots.")] = value
    return fields
