"""How fresh is a crawl kept by the shipped rule, beside other rules and an oracle, at equal numbers of visits?

    python -m bench.freshness
    python -m bench.freshness --pages 20000 --seeds 1 --budgets 0.3 1

Pages that change (`_changing_pages.py`) are watched for two months and longer, in steps of an hour
or six. Every rule
(`_revisit_rules.py`) has the same number of visits; where it reads sitemaps, a sitemap costs one. Hosts are asked
no more often than their delays allow. Freshness is the share of the second half of that time in which our copy
was what the page says: by importance where the rule knows importance, plain where all pages count alike. A table,
one JSON object as the last line; exit code 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from bench._changing_pages import NO_SITEMAP, TRUTHFUL, Array, ChangingPages
from bench._report import last_line, progress, table
from bench._revisit_rules import HalveDouble, Nutch, Oracle, Rule, StormCrawler, Uniform, Value

BUDGETS = (0.02, 0.1, 0.3, 1.0, 2.0)
# A step in days; longer where there are few visits to follow.
STEP, LONG_STEP, FEW_VISITS = 1 / 24, 1 / 4, 0.1
# A budget of few visits needs a long time before it shows anything.
SHORTEST, LONGEST, VISITS_SHOWN = 60.0, 240.0, 6.0
# What sitemaps may cost of a host's visits, and how often one is read at most.
SITEMAP_SHARE, SITEMAP_GAP = 0.05, 1 / 24
WORST_BESIDE_HALVING, AT_BUDGETS, LEAST_BESIDE_ORACLE = 0.55, (0.3, 1.0), 0.97

RULES: dict[str, Callable[[ChangingPages, float], Rule]] = {
    "uniform": lambda world, budget: Uniform(world, 1 / budget),
    "halve/double": lambda world, budget: HalveDouble(world, 7.0),
    "Nutch adaptive": lambda world, budget: Nutch(world, 30.0),
    "StormCrawler adaptive": lambda world, budget: StormCrawler(world, 1.0),
    "value": lambda world, budget: Value(world, equal=False, reads_sitemaps=False),
    "value, lastmod": lambda world, budget: Value(world, equal=False, reads_sitemaps=True),
    "value, lastmod, equal weights": lambda world, budget: Value(world, equal=True, reads_sitemaps=True),
    "oracle": lambda world, budget: Oracle(world, equal=False, reads_sitemaps=False),
    "oracle, lastmod": lambda world, budget: Oracle(world, equal=False, reads_sitemaps=True),
    "oracle, lastmod, equal weights": lambda world, budget: Oracle(world, equal=True, reads_sitemaps=True),
}


class Run(msgspec.Struct, frozen=True, kw_only=True):
    rule: str
    budget: float
    seed: int
    weighted: float
    plain: float
    wasted: float
    visits: float


class Watch:
    """One rule watching one world."""

    def __init__(self, world: ChangingPages, rule: Rule, budget: float) -> None:
        self.world, self.rule, self.budget = world, rule, budget
        self.days = min(max(VISITS_SHOWN / budget, SHORTEST), LONGEST)
        self.step = LONG_STEP if budget <= FEW_VISITS else STEP
        self.all = np.arange(world.count)
        self.seen = -world.random.random(world.count) * min(1 / budget, 10.0)
        rule.start(self.seen)
        self.changes_at = np.empty(world.count)
        self.is_told = world.will_be_told(self.all)
        for page_group in np.array_split(self.all, 50):
            self.changes_at[page_group] = world.next_change(page_group, self.seen[page_group])
        self.due = rule.due(self.all)
        self.fresh = np.zeros(world.count)
        self.visits = self.wasted = 0
        self.credit = 0.0
        sizes = np.bincount(world.host, minlength=world.hosts)
        self.gaps = np.maximum(SITEMAP_GAP, 1 / (SITEMAP_SHARE * budget * np.maximum(sizes, 1)))
        self.next_reading = world.random.random(world.hosts) * self.gaps

    def run(self) -> None:
        for number in range(1, int(self.days / self.step) + 1):
            now = number * self.step
            self.credit += self.world.count * self.budget * self.step
            if self.rule.reads_sitemaps:
                self._read_sitemaps(now)
            if self.credit >= 1:
                self._visit(self._chosen(), now)
        self._count_fresh(self.all, self.days)
        self.fresh /= self.days / 2

    def _read_sitemaps(self, now: float) -> None:
        world = self.world
        hosts = np.flatnonzero((self.next_reading <= now) & (world.host_says != NO_SITEMAP))
        if not len(hosts):
            return
        self.next_reading[hosts] = now + self.gaps[hosts]
        self.credit -= len(hosts)
        self.visits += len(hosts)
        self.rule.listened(hosts, now)
        pages = self.all[np.isin(world.host, hosts)]
        is_news = self.is_told[pages] & (self.changes_at[pages] <= now)
        is_redated = world.wrongly_dated[pages] & (now - self.seen[pages] > 1)
        self.rule.told(pages[(world.says[pages] != TRUTHFUL) | is_news | is_redated], now)
        self.due[pages] = self.rule.due(pages)

    def _chosen(self) -> Array:
        """The pages that are due first, with today's price; of one host no more than its delay allows."""
        most = int(self.credit)
        looked_at = min(self.world.count, 2 * most + 100)
        pages = np.argpartition(self.due, looked_at - 1)[:looked_at]
        self.planned = self.due.copy()
        self.due[pages] = self.rule.due(pages)
        pages = pages[np.argsort(self.due[pages], kind="stable")]
        return pages[self._places(self.world.host[pages]) < self._most_of_host(pages)][:most]

    def _most_of_host(self, pages: Array) -> Array:
        return (self.step / self.world.delay)[self.world.host[pages]]

    def _places(self, hosts: Array) -> Array:
        """How many of the same host go before each."""
        order = np.argsort(hosts, kind="stable")
        starts = np.flatnonzero(np.diff(hosts[order], prepend=-1))
        counts = np.diff(np.append(starts, len(hosts)))
        places = np.empty(len(hosts), int)
        places[order] = np.arange(len(hosts)) - np.repeat(starts, counts)
        return places

    def _visit(self, pages: Array, now: float) -> None:
        self.rule.served(now, self.planned[pages], self.due[pages])
        changed = self.changes_at[pages] <= now
        self._count_fresh(pages, now)
        extra = self.rule.learn(pages, now, changed | self.world.noisy[pages], changed)
        self.credit -= len(pages) + extra
        self.visits += len(pages) + extra
        self.wasted += int(np.sum(~changed)) + extra
        self.seen[pages] = now
        self.changes_at[pages] = self.world.next_change(pages, np.full(len(pages), now))
        self.is_told[pages] = self.world.will_be_told(pages)
        self.due[pages] = self.rule.due(pages)

    def _count_fresh(self, pages: Array, now: float) -> None:
        since = np.maximum(self.seen[pages], self.days / 2)
        self.fresh[pages] += np.clip(np.minimum(self.changes_at[pages], now) - since, 0, None)


