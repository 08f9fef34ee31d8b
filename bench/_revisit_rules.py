"""Rules that say when to look at a page again, over arrays of pages: the shipped one, an oracle, and others'.

For `bench.freshness`. `Value` and `Oracle` call the formulas of `skitter.schedule` themselves; the others are
small and stand here as their projects describe them.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from bench._changing_pages import TOLD, TRUTHFUL, Array, ChangingPages
from skitter.schedule import signals
from skitter.schedule.change_rate import learn, prior_rate, rate_of, rate_of_all
from skitter.schedule.noise import is_noisy, needs_check
from skitter.schedule.price import FIRST_PRICE, lateness, moved_price
from skitter.schedule.visit_value import solve_expected_changes

_HOUR = 1 / 24
_SUREST = signals.bounded_evidence(-1e9), signals.bounded_evidence(1e9)


class Rule(Protocol):
    """`due` says when each of these pages is to be visited; `learn` is told what a visit saw."""

    reads_sitemaps: bool

    def start(self, seen: Array) -> None:
        """Every page has been fetched, then."""
        ...

    def due(self, pages: Array) -> Array: ...

    def learn(self, pages: Array, now: float, bytes_changed: Array, changed: Array) -> int:
        """How many extra visits it needed for that."""
        ...

    def told(self, pages: Array, now: float) -> None: ...

    def listened(self, hosts: Array, now: float) -> None: ...

    def served(self, now: float, planned: Array, today: Array) -> None: ...


class Interval:
    """Rules with an interval for each page, which a visit changes."""

    reads_sitemaps = False

    def __init__(self, world: ChangingPages, first: float) -> None:
        self.interval = np.full(world.count, first)
        self.last = np.zeros(world.count)

    def start(self, seen: Array) -> None:
        self.last = seen.copy()

    def due(self, pages: Array) -> Array:
        return self.last[pages] + self.interval[pages]

    def learn(self, pages: Array, now: float, bytes_changed: Array, changed: Array) -> int:
        self.last[pages] = now
        self.interval[pages] = self.next_interval(self.interval[pages], bytes_changed)
        return 0

    def next_interval(self, interval: Array, changed: Array) -> Array:
        return interval

    def told(self, pages: Array, now: float) -> None: ...

    def listened(self, hosts: Array, now: float) -> None: ...

    def served(self, now: float, planned: Array, today: Array) -> None: ...


class Uniform(Interval):
    """Every page equally often."""


class HalveDouble(Interval):
    def next_interval(self, interval: Array, changed: Array) -> Array:
        return np.clip(np.where(changed, interval / 2, interval * 2), _HOUR, 30.0)


class StormCrawler(Interval):
    """Its adaptive scheduler: half as much again or half, between an hour and a year."""

    def next_interval(self, interval: Array, changed: Array) -> Array:
        return np.clip(np.where(changed, interval * 0.5, interval * 1.5), _HOUR, 365.0)


class Nutch(Interval):
    """Its adaptive schedule: 0.4 more or 0.2 less, moved towards the time of the last change."""

    def __init__(self, world: ChangingPages, first: float) -> None:
        super().__init__(world, first)
        self.modified = np.zeros(world.count)
        self.base = np.zeros(world.count)

    def start(self, seen: Array) -> None:
        self.base = seen.copy()
        self.modified = seen.copy()

    def due(self, pages: Array) -> Array:
        return self.base[pages] + self.interval[pages]

    def learn(self, pages: Array, now: float, bytes_changed: Array, changed: Array) -> int:
        interval = self.interval[pages] * np.where(bytes_changed, 0.8, 1.4)
        self.modified[pages] = np.where(bytes_changed, now, self.modified[pages])
        since = now - self.modified[pages]
        interval = np.clip(np.maximum(interval, since), 60 / 86_400, 365.0)
        self.interval[pages] = interval
        self.base[pages] = now - 0.3 * since
        return 0


class Value:
    """The shipped rule. With `reads_sitemaps`, what hosts say is believed as far as it was right."""

    def __init__(self, world: ChangingPages, *, equal: bool, reads_sitemaps: bool) -> None:
        self.world, self.reads_sitemaps = world, reads_sitemaps
        self.weight = np.ones(world.count) if equal else world.weight
        self.price = FIRST_PRICE
        self.last: Array = np.zeros(world.count)
        self.changes: Array = np.zeros(world.count)
        self.days: Array = np.zeros(world.count)
        patterns = int(world.pattern.max()) + 1
        self.by_pattern: Array = np.zeros((2, patterns))
        self.by_host: Array = np.zeros((2, world.hosts))
        self.by_all: Array = np.zeros(2)
        self.checked: Array = np.zeros(patterns)
        self.noisy: Array = np.zeros(patterns)
        self.told_at = np.full(world.count, np.nan)
        self.heard = np.full(world.hosts, -np.inf)
        self.trust: Array = np.zeros((6, world.hosts))
        self.trust[-1] = signals.Trust().evidence

    def start(self, seen: Array) -> None:
        self.last = seen.copy()

    def rate(self, pages: Array) -> Array:
        everywhere = rate_of_all(self.by_all[0], self.by_all[1])
        host, pattern = self.world.host[pages], self.world.pattern[pages]
        by_host = prior_rate(self.by_host[0, host], self.by_host[1, host], everywhere)
        prior = prior_rate(self.by_pattern[0, pattern], self.by_pattern[1, pattern], by_host)
        return rate_of(self.changes[pages], self.days[pages], prior)

    def odds(self, pages: Array) -> tuple[Array, Array]:
        host = self.world.host[pages]
        trust, share = self.trust[:, host], signals.heed(self.trust[-1, host])
        told, silent = signals.odds_when_told(*trust[:3]), signals.odds_when_silent(*trust[3:5])
        return (
            signals.heeded(np.clip(told, 1.0, 500.0), share),
            signals.heeded(np.clip(silent, 0.02, 1.0), share),
        )

    def due(self, pages: Array) -> Array:
        rate: Array = self.rate(pages)
        last: Array = self.last[pages]
        target = solve_expected_changes(self.price * rate / self.weight[pages])
        if not self.reads_sitemaps:
            return last + target / rate
        # the vectorised form of `signals.days_until_due`
        told, silent = self.odds(pages)
        told_at = self.told_at[pages]
        sooner = last + signals.days_when_told(target, rate, told, np.log)
        sooner = np.maximum(sooner, np.minimum(told_at, last + target / rate))
        listened = np.clip(self.heard[self.world.host[pages]] - last, 0, None)
        later = last + signals.days_when_silent(target, rate, silent, listened, np.log)
        return np.where(np.isnan(told_at), later, sooner)

    def learn(self, pages: Array, now: float, bytes_changed: Array, changed: Array) -> int:
        pattern, host = self.world.pattern[pages], self.world.host[pages]
        extra = self._check_noise(pages, bytes_changed)
        by_text: Array = is_noisy(self.checked[pattern], self.noisy[pattern])
        seen: Array = np.asarray(np.where(by_text, changed, bytes_changed), float)
        rate: Array = self.rate(pages)
        days: Array = now - self.last[pages]
        if self.reads_sitemaps:
            listened: Array = np.clip(self.heard[host] - self.last[pages], 0, days)
            told: Array = (~np.isnan(self.told_at[pages])).astype(float)
            for place, value in enumerate(signals.lesson(told, seen, rate, days, listened, np.log)):
                np.add.at(self.trust[place], host, value)
            np.clip(self.trust[-1], *_SUREST, out=self.trust[-1])
        shown = learn(self.changes[pages], self.days[pages], rate, days, seen)
        # as half floats, as they are stored
        self.changes[pages], self.days[pages] = np.float16(shown[0]), np.float16(shown[1])
        counted: Array = shown[2]
        for group, where in ((self.by_pattern, pattern), (self.by_host, host)):
            np.add.at(group[0], where, counted)
            np.add.at(group[1], where, days)
        self.by_all += counted.sum(), days.sum()
        self.last[pages] = now
        self.told_at[pages] = np.nan
        return extra

    def _check_noise(self, pages: Array, bytes_changed: Array) -> int:
        """The first times that bytes of a pattern differ, the page is asked once more."""
        differing = pages[bytes_changed]
        pattern, first = np.unique(self.world.pattern[differing], return_index=True)
        asked: Array = needs_check(self.checked[pattern])
        self.checked[pattern[asked]] += 1
        self.noisy[pattern[asked]] += self.world.noisy[differing[first[asked]]]
        return int(np.sum(asked))

    def told(self, pages: Array, now: float) -> None:
        news = pages[np.isnan(self.told_at[pages])]
        self.told_at[news] = now

    def listened(self, hosts: Array, now: float) -> None:
        self.heard[hosts] = now

    def served(self, now: float, planned: Array, today: Array) -> None:
        for before, again in zip(planned.tolist(), today.tolist(), strict=True):
            self.price = moved_price(self.price, lateness(now, before, again), self.world.count)


class Oracle(Value):
    """The same worth and price, with the true rates; it knows which hosts tell the truth, and of which pages."""

    def rate(self, pages: Array) -> Array:
        return np.maximum(self.world.rate[pages], 1e-4)

    def odds(self, pages: Array) -> tuple[Array, Array]:
        honest = self.world.says[pages] == TRUTHFUL
        believed = honest & ~self.world.wrongly_dated[pages]
        return np.where(believed, 500.0, 1.0), np.where(honest, 1 - TOLD, 1.0)
