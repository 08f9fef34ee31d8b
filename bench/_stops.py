"""What a crawl says it stopped, and with which figures; the web's log says whether that was right."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from bench._crawls import child_environment, skitter_command
from skitter.testing.traps.plan import TrapPlan

MOST = 100_000
EXAMPLE = 48


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict, as `skitter traps --json` gives it; `ended` says that it did not last."""

    kind: str
    host: str
    skeleton: str
    fetched: int
    novel: int
    refused: int
    ended: str = ""


def stops(folder: Path) -> list[Stop]:
    command = skitter_command("traps", str(folder), "--json", "--limit", str(MOST))
    done = subprocess.run(command, env=child_environment(), capture_output=True, check=True)
    return msgspec.json.decode(done.stdout, type=list[Stop])


def site_of(plan: TrapPlan, stop: Stop) -> tuple[bool, str]:
    """Whether the host is a trap, and its site's name; what nobody has is no trap."""
    site = plan.site(stop.host.partition("//")[2] or stop.host)
    return (site.trap, site.name) if site else (False, stop.host)


def stop_rows(plan: TrapPlan, found: Iterable[Stop]) -> list[Sequence[object]]:
    """Those on honest hosts first: each of them may have cost content."""
    rows: list[Sequence[object]] = [("stopped", "", "kind", "what", "fetched", "novel", "refused", "ended")]
    for stop in sorted(found, key=lambda stop: (site_of(plan, stop), -stop.refused)):
        trap, name = site_of(plan, stop)
        figures = (stop.fetched, stop.novel, stop.refused, stop.ended)
        rows.append((name, "" if trap else "honest", stop.kind, stop.skeleton[:EXAMPLE], *figures))
    return rows
