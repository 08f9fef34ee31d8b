"""Thousands of hosts, each asked once a second at most: how much of what politeness allows does a crawl get?

    python -m bench.broad --hosts 3000 --seconds 60
    python -m bench.broad --quick

The synthetic web (latencies drawn per host, a quarter of the hosts with https) is crawled by skitter and by
Scrapy in turn, each for the same time; rates and manners are by the web's own log. A table, the targets and one
JSON object as the last line; exit code 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
import trustme

from bench._crawls import Usage, run_with_usage, skitter_command
from bench._mirrors import machine_cpu
from bench._peers import SCRIPTS, peers_python
from bench._report import last_line, progress, table, ticking
from bench._steady import allowed, steady
from bench._targets import Target, judged, show_targets
from skitter.testing.audit import violations
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb

LATENCY = (0.02, 0.8)
TLS = 0.25
ASKED = 1000.0
SHARE, RSS_MB = 0.95, 700.0
# A thousand pages a second at 0.4 s each are 410 under way; the rest is for what waits in line.
CONCURRENCY = 1000
# Of 100 (the documentation's start), 1,000 and 3,000: see README.
SCRAPY_CONCURRENCY = 1000

SETTINGS = """\
[crawl]
scope = "host"

[politeness]
delay = {delay}

[fetch]
concurrency = {concurrency}
ca_file = "{ca_file}"
resolve = {resolve}
allow_private = true
"""


class Pass(msgspec.Struct, kw_only=True):
    """One crawl of the web. `elsewhere` is the CPU of everything else on the machine, the web included."""

    pages: int
    rate: float
    allowed: float
    reached: float
    violations: int
    per_connection: float
    usage: Usage
    elsewhere: float

    def figures(self) -> dict[str, float]:
        return {
            "pages": float(self.pages),
            "pages_per_second": self.rate,
            "politeness_allows": self.allowed,
            "share_of_what_is_asked": self.rate / min(self.allowed, ASKED),
            "seconds_to_steady_state": self.reached,
            "politeness_violations": float(self.violations),
            "requests_per_connection": self.per_connection,
            "cpu_us_per_page": self.usage.cpu / max(1, self.pages) * 1e6,
            "cores": self.usage.cpu / self.usage.wall,
            "rss_mb": self.usage.rss / 1e6,
            "cpu_seconds_elsewhere": self.elsewhere,
        }


class Crawler(NamedTuple):
    """How it is called, and what ends it: Scrapy would take a minute to finish what it has begun."""

    command_for: Callable[[Place], list[str]]
    stop_by: signal.Signals


class Place(msgspec.Struct, frozen=True):
    """A running web, and a folder for one crawl of it."""

    web: SyntheticWeb
    folder: Path
    ca_file: Path
    delay: float

    @property
    def seeds(self) -> Path:
        path = self.folder / "seeds.txt"
        path.write_text("".join(self.web.plan.url(host, "/") + "\n" for host in range(self.web.plan.hosts)))
        return path


def skitter(place: Place) -> list[str]:
    config = place.folder / "settings.toml"
    config.write_text(
        SETTINGS.format(
            delay=place.delay,
            concurrency=CONCURRENCY,
            ca_file=place.ca_file,
            resolve=json.dumps(place.web.resolves),
        )
    )
    where = ["--into", str(place.folder / "crawl"), "--config", str(config), "--json"]
    return skitter_command("crawl", str(place.seeds), *where)


def scrapy(python: str, concurrency: int) -> Callable[[Place], list[str]]:
    def command(place: Place) -> list[str]:
        ports = [resolve.rpartition(":")[2] for resolve in place.web.resolves]
        script = str(SCRIPTS / "scrapy_broad.py")
        return [python, script, str(place.seeds), str(place.delay), str(concurrency), *ports]

    return command


def certificate(plan: WebPlan, folder: Path) -> tuple[Path, Path]:
    """What crawlers trust, and what the web shows."""
    authority = trustme.CA()
    domains = {plan.name(host).partition(".")[2] for host in range(plan.hosts)}
    issued = authority.issue_cert(*(f"*.{domain}" for domain in sorted(domains)))
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    issued.private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    return folder / "ca.pem", folder / "server.pem"


def crawl(crawler: Crawler, options: argparse.Namespace, words: str) -> Pass:
    command_for, stop_by = crawler
    plan = msgspec.structs.replace(WebPlan.plain(options.hosts, options.seconds + 10), tls=TLS)
    with tempfile.TemporaryDirectory(prefix="skitter-broad-") as name:
        folder = Path(name)
        ca_file, pem = certificate(plan, folder)
        with SyntheticWeb(plan, latency=LATENCY, log=folder / "requests.jsonl", certificate=pem) as web:
            command = command_for(Place(web, folder, ca_file, options.delay))
            before, began = machine_cpu(), time.time()
            with ticking(words, every=10.0), (folder / "output").open("wb") as output:
                usage = run_with_usage(command, output, stop_after=options.seconds, stop_by=stop_by)
            elsewhere = machine_cpu() - before - usage.cpu
            web.stop()
            requests = web.requests()
    found = steady(requests, began, began + min(options.seconds, usage.wall))
    rude = violations(requests, lambda host: options.delay)
    for violation in rude[:3]:
        progress(f"{words}: {violation}")
    return Pass(
        pages=found.pages,
        rate=found.rate,
        allowed=allowed(requests, options.hosts, options.delay, slow_factor=1.0),
        reached=found.reached,
        violations=len(rude),
        per_connection=len(requests) / max(1, len({row.connection for row in requests})),
        usage=usage,
        elsewhere=elsewhere,
    )


def targets(ours: Sequence[dict[str, float]]) -> list[Target]:
    def middle(name: str) -> float:
        return median(found[name] for found in ours)

    share = middle("share_of_what_is_asked")
    return [
        Target(f"share of what politeness allows, up to {ASKED:,.0f} pages/s", share, least=SHARE),
        Target("politeness violations", sum(found["politeness_violations"] for found in ours), most=0),
        Target("RSS, MB", middle("rss_mb"), most=RSS_MB),
    ]


def show(measured: dict[str, list[dict[str, float]]], options: argparse.Namespace) -> int:
    rows: list[Sequence[object]] = [("", *(cell for name in measured for cell in (name, "spread")))]
    for figure in measured["skitter"][0]:
        cells: list[object] = []
        for passes in measured.values():
            values = sorted(found[figure] for found in passes)
            cells += [round(median(values), 3), f"{values[0]:,.2f} to {values[-1]:,.2f}"]
        rows.append((figure.replace("_", " "), *cells))
    verdicts = targets(measured["skitter"])
    print(table(rows))
    show_targets(verdicts)
    last_line(
        {
            "bench": "broad",
            "hosts": options.hosts,
            "delay": options.delay,
            "seconds": options.seconds,
            "crawlers": measured,
            "targets": {target.words: target.row() for target in verdicts},
        }
    )
    return 0 if judged(verdicts) else 1


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.broad", description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=3000)
    parser.add_argument("--delay", type=float, default=1.0)
    parser.add_argument("--seconds", type=int, default=60, help="of each crawl")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scrapy", type=int, default=SCRAPY_CONCURRENCY, help="its concurrent requests")
    parser.add_argument("--quick", action="store_true", help="one round of 30 s")
    options = parser.parse_args(arguments)
    if options.quick:
        options.rounds, options.seconds = 1, 30
    running = {"skitter": Crawler(skitter, signal.SIGINT)}
    if (python := peers_python()) is not None:
        running["Scrapy"] = Crawler(scrapy(python, options.scrapy), signal.SIGKILL)
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in running}
    for number in range(1, options.rounds + 1):
        for name, crawler in running.items():
            words = f"round {number} of {options.rounds}, {name}"
            measured[name].append(crawl(crawler, options, words).figures())
            progress(f"{words}: {measured[name][-1]['pages_per_second']:,.0f} pages/s")
    return show(measured, options)


if __name__ == "__main__":
    sys.exit(main())
