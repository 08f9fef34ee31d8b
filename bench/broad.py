"""Thousands of hosts, each asked once a second at most: how much of what politeness allows does a crawl get?

    python -m bench.broad --hosts 3000 --seconds 60
    python -m bench.broad --quick

The synthetic web (latencies drawn per host, a quarter of the hosts with https) is crawled by skitter and its
peers in turn, each for the same time; rates and manners are by the web's own log. As root all run in a network of
their own, with DNS. A table, the targets and one JSON object as the last line; exit code 1 when a target is
missed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
import trustme

from bench import _installed as installed
from bench._apart import leave_the_network
from bench._broads import Crawler, Place, by_bubing, by_heritrix, by_program, by_scrapy, by_skitter
from bench._crawls import Usage, run_with_usage, start
from bench._mirrors import machine_cpu
from bench._peers import peers_python
from bench._report import last_line, progress, table, ticking
from bench._roster import ALL, COMPILED, chosen, interpreter
from bench._steady import allowed, steady
from bench._targets import Target, judged, show_targets
from bench.mirror import show_duties
from skitter.testing.audit import violations
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb

COMMANDS: dict[str, Callable[[Path], Crawler]] = {
    "colly": by_program,
    "spider": by_program,
    "heritrix": by_heritrix,
    "bubing": by_bubing,
}
LATENCY = (0.02, 0.8)
TLS = 0.25
ASKED = 1000.0
SHARE, RSS_MB = 0.95, 700.0
# Of 100 (the documentation's start), 1,000 and 3,000: see README.
SCRAPY_CONCURRENCY = 1000


class Where(NamedTuple):
    """Where the web listens. On all addresses only in a network that has nothing but loopback."""

    address: str = "127.0.0.1"
    port: int = 0
    secure_port: int = 0


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
            "share_of_what_is_asked": self.rate / max(1.0, min(self.allowed, ASKED)),
            "seconds_to_steady_state": self.reached,
            "politeness_violations": float(self.violations),
            "requests_per_connection": self.per_connection,
            "cpu_us_per_page": self.usage.cpu / max(1, self.pages) * 1e6,
            "cores": self.usage.cpu / self.usage.wall,
            "rss_mb": self.usage.rss / 1e6,
            "cpu_seconds_elsewhere": self.elsewhere,
        }


def certificate(plan: WebPlan, folder: Path) -> tuple[Path, Path]:
    """What crawlers trust, and what the web shows."""
    authority = trustme.CA()
    domains = {plan.name(host).partition(".")[2] for host in range(plan.hosts)}
    issued = authority.issue_cert(*(f"*.{domain}" for domain in sorted(domains)))
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    issued.private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    return folder / "ca.pem", folder / "server.pem"


def crawl(crawler: Crawler, options: argparse.Namespace, words: str) -> Pass:
    plan = msgspec.structs.replace(WebPlan.plain(options.hosts, options.seconds + 10), tls=TLS)
    with tempfile.TemporaryDirectory(prefix="skitter-broad-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        ca_file, pem = certificate(plan, folder)
        where = Where("0.0.0.0", 80, 443) if options.by_names else Where()
        with SyntheticWeb(
            plan,
            latency=LATENCY,
            log=folder / "requests.jsonl",
            certificate=pem,
            address=where.address,
            port=where.port,
            secure_port=where.secure_port,
        ) as web:
            command = crawler.command_for(Place(web, folder, ca_file, options.delay, options.by_names))
            before, began = machine_cpu(), time.time()
            with ticking(words, every=10.0), (folder / "output").open("wb") as output:
                usage = run_with_usage(command, output, stop_after=options.seconds, stop_by=crawler.stop_by)
            elsewhere = machine_cpu() - before - usage.cpu
            web.stop()
            requests = web.requests()
        said = (folder / "output").read_bytes()[-2000:].decode("utf-8", "replace")
    if not requests:
        progress(f"{words}: not one request; it said: {said}")
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
    names = [*measured["skitter"][0]]
    heading = [cell for name in names for cell in (name.replace("_", " "), "spread")]
    rows: list[Sequence[object]] = [("", *heading)]
    for crawler, passes in measured.items():
        cells: list[object] = []
        for name in names:
            values = sorted(found[name] for found in passes)
            cells += [round(median(values), 3), f"{values[0]:,.2f} to {values[-1]:,.2f}"]
        rows.append((crawler, *cells))
    verdicts = targets(measured["skitter"])
    print(table(rows))
    print(f"skitter on Python {interpreter()}; by DNS: {'yes' if options.by_names else 'no'}")
    show_duties([*measured], options.absent)
    show_targets(verdicts)
    last_line(
        {
            "bench": "broad",
            "hosts": options.hosts,
            "delay": options.delay,
            "seconds": options.seconds,
            "crawlers": measured,
            "absent": options.absent,
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
    parser.add_argument("--peers", help=f"all, none, or some of {','.join(ALL)}; with --quick scrapy")
    parser.add_argument("--python", action="append", default=[], help="skitter on this interpreter as well")
    options = parser.parse_args(arguments)
    if options.quick:
        options.rounds, options.seconds = 1, 30
    names = chosen(options.peers or ("scrapy" if options.quick else "all"))
    running, options.absent = crawlers(names, options)
    with (
        tempfile.TemporaryDirectory(prefix="skitter-names-") as folder,
        names_served(Path(folder)) as by_names,
    ):
        options.by_names = by_names
        return show(in_turns(running, options), options)


def in_turns(running: dict[str, Crawler], options: argparse.Namespace) -> dict[str, list[dict[str, float]]]:
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in running}
    for number in range(1, options.rounds + 1):
        for name, crawler in running.items():
            words = f"round {number} of {options.rounds}, {name}"
            measured[name].append(crawl(crawler, options, words).figures())
            progress(f"{words}: {measured[name][-1]['pages_per_second']:,.0f} pages/s")
    return measured


def crawlers(names: Sequence[str], options: argparse.Namespace) -> tuple[dict[str, Crawler], dict[str, str]]:
    """Those that could be had, and why others could not."""
    running, absent = {"skitter": by_skitter()}, {"wget2": "it has no delay by host"}
    if "crawlee" in names:
        absent["Crawlee"] = "it has no delay by host"
    if "katana" in names:
        absent["Katana"] = "it has no delay by host"
    for python in options.python:
        _add(running, absent, f"skitter ({python})", installed.skitter_on(python), by_skitter)
    if "scrapy" in names and (python := peers_python()) is not None:
        running["Scrapy"] = by_scrapy(python, options.scrapy)
    for name, (title, had, _) in COMPILED.items():
        if name in names and title not in absent:
            _add(running, absent, title, had(), COMMANDS.get(name))
    return running, absent


def _add(
    running: dict[str, Crawler],
    absent: dict[str, str],
    title: str,
    had: installed.Had,
    crawler: Callable[[Path], Crawler] | None,
) -> None:
    if isinstance(had, installed.Absent):
        absent[title] = had.why
    elif crawler is not None:
        running[title] = crawler(had.path)


@contextmanager
def names_served(folder: Path) -> Iterator[bool]:
    """A network of our own in which every name is on loopback, for as long as the context lasts. False without
    root: then only those take part rightly that can be told where a name is."""
    resolver = folder / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.1\noptions timeout:2 attempts:3\n")
    if not leave_the_network(resolver):
        progress("without root there is no network of its own: only skitter and Scrapy find the web")
        yield False
        return
    server = start([sys.executable, "-m", "bench._names"], output=subprocess.PIPE)
    assert server.stdout is not None
    server.stdout.readline()
    try:
        yield True
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
