"""Recent activity in bounded memory: rates, slow hosts, response times, failing hosts, live workers.

Beside the path of a URL: telemetry and the service's watch feed these, displays and scrapes read them. The caller
gives the time, no clock is read here. Nothing here raises, whatever the input.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple


class Rate:
    """Events a second over the last `WINDOW` seconds, in slots of a quarter of a second."""

    WINDOW = 10.0
    SLOTS_A_SECOND = 4

    def __init__(self, started: float) -> None:
        self._started = started
        self._slots: deque[list[int]] = deque(maxlen=int(self.WINDOW * self.SLOTS_A_SECOND))

    def add(self, now: float, amount: int = 1) -> None:
        slot = int(now * self.SLOTS_A_SECOND)
        if self._slots and slot <= self._slots[-1][0]:
            self._slots[-1][1] += amount
        else:
            self._slots.append([slot, amount])

    def at(self, now: float) -> float:
        oldest = int((now - self.WINDOW) * self.SLOTS_A_SECOND)
        counted = sum(count for slot, count in self._slots if slot > oldest)
        # Under a second of history would turn the first page into a rate of thousands.
        return counted / min(self.WINDOW, max(1.0, now - self._started))


class SlowHosts:
    """Smoothed response times of at most `KEPT` hosts: the slowest ones that answered lately."""

    KEPT = 512
    SHOWN = 5
    FORGOTTEN_AFTER = 300.0
    NEW_WEIGHT = 0.3

    def __init__(self) -> None:
        self._hosts: dict[str, tuple[float, float]] = {}

    def record(self, host: str, ms: float, now: float) -> None:
        known = self._hosts.get(host)
        if known is not None:
            ms = known[0] + self.NEW_WEIGHT * (ms - known[0])
        elif len(self._hosts) >= self.KEPT:
            self._hosts = dict(self._slowest(self.KEPT // 2, now))
        self._hosts[host] = (ms, now)

    def shown(self, now: float) -> list[tuple[str, float]]:
        return [(host, ms) for host, (ms, _) in self._slowest(self.SHOWN, now)]

    def _slowest(self, most: int, now: float) -> list[tuple[str, tuple[float, float]]]:
        fresh = (item for item in self._hosts.items() if now - item[1][1] < self.FORGOTTEN_AFTER)
        return heapq.nlargest(most, fresh, key=lambda item: item[1])


class LastFetch(NamedTuple):
    """One request that was settled. `key` names its URL, `failure` is empty when it was answered."""

    at: float
    key: bytes
    host: str
    is_robots: bool
    status: int
    size: int
    seconds: float
    failure: str
    detail: str


class LastFetches:
    """The latest requests, and the latest of them that failed."""

    KEPT = 50
    LONGEST_DETAIL = 200

    def __init__(self) -> None:
        self._kept: deque[LastFetch] = deque(maxlen=self.KEPT)
        self.failed: LastFetch | None = None

    def record(self, fetch: LastFetch) -> None:
        self._kept.append(fetch)
        if fetch.failure:
            self.failed = fetch._replace(detail=fetch.detail[: self.LONGEST_DETAIL])

    def newest(self, most: int) -> list[LastFetch]:
        return list(self._kept)[: -most - 1 : -1]


class Histogram:
    """Counts of amounts by upper bound. The last of `counts` is for amounts above all `bounds`."""

    MOST = 86_400.0

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, amount: float) -> None:
        # a remote worker reports its own times, and its clock may have been set in between
        amount = min(max(0.0, amount), self.MOST)
        self.counts[bisect_left(self.bounds, amount)] += 1
        self.sum += amount


class Trouble(NamedTuple):
    """Recent failures of one host by kind; time and text of the last one."""

    host: str
    kinds: dict[str, int]
    at: float
    detail: str


class Troubles:
    """Failures by host and kind, over the last one to two `WINDOW`s: two tables that rotate, each of `KEPT`
    hosts at most. A full table drops the half that failed least, so that a host that fails often stays, and a
    million hosts that fail once do not fill it."""

    WINDOW = 1800.0
    KEPT = 512
    LONGEST_DETAIL = 200

    def __init__(self) -> None:
        self._window_start = 0.0
        self._old: dict[str, Trouble] = {}
        self._new: dict[str, Trouble] = {}

    def record(self, host: str, kind: str, detail: str, now: float) -> None:
        self._rotate(now)
        known = self._new.get(host)
        if known is None and len(self._new) >= self.KEPT:
            self._new = {one.host: one for one in _worst(self._new.values(), self.KEPT // 2)}
        kinds = known.kinds if known is not None else {}
        kinds[kind] = kinds.get(kind, 0) + 1
        self._new[host] = Trouble(host, kinds, now, detail[: self.LONGEST_DETAIL])

    def worst(self, most: int, now: float) -> list[Trouble]:
        self._rotate(now)
        both = dict(self._old)
        for host, new in self._new.items():
            old = both.get(host)
            both[host] = new._replace(kinds=_summed(old.kinds, new.kinds)) if old is not None else new
        return [one._replace(kinds=dict(one.kinds)) for one in _worst(both.values(), most)]

    def since(self, now: float) -> float:
        """The time from which on failures are counted."""
        self._rotate(now)
        return self._window_start - self.WINDOW

    def _rotate(self, now: float) -> None:
        # also when the clock was set back: old entries must not stay for ever
        if not 0 <= now - self._window_start < self.WINDOW:
            lately = 0 <= now - self._window_start < 2 * self.WINDOW
            self._old, self._new = self._new if lately else {}, {}
            self._window_start = now - now % self.WINDOW


def _worst(troubles: Iterable[Trouble], most: int) -> list[Trouble]:
    return heapq.nlargest(most, troubles, key=lambda one: (sum(one.kinds.values()), one.at))


def _summed(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {kind: one.get(kind, 0) + other.get(kind, 0) for kind in {**one, **other}}


class Roster:
    """Workers by when they last asked for work; at most `KEPT`, because anybody may send a name."""

    LIVE = 60.0
    # a worker that was stopped on purpose does not say so: its silence must not alarm for long
    FORGOTTEN_AFTER = 900.0
    KEPT = 4096

    def __init__(self) -> None:
        # in the order in which they last asked: the first are dropped first
        self._heard: dict[str, float] = {}

    def record(self, worker: str, now: float) -> None:
        self._heard.pop(worker, None)
        self._heard[worker] = now
        if len(self._heard) > self.KEPT:
            del self._heard[next(iter(self._heard))]

    def heard(self, now: float) -> dict[str, float]:
        """When each asked last."""
        self._forget(now)
        return dict(self._heard)

    def live(self, now: float) -> int:
        self._forget(now)
        return sum(now - at < self.LIVE for at in self._heard.values())

    def longest_silence(self, now: float) -> float:
        """Seconds since the most silent worker asked for work; 0 when all asked in the last `LIVE` seconds."""
        self._forget(now)
        silence = max((now - at for at in self._heard.values()), default=0.0)
        return silence if silence >= self.LIVE else 0.0

    def _forget(self, now: float) -> None:
        gone = [worker for worker, at in self._heard.items() if now - at >= self.FORGOTTEN_AFTER]
        for worker in gone:
            del self._heard[worker]
