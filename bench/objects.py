"""The kill trial with the archive in object storage: the crawl is killed, its store stopped and started, and
once a segment that is not stored yet is deleted; in the end every page must be in the bucket exactly once.

    python -m bench.objects --kills 10 --hosts 200 --pages 10

After each kill what the frontier calls stored is compared with what fastwarc reads in the bucket. A table, the
faults, one JSON object as the last line; exit code 1 when there is any fault.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import msgspec

from bench._account import Account, Death, account, due_of, named
from bench._crawls import ROBOTS_ATTEMPTS, LogSize, start, web_crawl, write_quick_settings
from bench._records import Fetch, Known, archive_faults, ident_of, known, marks, records
from bench._report import progress, trial
from bench._s3 import BUCKET, S3Server
from bench._verdict import ATTEMPTS, breaches
from skitter.testing.audit import is_robots
from skitter.testing.features import FEATURE_SHARES, ROBOTS_SHARES, Feature, RobotsKind
from skitter.testing.plan import WebPlan
from skitter.testing.request_log import Request, read_log
from skitter.testing.web import SyntheticWeb

PREFIX = "crawl"
GIVE_UP = 900.0
AWAY = 3.0


class Looks(msgspec.Struct, kw_only=True):
    """What was seen while the crawl was down."""

    kills: list[float] = []
    stops: int = 0
    cut_off: int = 0
    stored: list[int] = []
    deleted: str = ""
    deleted_fetches: int = 0
    faults: list[str] = []
    code: int = -1
    seconds: float = 0.0


class Trial:
    def __init__(self, folder: Path, web: SyntheticWeb, store: S3Server, options: argparse.Namespace) -> None:
        self._folder = folder
        self._store = store
        self._random = random.Random(options.seed)
        self._kills = options.kills
        self._size = LogSize(folder / "requests.jsonl")
        self._expected = options.expected
        self._command = web_crawl(
            web, folder / "crawl", folder / "quick.toml", "--archive", f"s3://{BUCKET}/{PREFIX}"
        )
        self.looks = Looks()

    def run(self, output: IO[bytes]) -> Looks:
        began = time.monotonic()
        moments = sorted(self._random.uniform(0, 0.97) for _ in range(self._kills))
        for number, moment in enumerate(moments, start=1):
            self._store.start()
            child = start(self._command, output, self._store.environ)
            progress(f"kill {number} of {len(moments)} at {moment:.0%}")
            code = self._disturb(child, moment, number)
            if code is not None:
                self.looks.faults.append(f"the crawl ended by itself with {code} before kill {number}")
                break
            child.kill()
            child.wait()
            self.died()
            if not self.looks.deleted and number >= len(moments) // 2:
                self._delete_spool()
        self._store.start()
        child = start(self._command, output, self._store.environ)
        self._go_away_once(child)
        self.looks.code = child.wait(GIVE_UP)
        self._look()
        self.looks.seconds = time.monotonic() - began
        return self.looks

    def _said(self) -> int:
        log = self._folder / "crawl" / "skitter.log"
        return log.stat().st_size if log.exists() else 0

    def _stop_store(self) -> None:
        self._store.stop()
        self.looks.stops += 1

    def _go_away_once(self, child: subprocess.Popen[bytes]) -> None:
        """In the last run the store is away for a while and comes back."""
        silent = self._said()
        while child.poll() is None and self._said() <= silent:
            time.sleep(0.02)
        if child.poll() is None and self._kills:
            self._stop_store()
            time.sleep(AWAY)
            self._store.start()

    def died(self) -> None:
        self.looks.kills.append(time.time())
        self._look()

    def _disturb(self, child: subprocess.Popen[bytes], moment: float, number: int) -> int | None:
        """Until the web has seen its share of the requests; every second time the store is away for a part of
        that."""
        began, silent = self._size.look(), self._said()
        target = max(int(moment * self._expected), began + 40)
        away = number % 2 == 0
        while self._size.look() < target or (away and self._store.is_up):
            # not before the crawl has looked for it, and says that it goes on
            if away and self._store.is_up and self._said() > silent:
                self._stop_store()
            try:
                return child.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
        if number % 3 == 0:
            # so that draining and the last uploads are struck as well
            child.send_signal(signal.SIGINT)
            self._store.start()
        try:
            code = child.wait(self._random.uniform(0, 0.6))
        except subprocess.TimeoutExpired:
            return None
        return None if code in (130, -signal.SIGINT) else code

    def _look(self) -> None:
        """What the frontier says is stored must be in the bucket, record by record."""
        frontier = self._folder / "crawl" / "frontier"
        if not frontier.is_dir():
            return
        stored = {mark.segment for mark in marks(frontier) if mark.stored}
        there = {(found.segment, found.offset) for found in records(self._store.objects(PREFIX))}
        places = {fetch.record[:2] for fetch in known(frontier).fetches if fetch.record}
        claimed = {place for place in places if place[0] in stored}
        self.looks.stored.append(len(claimed))
        self.looks.faults += [
            f"called stored, not in the bucket: {place}" for place in sorted(claimed - there)
        ]

    def _delete_spool(self) -> None:
        """Another disk: the largest segment that is not stored is gone, with its journals and parts."""
        folder = self._folder / "crawl"
        archive = folder / "archive"
        held = [mark for mark in marks(folder / "frontier") if mark.held]
        counts = Counter(fetch.record[0] for fetch in known(folder / "frontier").fetches if fetch.record)
        for mark in sorted(held, key=lambda mark: -counts[mark.segment]):
            if counts[mark.segment] and not (self._store.objects(PREFIX) / mark.segment).exists():
                stem = mark.segment.removesuffix(".warc.gz")
                for path in (*archive.glob(f"{stem}*"), *archive.glob(f"*/{stem}*")):
                    path.unlink()
                self.looks.deleted, self.looks.deleted_fetches = mark.segment, counts[mark.segment]
                return


def without_lost(requests: Sequence[Request], kept: Known) -> tuple[list[Request], Known, list[Fetch]]:
    """The log and the ledger as if what was lost with its segment had never been: it was to be made again."""
    lost = [fetch for fetch in kept.fetches if fetch.result == "lost"]
    rows: dict[bytes, list[Request]] = defaultdict(list)
    for row in sorted(requests, key=lambda row: row.start):
        rows[ident_of(f"http://{row.host}{row.path}")].append(row)
    gone: set[int] = set()
    for fetch in lost:
        candidates = [
            row
            for row in rows[fetch.host]
            if id(row) not in gone
            and row.start <= fetch.sent_at + 0.01
            and (f"http://{row.host}{row.path}" == fetch.url if fetch.url else is_robots(row.path))
        ]
        if candidates:
            gone.add(id(candidates[-1]))
    kept = kept._replace(fetches=[fetch for fetch in kept.fetches if fetch.result != "lost"])
    return [row for row in requests if id(row) not in gone], kept, lost


def verdict(folder: Path, store: S3Server, plan: WebPlan, delay: float, looks: Looks) -> tuple[Account, int]:
    all_requests = read_log(folder / "requests.jsonl")
    bucket = store.objects(PREFIX)
    found = records(bucket)
    requests, kept, lost = without_lost(all_requests, known(folder / "crawl" / "frontier"))
    due = due_of(plan, attempts=ATTEMPTS, robots_attempts=ROBOTS_ATTEMPTS)
    given_back = {fetch.url for fetch in lost}
    # A page that failed before it came may have lost its failures alone; a robots.txt is asked for again only
    # where its host has something left to ask for.
    due.least |= {url: 1 for url in given_back if url in due.pages}
    asked = {fetch.url for fetch in named(kept.fetches, found)}
    due.robots = {url: n for url, n in due.robots.items() if url in asked or url not in given_back}
    result = account(requests, kept, found, due, [*map(Death, looks.kills)])
    pardon_robots(result, lost)
    result.blame("archive", archive_faults(bucket, found, merged=False))
    result.blame("while down", looks.faults)
    result.blame("manners", (line for _, line in breaches(all_requests, plan, delay)))
    left = [path.name for path in (folder / "crawl" / "archive").rglob("*") if path.is_file()]
    result.blame("left in the spool", left)
    result.blame(
        "not stored", [mark.segment for mark in marks(folder / "crawl" / "frontier") if not mark.stored]
    )
    if looks.deleted and len(lost) != looks.deleted_fetches:
        result.blame("given back", [f"{len(lost)} fetches, not {looks.deleted_fetches}"])
    if looks.code:
        result.blame("exit code", [str(looks.code)])
    return result, len(lost)


def pardon_robots(result: Account, lost: list[Fetch]) -> None:
    """A robots.txt that was redirected is asked for from its beginning again when any of its answers was lost."""
    if any(not fetch.url or is_robots(fetch.url) for fetch in lost):
        often = result.faults.pop("settled too often", [])
        result.blame("settled too often", (line for line in often if "/robots.txt " not in line))


def run(options: argparse.Namespace, folder: Path) -> int:
    # Without what fails for good: how often that is asked again after a loss is nobody's promise.
    plan = WebPlan(
        seed=options.seed,
        hosts=options.hosts,
        pages=options.pages,
        features={feature: n for feature, n in FEATURE_SHARES.items() if feature is not Feature.BROKEN},
        robots={kind: n for kind, n in ROBOTS_SHARES.items() if kind is not RobotsKind.UNAVAILABLE},
    )
    write_quick_settings(folder / "quick.toml", delay=options.delay, segment_size=options.segment_size)
    log = folder / "requests.jsonl"
    options.expected = sum(row.requests(ATTEMPTS) for row in plan.expected().values()) + plan.hosts
    with (
        SyntheticWeb(plan, log=log, latency=(0.0, 0.1)) as web,
        S3Server(folder / "store") as store,
        (folder / "output").open("ab") as output,
    ):
        looks = Trial(folder, web, store, options).run(output)
    progress("reading the log, the ledger and the bucket")
    result, lost = verdict(folder, store, plan, options.delay, looks)
    looks.cut_off = store.cut_off
    show(options, looks, result, lost)
    return 1 if result.faults else 0


def show(options: argparse.Namespace, looks: Looks, result: Account, lost: int) -> None:
    figures: dict[str, object] = {
        "kills": len(looks.kills),
        "stops of the store": looks.stops,
        "uploads cut off by them": looks.cut_off,
        "seconds": round(looks.seconds, 1),
        "requests the web saw": result.requests + lost,
        "fetches settled": result.settled,
        "records in the bucket": result.archived,
        "stored at the kills": looks.stored,
        "fetches lost with a deleted segment": lost,
        "requests lost in kills": result.lost,
    }
    trial("objects", options.seed, figures, result.faults)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.objects", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10)
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
    with tempfile.TemporaryDirectory(prefix="skitter-objects-") as folder:
        return run(options, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
