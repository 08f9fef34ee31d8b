"""The trial of a crawl that moves: its machine is killed or stopped, and another one goes on with it.

    python -m bench.takeover --moves 10 --hosts 200 --pages 10

Each machine is a folder of its own; nothing is left of the one before but the log in PostgreSQL and the object
store. A machine that is stopped is woken after another has taken over: it must end by itself, and have asked for
nothing more. In between the database is killed and started again. In the end the web's own log, the ledger and
the bucket must agree: every page once, none lost, none sooner than its host's delay; and the log replayed
elsewhere must give the same tables. A table, the faults, one JSON object as the last line; exit code 1 when
there is any fault.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

from bench._account import Account
from bench._crawls import LogSize, skitter_command, start, web_crawl, write_quick_settings
from bench._postgres import Postgres
from bench._report import progress, trial
from bench._s3 import BUCKET, S3Server
from bench._verdict import ATTEMPTS
from bench.objects import PREFIX, Looks, verdict
from skitter.frontier.log.catching_up import catch_up
from skitter.frontier.log.postgres import PostgresLog
from skitter.frontier.stores.memory import MemoryStore, MemoryTables
from skitter.frontier.stores.rocks import RocksStore
from skitter.frontier.tables.layout import TABLES
from skitter.frontier.tables.memory_plan import MemoryPlan
from skitter.settings import FrontierSettings
from skitter.testing.features import FEATURE_SHARES, ROBOTS_SHARES, Feature, RobotsKind
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb

LAPSE, LEASE = 1.5, 4.0
GIVE_UP = 600.0
_LOG = """
[frontier]
lease_duration = {lease}
log_lapse = {lapse}
log_unreplicated = true
checkpoint_interval = 3.0
"""


class Moves:
    """One crawl on many machines. Machine 0 begins it; machine n takes it over from n - 1."""

    def __init__(
        self,
        folder: Path,
        web: SyntheticWeb,
        store: S3Server,
        database: Postgres,
        options: argparse.Namespace,
    ) -> None:
        self._folder = folder
        self._web = web
        self._store = store
        self._database = database
        self._random = random.Random(options.seed)
        self._moves = options.moves
        self._expected = options.expected
        self._size = LogSize(folder / "requests.jsonl")
        self.looks = Looks()
        self.restarts = 0
        self.silences: list[float] = []

    def run(self, output: IO[bytes]) -> Looks:
        began = time.monotonic()
        child = start(self._begin(), output, self._store.environ)
        moments = sorted(self._random.uniform(0.02, 0.9) for _ in range(self._moves))
        for number, moment in enumerate(moments, start=1):
            progress(f"move {number} of {len(moments)} at {moment:.0%}")
            self._wait(child, moment)
            child = self._move(child, number, output)
        self.looks.code = child.wait(GIVE_UP)
        self.looks.seconds = time.monotonic() - began
        self.machine(self._moves).rename(self._folder / "crawl")
        return self.looks

    def machine(self, number: int) -> Path:
        return self._folder / f"machine-{number}"

    def _begin(self) -> list[str]:
        archive = ("--archive", f"s3://{BUCKET}/{PREFIX}", "--frontier-log", self._database.url)
        return web_crawl(self._web, self.machine(0), self._folder / "quick.toml", *archive, "--workers", "1")

    def _go_on(self, number: int) -> list[str]:
        return skitter_command("crawl", "--into", str(self.machine(number)), "--json")

    def _wait(self, child: subprocess.Popen[bytes], moment: float) -> None:
        target = max(int(moment * self._expected), self._size.look() + 40)
        while self._size.look() < target and child.poll() is None:
            time.sleep(0.02)
        if child.poll() is not None:
            self.looks.faults.append(f"the crawl ended by itself with {child.returncode}")

    def _move(
        self, child: subprocess.Popen[bytes], number: int, output: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        is_stopped = number % 2 == 0
        child.send_signal(signal.SIGSTOP if is_stopped else signal.SIGKILL)
        died = time.time()
        self.looks.kills.append(died)
        if number % 3 == 0:
            self._database.kill()
            self._database.start()
            self.restarts += 1
        standby = skitter_command("standby", str(self.machine(number)), "--frontier-log", self._database.url)
        code = start(standby, output, self._store.environ).wait(GIVE_UP)
        if code:
            self.looks.faults.append(f"standby {number} ended with {code}")
        taken = start(self._go_on(number), output, self._store.environ)
        self._until_taken(number, died)
        if is_stopped:
            child.send_signal(signal.SIGCONT)
        code = child.wait(GIVE_UP)
        self.looks.kills.append(time.time())
        if is_stopped and code != 1:
            self.looks.faults.append(f"machine {number - 1} woke up and ended with {code}, not 1")
        return taken

    def _until_taken(self, number: int, died: float) -> None:
        """Another epoch is in force."""
        log = PostgresLog(self._database.url)
        while (standing := log.standing()) is None or str(self.machine(number)) not in standing.place:
            time.sleep(0.02)
        self.silences.append(time.time() - died)
        log.close()


def replay_faults(folder: Path, url: str) -> list[str]:
    """The last machine's tables against checkpoint and log, replayed elsewhere."""
    log = PostgresLog(url)
    standing = log.standing()
    assert standing is not None
    if standing.first > 1:
        log.close()
        return []  # trimmed: the moves themselves began with checkpoints
    elsewhere = MemoryStore(MemoryTables())
    catch_up(elsewhere, log, standing.crawl, standing.sequence)
    log.close()
    owners = RocksStore(folder / "crawl" / "frontier", MemoryPlan.of(FrontierSettings()), read_only=True)
    end = b"\xff" * 64
    unlike = [
        table
        for table in TABLES
        if list(owners.scan(table, b"", end)) != list(elsewhere.scan(table, b"", end))
    ]
    owners.close()
    return unlike


