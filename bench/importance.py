"""Does a crawl that follows importance fetch what matters first, and what does that cost?

    python -m bench.importance
    python -m bench.importance --seeds 40 43 --hosts 3000

A generated web graph whose PageRank is known is crawled in simulated time on the real frontier, one page a second
and host, as many pages a second as `--capacity` says: breadth first, with the usual priorities, and with
`frontier.importance`. A table of the rank mass that the first tenth of the pages holds; exit code 1 when
importance has less than twice that of breadth first, or costs more than 3 % of a page's 800 us. `best` is what
one who knows all ranks would have. The arithmetic was made with seed 1.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench._keys import key_of
from bench._report import last_line, progress, table
from bench._web_graph import WebGraph, web_graph
from skitter.frontier.link_batches import pack
from skitter.frontier.opening import open_rocks_frontier
from skitter.model import Discovered, Fetched, Host, HostLease, Outcome, RobotsRead, Task, TaskKind, Via
from skitter.settings import CrawlSettings, FrontierSettings, PolitenessSettings, Settings, TrapSettings
from skitter.testing.clock import FakeClock

TIMES, MOST_COST, A_PAGE = 2.0, 0.03, 800.0
_SEEDS = 5
_FIRST = 0.10


def breadth_first(graph: WebGraph, seeds: Sequence[int]) -> list[int]:
    """The order of a queue that knows nothing but who came first."""
    order = list(seeds)
    known = set(order)
    for page in order:
        for to in graph.links[page]:
            if to not in known:
                known.add(to)
                order.append(to)
    return order


class Crawl:
    """The real frontier in simulated time; `cpu` is what settling took, in seconds."""

    def __init__(self, folder: Path, graph: WebGraph, *, importance: bool) -> None:
        settings = Settings(
            crawl=CrawlSettings(scope="any", max_depth=1_000),
            frontier=FrontierSettings(importance=importance, tasks_per_lease=2),
            politeness=PolitenessSettings(address_rate=0.0),
            traps=TrapSettings(mode="off"),
        )
        self.clock = FakeClock()
        self.graph = graph
        self.frontier = open_rocks_frontier(folder, settings, self.clock)
        self.order: list[int] = []
        self.cpu = 0.0

    async def run(self, seeds: Sequence[int], capacity: int, pages: int) -> None:
        await self.frontier.admit([self._found(page, None) for page in seeds])
        while len(self.order) < pages:
            leases = await self.frontier.lease("bench", capacity // 2, 600.0)
            outcomes = [self._answer(lease, place) for lease in leases for place in range(len(lease.tasks))]
            began = time.thread_time()
            await self.frontier.settle(outcomes)
            self.cpu += time.thread_time() - began
            self.clock.advance(1.0)
        await self.frontier.close()

    def _answer(self, lease: HostLease, place: int) -> Outcome:
        task = lease.tasks[place]
        sent = lease.not_before + place * lease.delay
        result: RobotsRead | Fetched = RobotsRead(status=404)
        if task.kind is not TaskKind.ROBOTS:
            page = self.graph.page(task.url)
            self.order.append(page)
            links = pack([self._found(to, task) for to in self.graph.links[page]])
            result = Fetched(
                status=200, content_type="text/html", size=9_000, digest=task.key * 2, link_batches=links
            )
        return Outcome(
            host=lease.host,
            token=lease.token,
            kind=task.kind,
            key=task.key,
            sent_at=sent,
            ended_at=sent,
            result=result,
        )

    def _found(self, page: int, parent: Task | None) -> Discovered:
        url = self.graph.url(page)
        return Discovered(
            url=url,
            key=key_of(url),
            host=Host(url.rpartition("/")[0]),
            depth=parent.depth + 1 if parent is not None else 0,
            via=Via.SEED if parent is None else Via.LINK,
            parent=parent.key if parent is not None else None,
        )


def mass(graph: WebGraph, order: Sequence[int]) -> float:
    return sum(graph.ranks[page] for page in order[: round(_FIRST * graph.pages)])


def judge(seed: int, hosts: int, capacity: int, farms: float) -> dict[str, float]:
    progress(f"seed {seed}: the graph and its ranks")
    graph = web_graph(seed, hosts, farms)
    by_rank = sorted(range(graph.pages), key=lambda page: -graph.ranks[page])
    # what operators begin with: sites of people, from the middle of the field
    homes = [
        page for page in by_rank if page in set(graph.first_page) and not graph.is_farm[graph.host_of[page]]
    ]
    seeds = homes[len(homes) // 3 : len(homes) // 3 + _SEEDS]
    found = {"pages": float(graph.pages), "breadth first": mass(graph, breadth_first(graph, seeds))}
    cpu: dict[bool, list[float]] = {False: [], True: []}
    for importance in (False, True, False, True):
        progress(f"seed {seed}: importance {importance}")
        with tempfile.TemporaryDirectory(prefix="skitter-importance-") as folder:
            crawl = Crawl(Path(folder), graph, importance=importance)
            asyncio.run(crawl.run(seeds, capacity, round(_FIRST * graph.pages) + 1))
        found["importance" if importance else "usual"] = mass(graph, crawl.order)
        cpu[importance].append(crawl.cpu / len(crawl.order) * 1e6)
    found["best"] = mass(graph, by_rank)
    found["cost"] = max(0.0, min(cpu[True]) - min(cpu[False]))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.importance", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs=2, type=int, default=(100, 103), metavar=("FROM", "TO"))
    parser.add_argument("--hosts", type=int, default=2_000)
    parser.add_argument("--farms", type=float, default=0.35, help="the share of hosts that are link farms")
    parser.add_argument("--capacity", type=int, default=40, help="pages a second")
    options = parser.parse_args(argv)
    found = [judge(seed, options.hosts, options.capacity, options.farms) for seed in range(*options.seeds)]
    names = ("breadth first", "usual", "importance", "best")
    rows: list[Sequence[object]] = [("seed", "pages", *names, "times", "cost, us a page")]
    for seed, one in zip(range(*options.seeds), found, strict=True):
        times = one["importance"] / one["breadth first"]
        shares = (f"{one[name]:.3f}" for name in names)
        rows.append((str(seed), round(one["pages"]), *shares, f"{times:.2f}", f"{one['cost']:.1f}"))
    print(table(rows))
    times = statistics.median(one["importance"] / one["breadth first"] for one in found)
    cost = statistics.median(one["cost"] for one in found)
    last_line({"times": times, "cost_us": cost, "cost_share": cost / A_PAGE})
    return int(times < TIMES or cost > MOST_COST * A_PAGE)


if __name__ == "__main__":
    sys.exit(main())
