"""Mutated deliveries at a real crawl: refused or committed, and never the end of the crawl.

    python -m tests.fuzz.deliveries SECONDS SEED [FILE...]

A crawl in memory leases hosts; for each task a worker of ours would deliver a page, a redirect, a failure or a
robots.txt. Each is changed in many ways: its bytes, its values, the records and rows inside its parcel. What
still decodes is checked as the server does it; what passes is committed. At the end the crawl is closed, opened
again and verified: a delivery that passed must have left no defect. FILEs are deliveries that were once found,
kept in `corpus/deliveries`: they are tried first.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from isal import igzip_lib
from msgspec.structs import replace

from skitter.archive.digests import digests_of
from skitter.archive.facts import Facts
from skitter.archive.packing import Packer
from skitter.collection.collection import Collection
from skitter.collection.verify.archive import verify
from skitter.committer.delivery_check import DeliveryCheck
from skitter.committer.work_source import Delivery
from skitter.folder import CrawlFolder
from skitter.frontier.link_batches import pack
from skitter.model import Fetched, HostLease, Link, Outcome, Redirected, Result, RobotsRead, Task, TaskKind
from skitter.settings import PolitenessSettings, Settings
from skitter.wiring import CrawlServices, open_services
from tests.exchanges import exchange
from tests.frontier_kit import discovered, failed, seed
from tests.fuzz.mutation import Mutator

HOSTS = 200
PAGES = 20
EACH = 40
SETTINGS = Settings(politeness=PolitenessSettings(delay=0.0, slow_factor=0.0))
_PACKER = Packer(SETTINGS.archive)
_decoder = msgspec.msgpack.Decoder(Delivery)
_REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def honest(lease: HostLease, task: Task, now: float, number: int) -> Delivery:
    """What a worker of ours would deliver."""
    body = b"<title>%d</title><p>Words of page %d." % (number, number)
    given = exchange(task.url, body, sent_at=now)
    facts = Facts(kind="page", text=f"Words of page {number}", title=str(number), links=_links(task))
    outcome = Outcome(
        host=lease.host,
        token=lease.token,
        kind=task.kind,
        key=task.key,
        sent_at=now,
        ended_at=now,
        result=_result(lease, task, body, number),
        address="192.0.2.7",
    )
    if task.kind is not TaskKind.ROBOTS and number % 7 == 3:
        return Delivery(replace(outcome, result=failed()))
    return Delivery(outcome, _PACKER.pack(given, digests_of(given), media_type="text/html", facts=facts))


def _links(task: Task) -> tuple[tuple[str, Link], ...]:
    return tuple((f"{task.url}/{number}", Link(str(number), "There")) for number in range(3))


def _result(lease: HostLease, task: Task, body: bytes, number: int) -> Result:
    digest = sha256(body).digest()
    if task.kind is TaskKind.ROBOTS:
        return RobotsRead(status=404, digest=digest, size=len(body))
    if number % 7 == 5:
        target = discovered(f"{lease.host}/moved/{number}", depth=task.depth, hops=task.hops + 1)
        return Redirected(status=301, location=target.url, target=target)
    found = pack(
        discovered(f"{lease.host}/p{number}-{page}", depth=task.depth + 1, parent=task.key)
        for page in range(3)
    )
    return Fetched(status=200, digest=digest, size=len(body), title="A title", link_batches=found)


class Variants:
    """Changed deliveries of an honest one."""

    def __init__(self, mutator: Mutator) -> None:
        self._mutator = mutator
        self._dice = mutator.dice

    def of(self, made: Delivery) -> Iterator[bytes]:
        message = msgspec.msgpack.encode(made)
        plain = msgspec.msgpack.decode(message)
        for _ in range(EACH):
            match self._dice.randrange(10):
                case 0:
                    yield self._mutator.of_bytes(message)
                case 1 | 2 if made.parcel is not None:
                    yield msgspec.msgpack.encode(self._with_record(made))
                case 3 | 4 if made.parcel is not None:
                    yield msgspec.msgpack.encode(self._with_rows(made))
                case _:
                    yield msgspec.msgpack.encode(self._mutator.of_value(plain))

    def _with_record(self, made: Delivery) -> Delivery:
        """A record that is changed and packed again, so that only looking into it shows."""
        assert made.parcel is not None
        name = self._dice.choice(("answer", "request", "metadata"))
        member: bytes = getattr(made.parcel, name)
        record = igzip_lib.decompress(member, igzip_lib.DECOMP_GZIP) if member else b""
        changed = igzip_lib.compress(self._mutator.of_bytes(record), 1, igzip_lib.COMP_GZIP)
        return replace(made, parcel=replace(made.parcel, **{name: changed}))

    def _with_rows(self, made: Delivery) -> Delivery:
        assert made.parcel is not None
        rows: Any = self._mutator.of_value(msgspec.msgpack.decode(made.parcel.rows))
        return replace(made, parcel=replace(made.parcel, rows=msgspec.msgpack.encode(rows)))


class Trial:
    """One crawl and what was tried on it. `kinds` counts what became of the changed deliveries."""

    def __init__(self, services: CrawlServices, seed: int) -> None:
        self._services = services
        self._check = DeliveryCheck(SETTINGS)
        self._variants = Variants(Mutator(seed))
        self.kinds: Counter[str] = Counter()

    async def try_one(self, message: bytes, *, is_kept: bool = False) -> bool:
        """Whether it passed, and was committed. One that is kept is judged as of its own time."""
        now = self._services.clock.now()
        try:
            made = _decoder.decode(message)
            now = made.outcome.ended_at if is_kept else now
        except _REFUSED:
            self.kinds["undecodable"] += 1
            return False
        if self._check.fault(made, now, now - 60.0):
            self.kinds["refused"] += 1
            return False
        self.kinds["committed"] += 1
        await self._services.committer.commit_batch([made])
        return True

    async def run(self, until: float, most: int) -> None:
        async for lease, task, number in self._tasks():
            made = honest(lease, task, self._services.clock.now(), number)
            fault = self._check.fault(made, self._services.clock.now(), made.outcome.sent_at)
            assert not fault, fault
            for message in self._variants.of(made):
                await self.try_one(message)
            await self._services.committer.commit_batch([made])
            if time.monotonic() > until or sum(self.kinds.values()) >= most:
                return

    async def _tasks(self) -> AsyncIterator[tuple[HostLease, Task, int]]:
        number = 0
        while leases := await self._services.committer.lease("w", 50, 600.0):
            for lease in leases:
                for task in lease.tasks:
                    number += 1
                    yield lease, task, number
                await self._services.committer.release([(lease.host, lease.token)])


async def fuzz(folder: Path, seconds: float, seed_number: int, kept: list[bytes], most: int = 1 << 60) -> str:
    """What was done, in words. Raises what no delivery may cause."""
    until, kinds, crawls = time.monotonic() + seconds, Counter[str](), 0
    while time.monotonic() < until and sum(kinds.values()) < most:
        crawls += 1
        crawl = CrawlFolder(folder / str(crawls))
        crawl.path.mkdir()
        crawl.settings_file.write_text("")
        async with open_services(crawl, SETTINGS) as services:
            urls = [f"http://h{host}.test/{page}" for host in range(HOSTS) for page in range(PAGES)]
            await services.frontier.admit([seed(url) for url in urls])
            trial = Trial(services, seed_number * 1_000_003 + crawls)
            for message in kept if crawls == 1 else ():
                assert not await trial.try_one(message, is_kept=True), "a kept delivery passes"
            await trial.run(until, most - sum(kinds.values()))
            kinds += trial.kinds
        await _assert_is_sound(crawl)
        print(f"{sum(kinds.values()):,}", file=sys.stderr, flush=True)
    told = ", ".join(f"{count:,} {name}" for name, count in sorted(kinds.items()))
    return f"{sum(kinds.values()):,} mutated deliveries ({told}) in {crawls} crawls"


async def _assert_is_sound(crawl: CrawlFolder) -> None:
    """It opens again, and what was committed has no defect."""
    async with open_services(crawl, SETTINGS) as services:
        await services.frontier.stats()
    report = verify(Collection.at(crawl.path), None)
    assert not report.defects, [finding for finding in report.findings if finding.weight == "defect"][:5]


def main() -> int:
    seconds, seed_number = float(sys.argv[1]), int(sys.argv[2])
    kept = [Path(file).read_bytes() for file in sys.argv[3:]]
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        print(asyncio.run(fuzz(Path(folder), seconds, seed_number, kept)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