def run(options: argparse.Namespace, folder: Path) -> int:
    plan = WebPlan(
        seed=options.seed,
        hosts=options.hosts,
        pages=options.pages,
        features={feature: n for feature, n in FEATURE_SHARES.items() if feature is not Feature.BROKEN},
        robots={kind: n for kind, n in ROBOTS_SHARES.items() if kind is not RobotsKind.UNAVAILABLE},
    )
    quick = folder / "quick.toml"
    write_quick_settings(quick, delay=options.delay, segment_size=options.segment_size, lease=LEASE)
    text = quick.read_text().replace(f"[frontier]\nlease_duration = {LEASE}\n", "")
    quick.write_text(text + _LOG.format(lease=LEASE, lapse=LAPSE))
    options.expected = sum(row.requests(ATTEMPTS) for row in plan.expected().values()) + plan.hosts
    with (
        SyntheticWeb(plan, log=folder / "requests.jsonl", latency=(0.0, 0.1)) as web,
        S3Server(folder / "store") as store,
        Postgres() as database,
        (folder / "output").open("ab") as output,
    ):
        moves = Moves(folder, web, store, database, options)
        looks = moves.run(output)
        progress("reading the log, the ledger and the bucket")
        unlike = replay_faults(folder, database.url)
    result, lost = verdict(folder, store, plan, options.delay, looks)
    result.blame("replayed otherwise", unlike)
    show(options, moves, result, lost)
    return 1 if result.faults else 0


def show(options: argparse.Namespace, moves: Moves, result: Account, lost: int) -> None:
    silences = sorted(moves.silences)
    figures: dict[str, object] = {
        "machines killed": -(-options.moves // 2),
        "machines stopped, taken over and woken": options.moves // 2,
        "restarts of the database": moves.restarts,
        "seconds": round(moves.looks.seconds, 1),
        "requests the web saw": result.requests + lost,
        "fetches settled": result.settled,
        "records in the bucket": result.archived,
        "fetches given back with their machine": lost,
        "requests lost in flight": result.lost,
        "seconds from death to the next owner": [round(silence, 1) for silence in silences],
    }
    trial("takeover", options.seed, figures, result.faults)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.takeover", description=__doc__.splitlines()[0])
    parser.add_argument("--moves", type=int, default=10)
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
    with tempfile.TemporaryDirectory(prefix="skitter-takeover-") as folder:
        return run(options, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
