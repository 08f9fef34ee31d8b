"""Does a page cost the same when a million URLs are known as when ten thousand are?

    python -m bench.growth

The same crawl of 500 names for one nginx (pages of openjdk-17-doc, each with 18 links to what is known), of which
so many URLs are known, the same 8,000 pages of each size in turn: fetched, read, archived and settled. Then lease
and settle alone, a fifth of it or more: pages with 20 links, two of them new, in one frontier per size, each in
a process of its own, a stretch in each in turn; once with hosts that grow in number, 20 URLs each, and once with
the same 2,000 hosts, which grow in size. A table, the targets and one JSON object as the last line; exit code 1
when a page costs more than 1.2 times as much in any of the three.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import IO

import msgspec

from bench._crawls import child_environment
from bench._growing import Stretch
from bench._grown_crawl import grown_crawls
from bench._report import last_line, progress, table, ticking
from bench._targets import Target, judged, show_targets
from bench.archive import DOCUMENTS

GROWTH = 1.2
STRETCH = 1_000
# Each stretch is a process of its own. With 2,000 pages a good part was what RocksDB merges after every opening;
# more than these would be beyond the first twenty of each host, which are the same for all sizes.
CRAWLED = 8_000
WHOLE = "whole crawls"
HOSTS: dict[str, Callable[[int], int]] = {
    "more hosts": lambda urls: urls // 20,
    "larger hosts": lambda urls: 2_000,
}


class Frontier:
    """A child with so many known URLs."""

    def __init__(self, folder: Path, urls: int, hosts: int) -> None:
        command = [sys.executable, "-m", "bench._growing", str(folder), str(urls), str(hosts)]
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=child_environment()
        )
        self.urls = urls

    def heard(self) -> Stretch:
        line = self._pipe(self._child.stdout).readline()
        if not line:
            raise SystemExit(f"the frontier with {self.urls:,} URLs ended early")
        return msgspec.json.decode(line, type=Stretch)

    def crawl(self, pages: int) -> Stretch:
        pipe = self._pipe(self._child.stdin)
        pipe.write(b"%d\n" % pages)
        pipe.flush()
        return self.heard()

    def end(self) -> None:
        self._pipe(self._child.stdin).close()
        self._child.wait()

    def _pipe(self, pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe


def measured(sizes: Sequence[int], hosts_for: Callable[[int], int], rounds: int) -> dict[int, list[Stretch]]:
    with tempfile.TemporaryDirectory(prefix="skitter-growth-") as name:
        frontiers = []
        for size in sizes:
            with ticking(f"admitting {size:,} URLs", every=10.0):
                frontiers.append(Frontier(Path(name) / str(size), size, hosts_for(size)))
                frontiers[-1].heard()
                # what admitting so many left to be compacted is not what a page costs
                frontiers[-1].crawl(STRETCH)
        found: dict[int, list[Stretch]] = {size: [] for size in sizes}
        for number in range(1, rounds + 1):
            for frontier in frontiers:
                stretch = frontier.crawl(STRETCH)
                found[frontier.urls].append(stretch)
                progress(f"round {number} of {rounds}, {frontier.urls:,}: {stretch.us:.0f} us a page")
        for frontier in frontiers:
            frontier.end()
    return found


def crawled(nginx: str, sizes: Sequence[int], rounds: int) -> dict[int, list[Stretch]]:
    found: dict[int, list[Stretch]] = {size: [] for size in sizes}
    with (
        tempfile.TemporaryDirectory(prefix="skitter-growth-") as name,
        grown_crawls(nginx, Path(name), sizes) as grown,
    ):
        for number in range(1, rounds + 1):
            for crawl in grown:
                stretch = crawl.stretch(CRAWLED)
                found[crawl.urls].append(stretch)
                progress(f"round {number} of {rounds}, {crawl.urls:,}: {stretch.us:.0f} us a page")
    return found


def growth(found: Mapping[int, Sequence[Stretch]]) -> float:
    """The dearest size against the smallest."""
    return max(growths(found).values())


def growths(found: Mapping[int, Sequence[Stretch]]) -> dict[int, float]:
    """Each size against the smallest, at equal pace where that is known, and in the same round: what else the
    machine does meets neighbours alike."""
    costs = {size: [stretch.us / (stretch.pace or 1.0) for stretch in found[size]] for size in found}
    least = costs[min(costs)]
    return {
        size: median(cost / base for cost, base in zip(those, least, strict=True))
        for size, those in costs.items()
    }


def curve(found: Mapping[str, Mapping[int, Sequence[Stretch]]]) -> str:
    heading = ("", "known URLs", "us a page", "spread", "times", "pace ms", "RSS MB", "KB a page", "requests")
    rows: list[Sequence[object]] = [heading]
    for shape, by_size in found.items():
        grown = growths(by_size)
        for size, stretches in by_size.items():
            costs = sorted(stretch.us for stretch in stretches)
            pace, last = median(stretch.pace for stretch in stretches), stretches[-1]
            spread = f"{costs[0]:.0f} to {costs[-1]:.0f}"
            figures = (round(median(costs), 1), spread, round(grown[size], 2), round(pace, 2) or "")
            came = (round(last.kb_a_page, 1) or "", last.requests or "")
            rows.append((shape, size, *figures, last.rss // 1_000_000, *came))
    return table(rows)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--whole", action="store_true", help="only whole crawls")
    parser.add_argument("--quick", action="store_true", help="up to 100,000 URLs, three rounds")
    options = parser.parse_args(arguments)
    sizes, rounds = ([10_000, 100_000], 3) if options.quick else (options.sizes, options.rounds)
    nginx = shutil.which("nginx")
    if nginx is None or not DOCUMENTS.is_dir():
        print("nginx and openjdk-17-doc are needed", file=sys.stderr)
        return 2
    found = {WHOLE: crawled(nginx, sizes, rounds)}
    if not options.whole:
        found |= {shape: measured(sizes, hosts_for, rounds) for shape, hosts_for in HOSTS.items()}
    words = "CPU of a page, the dearest size times the smallest"
    targets = [Target(f"{words}, {shape}", growth(by_size), most=GROWTH) for shape, by_size in found.items()]
    print(curve(found))
    show_targets(targets)
    last_line(
        {
            "bench": "growth",
            "stretches": msgspec.to_builtins(found, str_keys=True),
            "targets": {target.words: target.row() for target in targets},
        }
    )
    return 0 if judged(targets) else 1


if __name__ == "__main__":
    sys.exit(main())
