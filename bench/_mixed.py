"""A crawl of good hosts with bad ones among them: two webs on loopback, one `skitter crawl`, and the good web's
own log as the measure of what the good hosts got.

Used by the trials that ask what bad hosts cost the others. Never reads the crawl's own figures for a rate.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench._crawls import run_with_usage, skitter_command
from bench._mirrors import machine_cpu
from bench._report import progress
from skitter.testing.audit import is_robots
from skitter.testing.hostile.case import Case
from skitter.testing.hostile.web import HostileWeb
from skitter.testing.plan import WebPlan
from skitter.testing.request_log import Request
from skitter.testing.web import SyntheticWeb

# The good web has port 80 of every name; the bad hosts that would have it too move here.
BAD_PORT = 8081
_EVERY = 2.0

_SETTINGS = """\
[crawl]
scope = "host"
linger = {linger}

[identity]
contact = "bench@example.org"

[politeness]
delay = {delay}
slow_factor = 0.0

[retry]
attempts = {attempts}
backoff = [600.0]

[fetch]
resolve = {resolve}
nameservers = {nameservers}
allow_private = false
"""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """`hosts` good hosts of `pages` pages each, asked every `delay` seconds."""

    hosts: int
    pages: int
    delay: float
    attempts: int


class Pass(msgspec.Struct, kw_only=True):
    """One crawl. `rate` is of good pages, from the first request for one to the last."""

    rate: float
    seconds: float
    pages: set[str]
    archived: set[str]
    cpu: float
    elsewhere: float
    """CPU seconds that the machine spent meanwhile on all but the crawl: on both webs and whatever else ran."""
    rss: int
    code: int
    in_flight: int
    pulse_ms: int
    """The longest time that the crawl's event loop was held up."""
    stats: dict[str, Any]

    def figures(self) -> dict[str, float]:
        """What both benches show of a pass."""
        return {
            "good_pages": len(self.archived),
            "good_pages_per_second": round(self.rate, 1),
            "seconds": round(self.seconds, 1),
            "cpu_seconds": round(self.cpu, 1),
            "cpu_seconds_elsewhere": round(self.elsewhere, 1),
            "rss_mb": round(self.rss / 1e6, 1),
            "most_in_flight": self.in_flight,
            "longest_pulse_ms": self.pulse_ms,
        }


def bad_seed(case: Case, number: int) -> str:
    port = case.port or (443 if case.scheme == "https" else BAD_PORT)
    return f"{case.scheme}://{case.host(number)}:{port}/"


def crawl(plan: Plan, bad: Sequence[str], words: str) -> Pass:
    web_plan = WebPlan.plain(hosts=plan.hosts, pages=plan.pages)
    with tempfile.TemporaryDirectory(prefix="skitter-mixed-") as name, HostileWeb() as hostile:
        folder = Path(name)
        with SyntheticWeb(web_plan, log=folder / "requests.jsonl") as web:
            command = _command(plan, web, hostile, bad, folder)
            with (folder / "output").open("wb") as output, _watching(web, words):
                before = machine_cpu()
                usage = run_with_usage(command, output)
                elsewhere = machine_cpu() - before - usage.cpu
            web.stop()
            good = [row for row in web.requests() if row.status == 200 and not row.aborted]
        archived = _good_pages(folder / "crawl" / "archive" / "index.cdxj")
        pages = [row for row in good if not is_robots(row.path)]
        return Pass(
            rate=_rate(pages),
            seconds=usage.wall,
            pages={f"http://{row.host}{row.path}" for row in pages},
            archived=archived,
            cpu=usage.cpu,
            elsewhere=elsewhere,
            rss=usage.rss,
            code=usage.code,
            in_flight=_most(folder / "output", "in_flight"),
            pulse_ms=_most(folder / "output", "longest_pulse_ms"),
            stats=_stats(folder),
        )


def _command(
    plan: Plan, web: SyntheticWeb, hostile: HostileWeb, bad: Sequence[str], folder: Path
) -> list[str]:
    moved = [entry.replace("*:80:", f"*:{BAD_PORT}:") for entry in hostile.resolve]
    config, seeds = folder / "settings.toml", folder / "seeds.txt"
    config.write_text(
        _SETTINGS.format(
            linger=plan.delay + 3,  # longer than a host rests; no retry is waited for
            delay=plan.delay,
            attempts=plan.attempts,
            resolve=json.dumps([web.resolve, *moved]),
            nameservers=json.dumps([hostile.nameserver]),
        )
    )
    good = [web.plan.url(host, "/") for host in range(web.plan.hosts)]
    seeds.write_text("\n".join(_shuffled(good, bad)) + "\n")
    places = ["--into", str(folder / "crawl"), "--config", str(config), "--json"]
    return skitter_command("crawl", str(seeds), *places)


def _shuffled(good: Sequence[str], bad: Sequence[str]) -> list[str]:
    """The bad ones spread evenly among the good ones."""
    every = max(1, len(good) // len(bad)) if bad else len(good) + 1
    mixed: list[str] = []
    left = list(bad)
    for number, url in enumerate(good, start=1):
        mixed.append(url)
        if number % every == 0 and left:
            mixed.append(left.pop())
    return mixed + left


def _rate(rows: Sequence[Request]) -> float:
    starts = sorted(row.start for row in rows)
    return (len(starts) - 1) / (starts[-1] - starts[0]) if len(starts) > 1 else 0.0


def _good_pages(index: Path) -> set[str]:
    """By the index: fastwarc gives up on records with the long headers that some hostile hosts send."""
    rows = [json.loads(line.split(" ", 2)[2]) for line in index.read_text().splitlines()]
    urls = (row["url"] for row in rows if str(row["status"]) == "200")
    return {url for url in urls if "hostile.test" not in url and not is_robots(url)}


def _most(output: Path, figure: str) -> int:
    found = (json.loads(line) for line in output.read_text().splitlines() if line.startswith("{"))
    return max((row[figure] for row in found if row.get("event") == "progress"), default=0)


def _stats(folder: Path) -> dict[str, Any]:
    output = folder / "stats.json"
    with output.open("wb") as stream:
        run_with_usage(skitter_command("stats", str(folder / "crawl"), "--json"), stream)
    found: dict[str, Any] = json.loads(output.read_text())
    return found


class _watching:
    """Says every now and then how many requests the good web has seen."""

    def __init__(self, web: SyntheticWeb, words: str) -> None:
        self._web = web
        self._words = words
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._began = time.monotonic()
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_EVERY):
            seen = self._web.log_path.read_bytes().count(b"\n")
            progress(f"{self._words}: {seen:,} good requests, {time.monotonic() - self._began:.0f} s")
