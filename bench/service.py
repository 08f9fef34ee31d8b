"""How much does a server take that keeps a crawl for others, and how much faster are two workers than one?

    python -m bench.service

A real `skitter serve`, and simulated workers in this process: they lease, invent pages of 30 links of which 27
are known, and deliver them with parcels of a real page, once without the links that a worker leaves out and once
with all of them. Pages a second are per second of the server's own CPU, so that what else runs here matters less;
lease latency is as the workers see it. Then `skitter crawl` of sixteen hosts on nginx (openjdk-17-doc, in other
words on each of them, all of it in memory), in its own process and with two workers, by turns of a second; the
second worker is judged by pages a second of the wall. Tables, one JSON object as the last line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import uvloop
from msgspec.structs import replace

from bench._by_turns import Spent, by_turns
from bench._crawls import skitter_command, start
from bench._keys import KEYS
from bench._nginx import serving
from bench._peers import CACHE
from bench._report import last_line, progress, table, ticking
from bench._sites import SERVER, in_memory, names, sites
from bench._targets import Target, judged, show_targets
from bench.archive import DOCUMENTS, exchanges, read
from skitter.archive.digests import digests_of
from skitter.archive.packing import Packer, Parcel
from skitter.clock import SystemClock
from skitter.committer.work_source import Delivery
from skitter.frontier.link_batches import pack
from skitter.model import Discovered, Fetched, Host, HostLease, Outcome, Result, RobotsRead, Task, TaskKind
from skitter.settings import ArchiveSettings
from skitter.urls.links import LinkReader
from skitter.worker.remote.http_link import HttpLink
from skitter.worker.remote.remote_work_source import RemoteWorkSource
from skitter.worker.remote.sent_links import SentLinks

HOSTS = 64
# Those of the crawls.
SITES = 16
# Hosts that a worker asks for: some 160 pages. With more there would be too few leases to tell a p99.
AT_ONCE = 4
# What a server is to take on one core, and how soon it is to answer who asks for hosts (ms).
PAGES_PER_SECOND, LEASE_P99 = 4_000, 50
# Of fewer leases the last percentile is the longest of them.
ENOUGH_LEASES = 100
# What a second core is to bring: it has the committer and nginx to run as well.
SECOND_WORKER = 1.5
ONE, TWO = "one process", "two workers"
LINKS, NEW = 30, 3
SETTINGS = """\
[crawl]
scope = "any"
[politeness]
delay = 0
slow_factor = 0
# Every page says the same.
[traps]
mode = "off"
"""


class All(SentLinks):
    """Leaves nothing out."""

    def accepted(self, outcomes: Iterable[Outcome]) -> None:
        pass


class Simulated:
    """A worker without a web. Each page links three new ones of its host and 27 of those told before; `told` says
    how many these are, by host, and is common to all workers."""

    def __init__(
        self, where: str, parcels: list[Parcel], name: str, sifting: bool, told: dict[Host, int]
    ) -> None:
        self._clock = SystemClock()
        self.source = RemoteWorkSource(HttpLink(where), self._clock, name)
        if not sifting:
            self.source.sent_links = All()
        self._parcels = parcels
        self._told = told
        self._random = random.Random(name)
        self.lease_seconds: list[float] = []
        self.pages = 0

    async def run(self, pages: int) -> None:
        await self.source.join()
        while self.pages < pages:
            if self.source.undelivered:  # it would answer by itself that there is enough to do
                await self.source.settle([])
                continue
            leases = await self._leased()
            deliveries = []
            for lease, task in [(given, task) for given in leases for task in given.tasks]:
                deliveries.append(self._delivery(lease, task))
                await asyncio.sleep(0)  # inventing pages must not hold up the other workers' clocks
            await self.source.settle(deliveries)
            self.pages += len(deliveries)

    async def _leased(self) -> list[HostLease]:
        began = time.perf_counter()
        leases = await self.source.lease("", AT_ONCE, 60.0)
        self.lease_seconds.append(time.perf_counter() - began)
        # Who asks and then beats is not given hosts with the answer to its pages: asking for them is measured.
        await self.source.beat()
        return leases

    def _delivery(self, lease: HostLease, task: Task) -> Delivery:
        now = self._clock.now()
        digest = self._random.randbytes(32)
        parcel = replace(self._random.choice(self._parcels), url=task.url, digest=digest, sent_at=now)
        outcome = Outcome(
            host=lease.host,
            token=lease.token,
            kind=task.kind,
            key=task.key,
            sent_at=now,
            ended_at=now + 0.001,
            result=self._result(lease.host, task, digest),
        )
        return Delivery(outcome, parcel)

    def _result(self, host: Host, task: Task, digest: bytes) -> Result:
        if task.kind is TaskKind.ROBOTS:
            return RobotsRead(status=404, digest=digest)
        told = self._told.get(host, 1)
        self._told[host] = told + NEW
        known = self._random.sample(range(told), min(told, LINKS - NEW))
        paths = [*known, *range(told, told + NEW)]
        links = pack([_link(host, path, task) for path in paths])
        return Fetched(
            status=200, digest=digest, size=29_000, link_batches=links, simhash=self._random.getrandbits(64)
        )


def _link(host: Host, path: int, task: Task) -> Discovered:
    url = f"{host}/{path}"
    return Discovered(url=url, key=KEYS.key_of(url), host=host, depth=min(task.depth + 1, 9), parent=task.key)


def parcels() -> list[Parcel]:
    packer = Packer(ArchiveSettings())
    given = read(exchanges(DOCUMENTS, 100), LinkReader(KEYS))
    return [packer.pack(e, digests_of(e), media_type="text/html", facts=facts) for e, facts in given]


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    config, seeds, output = folder / "settings.toml", folder / "seeds", folder / "output"
    config.write_text(SETTINGS)
    seeds.write_text("".join(f"http://h{number}.test/0\n" for number in range(HOSTS)))
    command = skitter_command("serve", str(folder / "crawl"), str(seeds), "--listen", "127.0.0.1:0", "--json")
    environ = {"SKITTER_IDENTITY_CONTACT": "bench@example.org"}
    with output.open("wb") as stream, start([*command, "--config", str(config)], stream, environ) as child:
        try:
            while not (found := re.search(r'"serving": "([^"]+)"', output.read_text())):
                if child.poll() is not None:
                    raise SystemExit(output.read_text())
                time.sleep(0.05)
            yield found[1], child
        finally:
            child.terminate()
            child.wait()


def cpu_of(child: subprocess.Popen[bytes]) -> float:
    fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(pages: int, made: list[Parcel], sifting: bool) -> dict[str, float]:
    """The second half of the pages counts: by then most links are known, and the store has settled down."""

    async def main(where: str, child: subprocess.Popen[bytes]) -> dict[str, float]:
        told: dict[Host, int] = {}
        workers = [Simulated(where, made, f"w{number}", sifting, told) for number in range(4)]
        await asyncio.gather(*(worker.run(pages // 8) for worker in workers))
        for worker in workers:
            worker.lease_seconds.clear()
        before, cpu, began = sum(worker.pages for worker in workers), cpu_of(child), time.monotonic()
        await asyncio.gather(*(worker.run(pages // 4) for worker in workers))
        done = sum(worker.pages for worker in workers) - before
        spent, wall = cpu_of(child) - cpu, time.monotonic() - began
        waits = [wait * 1000 for worker in workers for wait in worker.lease_seconds]
        return {
            "pages": done,
            "pages_per_server_cpu_second": round(done / spent),
            "pages_per_second": round(done / wall),
            "leases": len(waits),
            "lease_p50_ms": round(quantiles(waits, n=100)[49], 1),
            "lease_p99_ms": round(quantiles(waits, n=100)[98], 1),
            "links_saved": round(
                sum(worker.source.sent_links.saved for worker in workers) / (done + before), 1
            ),
        }

    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder)) as (where, child),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        return runner.run(main(where, child))


def server_loads(pages: int) -> dict[str, dict[str, float]]:
    made, loads = parcels(), {}
    for name, sifting in (("links left out", True), ("all links", False)):
        loads[name] = load(pages, made, sifting)
        progress(f"{name}: {loads[name]}")
    return loads


def load_rows(loads: dict[str, dict[str, float]]) -> Iterator[tuple[object, ...]]:
    yield ("server", *next(iter(loads.values())))
    for name, found in loads.items():
        yield (name, *found.values())


def crawled(nginx: str, web: Path, pages: int) -> dict[str, dict[str, float]]:
    """One process and two workers, a second each in turn, through the same nginx. Whoever ends first leaves the
    other alone."""
    with tempfile.TemporaryDirectory() as place, serving(nginx, web, Path(place), SERVER) as port:
        commands = {
            ONE: crawl_command(Path(place) / "crawl-1", port, pages, 1),
            TWO: crawl_command(Path(place) / "crawl-2", port, pages, 2),
        }
        spent = by_turns(commands, Path(place))
        said = {name: (Path(place) / name).read_text().splitlines()[-1] for name in commands}
    return {name: figures(json.loads(said[name]), spent[name]) for name in commands}


def crawl_command(folder: Path, port: int, pages: int, workers: int) -> list[str]:
    config = folder.with_suffix(".toml")
    config.write_text("[politeness]\ndelay = 0\nslow_factor = 0\n")
    seeds = [f"http://{name}/index.html" for name in names(SITES)]
    command = skitter_command("crawl", *seeds, "--into", str(folder), "--config", str(config))
    command += ["--resolve", f"*:80:127.0.0.1:{port}", "--allow-private", "--json"]
    return [*command, "--max-pages", str(pages), "--workers", str(workers)]


def figures(last: dict[str, Any], spent: Spent) -> dict[str, float]:
    if spent.code:
        raise SystemExit(f"a crawl ended with {spent.code}: {last}")
    found = last.get("last", last)["pages"]
    if not found:
        raise SystemExit(f"a crawl found no page: can nginx read {CACHE}? {last}")
    return {
        "pages": found,
        "wall": spent.wall,
        "pages_per_second": found / spent.wall,
        "cpu_us_a_page": spent.cpu / found * 1e6,
        "machine_us_a_page": spent.busy / found * 1e6,
        "cores_of_the_machine": spent.busy / spent.wall,
        "mb_read_from_disks": spent.read / 1e6,
    }


def crawls(nginx: str, pages: int, rounds: int) -> dict[str, list[dict[str, float]]]:
    measured: dict[str, list[dict[str, float]]] = {ONE: [], TWO: []}
    with in_memory(sites(nginx, SITES, pages)) as web:
        for number in range(1, rounds + 1):
            with ticking(f"round {number} of {rounds}, by turns", every=10.0):
                found = crawled(nginx, web, pages)
            for name, figures_of_it in found.items():
                measured[name].append(figures_of_it)
                rate = figures_of_it["pages_per_second"]
                progress(f"round {number} of {rounds}, {name}: {rate:,.0f} pages/s")
    return measured


def server_targets(loads: dict[str, dict[str, float]]) -> Iterator[Target]:
    for name, found in loads.items():
        rate, latency = found["pages_per_server_cpu_second"], found["lease_p99_ms"]
        if found["leases"] < ENOUGH_LEASES:
            progress(f"{name}: {found['leases']} leases are too few to judge by")
            continue
        yield Target(f"pages per second of the server's CPU, {name}", rate, least=PAGES_PER_SECOND)
        yield Target(f"99th percentile of a lease, ms, {name}", latency, most=LEASE_P99)


def second_worker(measured: dict[str, list[dict[str, float]]]) -> Target:
    rates = [[found["pages_per_second"] for found in passes] for passes in measured.values()]
    return Target(
        "pages/s of two workers, times those of one process (median of the rounds)",
        median(two / one for one, two in zip(*rates, strict=True)),
        least=SECOND_WORKER,
    )


def crawl_rows(measured: dict[str, list[dict[str, float]]]) -> Iterator[tuple[object, ...]]:
    yield ("crawl", *(cell for name in measured for cell in (name, "spread")))
    for figure in measured[ONE][0]:
        cells: list[object] = []
        for passes in measured.values():
            values = sorted(found[figure] for found in passes)
            cells += [round(median(values), 2), f"{values[0]:,.2f} to {values[-1]:,.2f}"]
        yield (figure.replace("_", " "), *cells)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.service", description=__doc__)
    parser.add_argument(
        "--pages", type=int, default=100_000, help="for the server, of which half counts; 0 for none"
    )
    parser.add_argument("--crawl-pages", type=int, default=50_000, help="of each crawl; 0 for none")
    parser.add_argument("--rounds", type=int, default=5, help="of crawls")
    options = parser.parse_args()
    nginx = shutil.which("nginx")
    if nginx is None or not DOCUMENTS.is_dir():
        print("nginx and openjdk-17-doc are needed", file=sys.stderr)
        return 2
    loads = server_loads(options.pages) if options.pages else {}
    measured = crawls(nginx, options.crawl_pages, options.rounds) if options.crawl_pages else {}
    verdicts = [*server_targets(loads), *([second_worker(measured)] if measured else [])]
    if loads:
        print(table(list(load_rows(loads))))
    if measured:
        print(table(list(crawl_rows(measured))))
    show_targets(verdicts)
    targets = {target.words: target.row() for target in verdicts}
    last_line({"bench": "service", "loads": loads, "crawls": measured, "targets": targets})
    return 0 if judged(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
