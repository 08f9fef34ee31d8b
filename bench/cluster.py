"""The trial of a cluster: nodes, workers and the database are killed and stopped while a crawl goes on.

    python -m bench.cluster --kills 40 --pauses 5 --hosts 200 --pages 10

Real processes on this machine: three nodes, four workers, PostgreSQL, an object store. A node that is killed is
started again on its folder, or on an empty one; one that is stopped is woken after others have taken its
partitions. In the end three records that know nothing of each other must agree: the web's own log, the ledgers of
all partitions, and what is in the bucket: every page once, none lost, none sooner than its host's delay. And what
checkpoint and log replayed elsewhere give must be the owner's tables. A table, the faults, one JSON object as the
last line; exit code 1 when there is any fault.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench._account import Account, Death, account, due_of, named
from bench._crawls import ROBOTS_ATTEMPTS, LogSize
from bench._postgres import Postgres
from bench._records import Known, archive_faults, known, records
from bench._report import progress, trial
from bench._s3 import S3Server
from bench._verdict import ATTEMPTS, breaches
from bench.objects import pardon_robots, without_lost
from skitter.frontier.log.catching_up import catch_up
from skitter.frontier.log.members import Members, PartRow
from skitter.frontier.log.postgres import Link, PostgresLog
from skitter.frontier.stores.memory import MemoryStore, MemoryTables
from skitter.frontier.stores.rocks import RocksStore
from skitter.frontier.tables.layout import TABLES
from skitter.frontier.tables.memory_plan import MemoryPlan
from skitter.settings import FrontierSettings
from skitter.testing.cluster_demo import SETTINGS, Cluster, calm_plan
from skitter.testing.plan import WebPlan
from skitter.testing.request_log import read_log
from skitter.testing.web import SyntheticWeb

NODES, WORKERS, PARTS = 3, 4, 6
LEASE, LAPSE = 6.0, 2.0
# Seconds until a partition has another owner and workers know it, on a machine that is busy with other things.
OWNERLESS = 15.0
GIVE_UP = 900.0
_END = b"\xff" * 64


class Chaos:
    """What was done to the cluster, and when."""

    def __init__(self, cluster: Cluster, database: Postgres, options: argparse.Namespace) -> None:
        self._cluster = cluster
        self._database = database
        self._random = random.Random(options.seed)
        self._options = options
        self.counts: Counter[str] = Counter()
        self.deaths: list[float] = []
        self.pauses: list[tuple[float, float]] = []
        self._size = LogSize(cluster.folder / "requests.jsonl")

    def run(self, expected: int) -> None:
        """Acts spread over the crawl, by how many requests the web has seen."""
        acts = ["kill"] * self._options.kills + ["pause"] * self._options.pauses
        self._random.shuffle(acts)
        for number, act in enumerate(acts, start=1):
            target = int(0.95 * expected * number / (len(acts) + 1))
            self._until(target)
            progress(f"{act} {number} of {len(acts)}")
            self._kill() if act == "kill" else self._pause()

    def _until(self, requests: int) -> None:
        """Or for some seconds: who is taken over rests."""
        until = time.monotonic() + 2 * LEASE
        while self._size.look() < requests and time.monotonic() < until:
            time.sleep(0.05)

    def _kill(self) -> None:
        what = self._random.choices(("node", "worker", "database"), (5, 4, 1))[0]
        self.deaths.append(time.time())
        if what == "database":
            self._database.kill()
            self._database.start()
        elif what == "worker":
            number = self._random.choice([*self._cluster.workers])
            self._end(self._cluster.workers[number])
            self._cluster.start_worker(number, self._random.randint(1, self._options.nodes))
        else:
            number = self._random.randint(1, self._options.nodes)
            self._end(self._cluster.nodes[number])
            if self._random.random() < 0.4:
                # another machine: nothing is left of its folder
                shutil.rmtree(self._cluster.folder / f"node-{number}", ignore_errors=True)
                what = "node, with its disk"
            if self._random.random() < 0.5:
                time.sleep(2 * LAPSE)
            self._cluster.start_node(number)
        self.counts[what] += 1
        self.deaths.append(time.time())
        if what != "worker":
            # until its partitions have another owner nothing is settled, and workers keep what they fetched
            self.pauses.append((self.deaths[-2], self.deaths[-1] + OWNERLESS))

    def _pause(self) -> None:
        """Past every lease: others take over, and it must find that out by itself."""
        number = self._random.randint(1, self._options.nodes)
        child = self._cluster.nodes[number]
        began = time.time()
        child.send_signal(signal.SIGSTOP)
        time.sleep(LAPSE + LEASE + 1.0)
        child.send_signal(signal.SIGCONT)
        self.pauses.append((began, time.time() + OWNERLESS))
        self.counts["node stopped past every lease"] += 1

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        child.send_signal(signal.SIGKILL)
        child.wait()


def owners_folders(cluster: Cluster, rows: list[PartRow]) -> dict[int, Path]:
    """The tables of each partition as its last owner has them."""
    found: dict[int, Path] = {}
    for row in rows:
        for number in cluster.urls:
            folder = cluster.folder / f"node-{number}"
            if f":{folder.absolute()}/" in row.owner:
                found[row.part] = folder / "parts" / f"p{row.part:04}" / "frontier"
    return found


def merged(folders: dict[int, Path]) -> Known:
    every = [known(folder) for folder in folders.values()]
    return Known(
        fetches=[fetch for one in every for fetch in one.fetches],
        states={url: state for one in every for url, state in one.states.items()},
        disagreements=[line for one in every for line in one.disagreements],
    )


def replayed_otherwise(url: str, folders: dict[int, Path]) -> Iterator[str]:
    """Partitions whose log, replayed elsewhere, gives other tables than the owner's. Those that were trimmed
    began from a checkpoint with every move."""
    for part, folder in folders.items():
        log = PostgresLog(url, part=part)
        standing = log.standing()
        assert standing is not None
        if standing.first == 1:
            elsewhere = MemoryStore(MemoryTables())
            catch_up(elsewhere, log, standing.crawl, standing.sequence)
            owners = RocksStore(folder, MemoryPlan.of(FrontierSettings()), read_only=True)
            for name in TABLES:
                if list(owners.scan(name, b"", _END)) != list(elsewhere.scan(name, b"", _END)):
                    yield f"partition {part}: {name}"
            owners.close()
        log.close()


def judge(folder: Path, store: S3Server, plan: WebPlan, delay: float, kept: Known, chaos: Chaos) -> Account:
    all_requests = read_log(folder / "requests.jsonl")
    found = records(store.objects("crawl"))
    requests, kept, lost = without_lost(all_requests, kept)
    due = due_of(plan, attempts=ATTEMPTS, robots_attempts=ROBOTS_ATTEMPTS)
    given_back = {fetch.url for fetch in lost}
    due.least |= {url: 1 for url in given_back if url in due.pages}
    asked = {fetch.url for fetch in named(kept.fetches, found)}
    due.robots = {url: n for url, n in due.robots.items() if url in asked or url not in given_back}
    result = account(requests, kept, found, due, [*map(Death, chaos.deaths)], chaos.pauses)
    pardon_robots(result, lost)
    _pardon_told_twice(result, given_back)
    result.blame("archive", archive_faults(store.objects("crawl"), found, merged=False))
    for kind, line in breaches(all_requests, plan, delay):
        result.blame(kind, [line])
    return result


def _pardon_told_twice(result: Account, given_back: set[str]) -> None:
    """A worker that got no answer tells the next owner what it fetched. If the first had taken it, and its disk
    is lost, one request is in the ledger twice: as lost, and as what it brought. It is archived once."""
    for kind in ("settled, not requested", "archived, not requested"):
        lines = result.faults.pop(kind, [])
        result.blame(kind, (line for line in lines if line.split(" ", 1)[0] not in given_back))


def run(options: argparse.Namespace, folder: Path) -> int:
    plan = calm_plan(options.hosts, options.pages, options.seed)
    expected = sum(row.requests(ATTEMPTS) for row in plan.expected().values()) + plan.hosts
    with (
        SyntheticWeb(plan, log=folder / "requests.jsonl", latency=(0.0, 0.1)) as web,
        S3Server(folder / "store") as store,
        Postgres() as database,
    ):
        settings = SETTINGS.format(
            delay=options.delay,
            segment_size=options.segment_size,
            # undisturbed, none is to run out on a busy machine
            lease=LEASE if options.kills or options.pauses else 10 * LEASE,
            lapse=LAPSE if options.kills or options.pauses else 10 * LAPSE,
            resolve=web.resolve,
        )
        cluster = Cluster(folder, database.url, store.environ, settings)
        chaos = Chaos(cluster, database, options)
        began = time.monotonic()
        try:
            _begin(cluster, web, options.nodes)
            started = nodes_cpu(cluster)
            chaos.run(expected)
            is_done = cluster.until_idle(GIVE_UP)
            cpu = nodes_cpu(cluster) - started
        finally:
            seconds = time.monotonic() - began
            cluster.stop()
        link = Link(database.url, None)
        folders = owners_folders(cluster, Members(link).parts())
        link.close()
        progress("reading the log, the ledgers and the bucket")
        unlike = list(replayed_otherwise(database.url, folders))
        kept = merged(folders)
    result = judge(folder, store, plan, options.delay, kept, chaos)
    result.blame("replayed otherwise", unlike)
    if not is_done:
        result.blame("the cluster", ["was not idle in the end"])
    show(options, chaos, result, kept, seconds, cpu)
    return 1 if result.faults else 0


def _begin(cluster: Cluster, web: SyntheticWeb, nodes: int) -> None:
    cluster.start_node(1, *web.seeds, parts=PARTS)
    while cluster.ask("/v1/partitions") is None:
        time.sleep(0.2)
    for number in range(2, nodes + 1):
        cluster.start_node(number)
    for number in range(1, WORKERS + 1):
        cluster.start_worker(number, 1 + number % nodes)
    size = LogSize(cluster.folder / "requests.jsonl")
    while not size.look():  # a cluster without seeds is idle
        time.sleep(0.1)


def nodes_cpu(cluster: Cluster) -> float:
    """Seconds of CPU that the nodes which live now have taken, without their children."""
    return sum(_cpu_of(child.pid) for child in cluster.nodes.values() if child.poll() is None)


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def show(
    options: argparse.Namespace, chaos: Chaos, result: Account, kept: Known, seconds: float, cpu: float
) -> None:
    lost = sum(fetch.result == "lost" for fetch in kept.fetches)
    figures: dict[str, object] = {
        **{f"killed or stopped: {what}": count for what, count in sorted(chaos.counts.items())},
        "seconds": round(seconds, 1),
        "requests the web saw": result.requests + lost,
        "fetches settled": result.settled,
        "records in the bucket": result.archived,
        "fetches given back with a node's disk": lost,
        "requests lost in flight": result.lost,
        **({} if chaos.counts else {"nodes' CPU after their start, s": round(cpu, 2)}),
    }
    trial("cluster", options.seed, figures, result.faults)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--pauses", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--pages", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--delay", type=float, default=0.2)
    parser.add_argument("--segment-size", type=int, default=300_000)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave everything in this new folder")
    options = parser.parse_args(arguments)
    if options.keep:
        options.keep.mkdir(parents=True)
        return run(options, options.keep)
    with tempfile.TemporaryDirectory(prefix="skitter-cluster-", ignore_cleanup_errors=True) as folder:
        return run(options, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
