"""What do strangers at the door cost a server and its workers?

    python -m bench.door

A real `skitter serve` with tokens. Two honest workers lease and give back hosts, all the time. Beside them, by
turns with rest: 100 MB of headers and more, 10,000 half requests, 10,000 idle connections from one address.
Measured are the server's memory and the 99th percentile of a lease as the workers see it, over all rounds,
beside that of the turns at rest right before. A table, the targets, one JSON object as the last line; exit code
1 when a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any
from urllib.parse import urlsplit

import uvloop

from bench._crawls import child_environment, skitter_command, start
from bench._report import last_line, progress, table
from bench._targets import Target, judged, show_targets
from skitter.clock import SystemClock
from skitter.worker.remote.http_link import HttpLink
from skitter.worker.remote.remote_work_source import RemoteWorkSource

HOSTS = 400
WORKERS = 2
AT_ONCE = 4
KINDS = ("heads", "halves", "idle")
MOST_MORE_MB, MOST_TIMES = 64, 2.0
TOKEN = "bench-door-0123456789abcdef"
_PAUSE = 0.01


class Worker:
    """Leases hosts and gives them back, and remembers how long each lease took."""

    def __init__(self, where: str, number: int) -> None:
        self._link = HttpLink(where, TOKEN)
        self._source = RemoteWorkSource(self._link, SystemClock(), f"w{number}")
        self.waits: list[float] = []

    async def run(self) -> None:
        await self._source.join()
        while True:
            began = time.perf_counter()
            leases = await self._source.lease("", AT_ONCE, 60.0)
            self.waits.append((time.perf_counter() - began) * 1000)
            await self._source.release([(lease.host, lease.token) for lease in leases])
            await asyncio.sleep(_PAUSE)


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    seeds, tokens, output = folder / "seeds", folder / "tokens", folder / "output"
    seeds.write_text("".join(f"http://h{number}.test/\n" for number in range(HOSTS)))
    tokens.touch(mode=0o600)
    tokens.write_text(f"trusted-worker bench {TOKEN}\n")
    command = skitter_command("serve", str(folder / "crawl"), str(seeds), "--listen", "127.0.0.1:0", "--json")
    environ = {"SKITTER_IDENTITY_CONTACT": "bench@example.org"}
    with output.open("wb") as stream, start([*command, "--tokens", str(tokens)], stream, environ) as child:
        try:
            while not (found := re.search(r'"serving": "([^"]+)"', output.read_text())):
                if child.poll() is not None:
                    raise SystemExit(output.read_text())
                time.sleep(0.05)
            yield found[1], child
        finally:
            child.terminate()
            child.wait()


def resident_mb(child: subprocess.Popen[bytes]) -> float:
    return int(Path(f"/proc/{child.pid}/statm").read_text().split()[1]) * 4096 / 1e6


async def turn(
    workers: list[Worker], child: subprocess.Popen[bytes], seconds: float, strangers: str, where: str
) -> dict[str, Any]:
    """One turn, at rest where there are no `strangers`."""
    for worker in workers:
        worker.waits.clear()
    process = None
    if strangers:
        place = urlsplit(where)
        command = [sys.executable, "-m", "bench._strangers", strangers]
        process = await asyncio.create_subprocess_exec(
            *command,
            *(str(place.hostname), str(place.port), str(seconds)),
            stdout=asyncio.subprocess.PIPE,
            env=child_environment(),
        )
    most, until = resident_mb(child), time.monotonic() + seconds
    while time.monotonic() < until:
        await asyncio.sleep(0.1)
        most = max(most, resident_mb(child))
    told = json.loads((await process.communicate())[0]) if process is not None else {}
    if child.poll() is not None:
        raise SystemExit(f"the server ended with {child.returncode}")
    waits = [wait for worker in workers for wait in worker.waits]
    p50, p99 = (quantiles(waits, n=100)[at] for at in (49, 98))
    return {"mb": most, "leases": len(waits), "p50": p50, "p99": p99, "waits": waits, **told}


async def measure(
    where: str, child: subprocess.Popen[bytes], options: argparse.Namespace
) -> list[dict[str, Any]]:
    workers = [Worker(where, number) for number in range(WORKERS)]
    running = [asyncio.create_task(worker.run()) for worker in workers]
    await turn(workers, child, options.seconds / 2, "", where)  # to warm up
    found = []
    try:
        for number in range(options.rounds):
            for kind in KINDS:
                rest = await turn(workers, child, options.seconds, "", where)
                disturbed = await turn(workers, child, options.seconds, kind, where)
                found.append({"kind": kind, "rest": rest, "disturbed": disturbed})
                shown = (f"{one['p99']:.1f} ms of {one['leases']:,}" for one in (rest, disturbed))
                progress(f"round {number + 1}, {kind}: 99th percentile {' then '.join(shown)}")
                for task in running:
                    if task.done():
                        raise SystemExit(f"an honest worker ended: {task.exception()}")
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return found


def pooled_p99(turns: list[dict[str, Any]], which: str) -> float:
    """Of all rounds together: on a busy machine a turn has too few leases to tell."""
    waits: list[float] = [wait for one in turns for wait in one[which]["waits"]]
    return quantiles(waits, n=100)[98]


def targets(found: list[dict[str, Any]]) -> Iterator[Target]:
    first = found[0]["rest"]["mb"]
    for kind in KINDS:
        turns = [one for one in found if one["kind"] == kind]
        more = max(one["disturbed"]["mb"] for one in turns) - first
        times = pooled_p99(turns, "disturbed") / pooled_p99(turns, "rest")
        yield Target(f"MB more of the server, {kind}", more, most=MOST_MORE_MB)
        yield Target(f"99th percentile of a lease beside the one at rest, {kind}", times, most=MOST_TIMES)


def rows(found: list[dict[str, Any]]) -> Iterator[tuple[object, ...]]:
    yield ("strangers", "MB at rest", "MB", "p50 at rest, ms", "p50", "p99 at rest, ms", "p99", "leases")
    for one in found:
        rest, disturbed = one["rest"], one["disturbed"]
        yield (
            one["kind"],
            *(round(value, 1) for value in (rest["mb"], disturbed["mb"], rest["p50"], disturbed["p50"])),
            *(round(value, 1) for value in (rest["p99"], disturbed["p99"])),
            disturbed["leases"],
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.door", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=15.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="skitter-door-") as folder,
        served(Path(folder)) as (where, child),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        found = runner.run(measure(where, child, options))
    reached = [*targets(found)]
    print(table(rows(found)), "", sep="\n")
    show_targets(reached)
    for one in found:
        for which in ("rest", "disturbed"):
            del one[which]["waits"]
    last_line({"bench": "door", "turns": found, "targets": {one.words: one.row() for one in reached}})
    return 0 if judged(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