def run(name: str, pages: int, budget: float, seed: int) -> Run:
    world = ChangingPages(pages, seed)
    watch = Watch(world, RULES[name](world, budget), budget)
    watch.run()
    return Run(
        rule=name,
        budget=budget,
        seed=seed,
        weighted=float(np.average(watch.fresh, weights=world.weight)),
        plain=float(watch.fresh.mean()),
        wasted=watch.wasted / watch.visits,
        visits=watch.visits / pages / watch.days,
    )


def misses(runs: list[Run]) -> Iterator[str]:
    """Which targets were missed, in words."""
    for (budget, seed), by_rule in _grouped(runs).items():
        halving, uniform = by_rule["halve/double"], by_rule["uniform"]
        for words, ending, key in (("by importance", "", "weighted"), ("plain", ", equal weights", "plain")):
            fresh = getattr(by_rule[f"value, lastmod{ending}"], key)
            best = max(getattr(by_rule[name], key) for name in by_rule if name.startswith("oracle"))
            where = f"{words}, {budget} visits a page and day, seed {seed}"
            stale = (1 - fresh) / (1 - getattr(halving, key))
            if budget in AT_BUDGETS and stale > WORST_BESIDE_HALVING:
                yield f"staleness is {stale:.2f} of halve/double's ({where})"
            if fresh < LEAST_BESIDE_ORACLE * best:
                yield f"freshness is {fresh / best:.3f} of the oracle's ({where})"
            if fresh < getattr(uniform, key):
                yield f"freshness {fresh:.3f} is below uniform's {getattr(uniform, key):.3f} ({where})"


def _grouped(runs: list[Run]) -> dict[tuple[float, int], dict[str, Run]]:
    grouped: dict[tuple[float, int], dict[str, Run]] = {}
    for one in runs:
        grouped.setdefault((one.budget, one.seed), {})[one.rule] = one
    return grouped


def report(runs: list[Run], budgets: list[float]) -> str:
    """Means over the seeds: freshness by importance, plain, and the share of visits that found no change."""
    rows = [("rule", *(f"{budget:g}: by importance, plain, wasted" for budget in budgets))]
    for rule in RULES:
        cells = []
        for budget in budgets:
            same = [one for one in runs if one.rule == rule and one.budget == budget]
            means = [sum(getattr(one, name) for one in same) / len(same) for name in ("weighted", "plain")]
            wasted = sum(one.wasted for one in same) / len(same)
            cells.append(f"{means[0]:.3f}  {means[1]:.3f}  {wasted:.0%}")
        rows.append((rule, *cells))
    return table(rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.freshness", description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--budgets", type=float, nargs="+", default=list(BUDGETS))
    options = parser.parse_args()
    runs = []
    for seed in options.seeds:
        for budget in options.budgets:
            for name in RULES:
                runs.append(run(name, options.pages, budget, seed))
                progress(f"seed {seed}, {budget:g} a page and day, {name}: {runs[-1].weighted:.3f}")
    missed = list(misses(runs))
    print(report(runs, options.budgets))
    for words in missed:
        print(f"missed: {words}")
    last_line({"pages": options.pages, "runs": [msgspec.to_builtins(one) for one in runs], "missed": missed})
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
