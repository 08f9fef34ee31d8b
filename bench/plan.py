"""Does a plan come true? Ten crawls of different shapes, planned when a tenth was crawled.

    python -m bench.plan
    python -m bench.plan --seeds 40 43

The crawls run in simulated time on the real frontier. For each it is compared what the estimate said of time and
bytes, of the whole crawl, with what they turned out to be; and how often the truth lay within the band, also at
later estimates. Exit code 1 when the median error of either is above 20 %. The model was made with seeds 1 to 3.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench._planned_webs import Shape, ten_shapes
from bench._report import last_line, progress, table
from bench._simulated_crawl import Asked, Ended, SimulatedCrawl

MOST_OFF = 0.20
_WHEN = 0.10


class Judged(NamedTuple):
    """Errors are shares of the truth, of the whole crawl; `within` are estimates whose band held it."""

    shape: str
    pages: int
    hours: float
    time_off: float
    bytes_off: float
    is_within: bool
    within: int
    estimates: int


async def crawl(folder: Path, shape: Shape, seed: int) -> Judged:
    ended = await SimulatedCrawl(folder, shape, seed).run()
    planned = min(ended.asked, key=lambda asked: abs(asked.pages - _WHEN * ended.pages))
    later = [asked for asked in ended.asked if 0.05 <= asked.pages / ended.pages <= 0.95]
    return Judged(
        shape.name,
        ended.pages,
        ended.seconds / 3600,
        (planned.at + planned.estimate.seconds.likely) / ended.seconds - 1,
        (planned.bytes + planned.estimate.bytes.likely) / ended.bytes - 1,
        _is_within(planned, ended),
        sum(_is_within(asked, ended) for asked in later),
        len(later),
    )


def _is_within(asked: Asked, ended: Ended) -> bool:
    left = ended.seconds - asked.at
    return asked.estimate.seconds.low <= left <= asked.estimate.seconds.high


def judge(seeds: Sequence[int], scale: float) -> list[Judged]:
    found = []
    for seed in seeds:
        for shape in ten_shapes(seed, scale):
            progress(f"seed {seed}: {shape.name}")
            with tempfile.TemporaryDirectory(prefix="skitter-plan-") as folder:
                found.append(asyncio.run(crawl(Path(folder), shape, seed)))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.plan", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs=2, type=int, default=(100, 102), metavar=("FROM", "TO"))
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes of hosts")
    options = parser.parse_args(argv)
    found = judge(range(*options.seeds), options.scale)
    rows: list[Sequence[object]] = [("crawl", "pages", "hours", "time off", "bytes off", "in band", "later")]
    rows += [
        (
            one.shape,
            one.pages,
            f"{one.hours:.2f}",
            f"{one.time_off:+.0%}",
            f"{one.bytes_off:+.0%}",
            "yes" if one.is_within else "no",
            f"{one.within} of {one.estimates}",
        )
        for one in found
    ]
    print(table(rows))
    time_off = statistics.median(abs(one.time_off) for one in found)
    bytes_off = statistics.median(abs(one.bytes_off) for one in found)
    in_band = sum(one.is_within for one in found) / len(found)
    later = sum(one.within for one in found) / sum(one.estimates for one in found)
    last_line({"time_off": time_off, "bytes_off": bytes_off, "in_band": in_band, "later_in_band": later})
    return int(time_off > MOST_OFF or bytes_off > MOST_OFF)


if __name__ == "__main__":
    sys.exit(main())
