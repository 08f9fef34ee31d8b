"""A web that changes, as arrays: when each page changes next, what its bytes do, and what its host says of it.

For `bench.freshness`. Rates are heavy-tailed and alike within a pattern; some patterns never change, change by
the clock, in bursts, or in their bytes alone. Half of the hosts have a sitemap; one in five of those lies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
"""A numpy array. The formulas of `skitter.schedule` are typed for floats, and take these as well."""
STEADY, PERIODIC, BURSTS, NEVER = range(4)
NO_SITEMAP, TRUTHFUL, LIAR = range(3)
# Of patterns: the share of each kind, in the order above; and of those whose bytes differ at each visit.
_KINDS, _NOISY = (0.55, 0.10, 0.10, 0.25), 0.10
_MEDIAN_RATE, _SPREAD, _SPREAD_WITHIN, _HIGHEST_RATE = 1 / 15, 1.6, 0.8, 48.0
# Bursts: ten days of which the first is busy, with nine of ten changes in it.
_BURST_CYCLE, _BURST_LENGTH, _BURST_SHARE = 10.0, 1.0, 0.9
TOLD, _FALSELY_TOLD = 0.9, 0.05
_PAGES_A_HOST, _PATTERNS_A_HOST = 100, 4


class ChangingPages:
    """The truth about `count` pages. Days are the unit of time."""

    def __init__(self, count: int, seed: int) -> None:
        self.random = random = np.random.default_rng(seed)
        self.count, hosts = count, max(1, count // _PAGES_A_HOST)
        sizes = 1 / np.arange(1, hosts + 1) ** 0.8
        self.host = np.sort(random.choice(hosts, count, p=sizes / sizes.sum()))
        self.hosts = hosts
        self.pattern = self.host * _PATTERNS_A_HOST + random.integers(0, _PATTERNS_A_HOST, count)
        patterns = hosts * _PATTERNS_A_HOST
        kinds = random.choice(4, patterns, p=_KINDS)
        rates = _MEDIAN_RATE * np.exp(_SPREAD * random.standard_normal(patterns))
        self.kind = kinds[self.pattern]
        self.noisy = (random.random(patterns) < _NOISY)[self.pattern]
        self.rate = rates[self.pattern] * np.exp(_SPREAD_WITHIN * random.standard_normal(count))
        self.rate = np.minimum(self.rate, _HIGHEST_RATE)
        self.period = np.where((np.arange(patterns) % 3 == 0)[self.pattern], 7.0, 1.0)
        self.rate = np.where(self.kind == PERIODIC, 1 / self.period, self.rate)
        self.rate = np.where(self.kind == NEVER, 0.0, self.rate)
        self.phase = random.random(count) * np.where(self.kind == PERIODIC, self.period, _BURST_CYCLE)
        # important pages change somewhat more often, as front pages do
        order = np.argsort(-(np.log(self.rate + 0.01) * 0.3 + random.standard_normal(count)))
        self.weight = np.empty(count)
        self.weight[order] = 1 / np.arange(1, count + 1) ** 0.7
        self.weight /= self.weight.mean()
        says = random.choice(3, hosts, p=(0.5, 0.4, 0.1))
        self.host_says = says
        self.says = says[self.host]
        self.wrongly_dated = random.random(count) < _FALSELY_TOLD
        self.delay = random.choice((1.0, 2.0, 5.0, 10.0), hosts, p=(0.7, 0.15, 0.1, 0.05)) / 86_400

    def next_change(self, pages: Array, now: Array) -> Array:
        """When each of these pages changes next after `now`; infinity for those that never do."""
        kind, rate = self.kind[pages], self.rate[pages]
        wait = self.random.standard_exponential(len(pages))
        with np.errstate(divide="ignore"):
            steady = now + wait / rate
        period, phase = self.period[pages], self.phase[pages]
        periodic = phase + (np.floor((now - phase) / period) + 1) * period
        bursts = self._next_in_bursts(rate, phase, now, wait)
        return np.choose(kind, [steady, periodic, bursts, np.full(len(pages), np.inf)])

    def _next_in_bursts(self, rate: Array, phase: Array, now: Array, wait: Array) -> Array:
        """By the inverse of the expected number of changes, which is made of straight lines."""
        cycle, length = _BURST_CYCLE, _BURST_LENGTH
        whole = np.maximum(rate, 1e-12) * cycle
        busy, idle = _BURST_SHARE * whole / length, (1 - _BURST_SHARE) * whole / (cycle - length)
        at = now - phase
        turn = np.floor(at / cycle)
        inside = at - turn * cycle
        so_far = np.minimum(inside, length) * busy + np.maximum(inside - length, 0) * idle
        target = turn * whole + so_far + wait
        turn = np.floor(target / whole)
        rest = target - turn * whole
        in_burst = length * busy
        inside = np.where(rest < in_burst, rest / busy, length + (rest - in_burst) / idle)
        return phase + turn * cycle + inside

    def will_be_told(self, pages: Array) -> Array:
        """Whether the next change of each page will be in its host's sitemap."""
        return self.random.random(len(pages)) < TOLD
