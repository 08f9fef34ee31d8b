"""A frontier that knows a given number of URLs and crawls on, a stretch at a time, when it is told to.

A child of `bench.growth`: reads a number of pages a line from standard input, leases and settles as many in
simulated time, and answers with what a page took.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path

import msgspec

from bench._gauge import resident_bytes
from bench._stretch import Load

_GREETED = 1_000


class Stretch(msgspec.Struct):
    """`us` of CPU a page while a fixed piece of work took `pace` ms; what is known at its end. Of a whole crawl,
    whose processes cannot be stopped for such a piece, `pace` is 0; what came tells whether two are the same."""

    us: float
    pace: float
    urls: int
    rss: int
    kb_a_page: float = 0.0
    requests: int = 0


class Grown(Load):
    """Keeps to itself what a `Load` says along the way."""

    last = Stretch(0.0, 0.0, 0, 0)

    async def _say(
        self, phase: str, *, us_per_url: float = 0.0, us_per_page: float = 0.0, us_per_task: float = 0.0
    ) -> None:
        with self._meter.aside():
            known = sum((await self._frontier.stats()).urls.values())
        self.last = Stretch(us_per_page, self._meter.pace, known, resident_bytes())


async def _run(folder: Path, urls: int, hosts: int) -> None:
    load = Grown(folder, hosts, seed=1)
    await load.admit(urls, urls)
    await load.greet(_GREETED)
    print(msgspec.json.encode(load.last).decode(), flush=True)
    for line in sys.stdin:
        await load.crawl(int(line), int(line))
        print(msgspec.json.encode(load.last).decode(), flush=True)


if __name__ == "__main__":
    gc.set_threshold(50_000, 20, 50)  # as in a crawl
    asyncio.run(_run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
