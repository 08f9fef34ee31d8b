"""Mutated files of a frontier's store: it opens and works, or says in a sentence what is wrong. Nothing else.

    python -m tests.fuzz.stores SECONDS SEED

A frontier of some hosts is closed, or killed; then a few bytes of one of its files are changed: a table, a log
or a filter. What RocksDB's check sums find is an error of ours with words for the operator, never a bug,
and what they let through is used as it is. A damaged filter is made anew.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from skitter.clock import SystemClock
from skitter.errors import SkitterError
from skitter.frontier.opening import open_rocks_frontier
from skitter.model import HostLease, Outcome
from skitter.settings import FrontierSettings, PolitenessSettings, Settings
from tests.frontier_kit import OK, robots, seed
from tests.fuzz.mutation import Mutator, tell_progress

# With small caches: a trial of 256 MB spent most of its time on files of empty filters.
SETTINGS = Settings(politeness=PolitenessSettings(delay=0.0), frontier=FrontierSettings(memory=16_000_000))
# Tables, write-ahead logs, and our filters. RocksDB's own books are left out.
_CHANGED = (".sst", ".log", ".filter", ".keys")


async def make_template(folder: Path, *, killed: bool) -> None:
    """Some hosts, robots.txt read, some pages fetched."""
    where = folder.with_suffix(".live") if killed else folder
    frontier = open_rocks_frontier(where, SETTINGS, SystemClock())
    await frontier.admit([seed(f"http://h{host}.test/{page}") for host in range(20) for page in range(5)])
    for _ in range(2):
        await work(frontier, 10)
    await frontier.sync()
    if killed:
        shutil.copytree(where, folder)
    await frontier.close()


async def work(frontier: object, hosts: int) -> None:
    """Lease, settle, look: what every crawl does first."""
    from skitter.frontier.engine.frontier import EngineFrontier

    assert isinstance(frontier, EngineFrontier)
    await frontier.promote(time.time())
    leases = await frontier.lease("w", hosts, 60.0)
    outcomes = [outcome for lease in leases for outcome in _outcomes(lease)]
    async with frontier.settling(outcomes) as settling:
        await settling.commit(outcomes, ())
    await frontier.stats()


def _outcomes(lease: HostLease) -> list[Outcome]:
    now = time.time()
    return [
        Outcome(
            host=lease.host,
            token=lease.token,
            kind=task.kind,
            key=task.key,
            sent_at=now,
            ended_at=now,
            result=robots() if task.kind == "robots" else OK,
        )
        for task in lease.tasks
    ]


def damage(folder: Path, mutator: Mutator) -> str:
    """Which kind of file was changed."""
    files = sorted(file for file in folder.iterdir() if file.suffix in _CHANGED and file.stat().st_size)
    file = mutator.dice.choice(files)
    content = file.read_bytes()
    same = mutator.dice.random() < 0.7
    file.write_bytes(mutator.of_same_length(content) if same else mutator.of_bytes(content))
    return file.suffix


async def go_on(folder: Path) -> str:
    """How it ended: `works`, or the sentence's first words. Raises whatever is no sentence of ours."""
    try:
        frontier = open_rocks_frontier(folder, SETTINGS, SystemClock())
        try:
            await work(frontier, 20)
        finally:
            await frontier.close()
    except SkitterError as error:
        if "\n" in str(error):
            raise ValueError("an error of more than one line") from error
        return "told"
    return "works"


def main() -> int:
    seconds, seed_number = float(sys.argv[1]), int(sys.argv[2])
    mutator, until = Mutator(seed_number), time.monotonic() + seconds
    ended: Counter[str] = Counter()
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as name:
        templates = [Path(name) / "closed", Path(name) / "killed"]
        for template in templates:
            asyncio.run(make_template(template, killed=template.name == "killed"))
        while time.monotonic() < until:
            tried = Path(name) / "tried"
            shutil.copytree(mutator.dice.choice(templates), tried)
            kind = damage(tried, mutator)
            try:
                ended[f"{kind} {asyncio.run(go_on(tried))}"] += 1
            except BaseException:
                shutil.copytree(tried, Path(tempfile.gettempdir()) / f"skitter-fuzz-store-{seed_number}")
                raise
            shutil.rmtree(tried)
            tell_progress(sum(ended.values()))
    told = ", ".join(f"{count:,} {how}" for how, count in sorted(ended.items()))
    print(f"{sum(ended.values()):,} mutated stores ({told})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
