"""What a crawl still has to do, host by host, in bounded memory: what a estimate is made of.

Whoever walks over the hosts adds each; those that take longest are kept by name, the others are put together
with those that are like them. Values and sums only.
"""

from __future__ import annotations

import heapq
from math import log

import msgspec

from skitter.plan.growth import FEWEST_ANSWERS, Band, urls_left

NAMED = 200
# Hosts are put together whose time and interval differ by less than a tenth.
_STEP = log(1.1)


class HostWork(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a host. `interval` is how often politeness lets it be asked, `gap` how often it was (s; 0:
    unknown), `opens_in` how long it is not to be asked at all. `answers` brought so many new URLs of it in all,
    `recent` is the mean of what the later ones brought; `most` is how many URLs its budget has room for."""

    host: str
    queued: int
    interval: float
    gap: float = 0.0
    opens_in: float = 0.0
    answers: int = 0
    brought: int = 0
    recent: float = 0.0
    bytes: int = 0
    most: float = float("inf")
    why: str = ""


class HostLeft(msgspec.Struct, frozen=True, kw_only=True):
    """What one host, or each of `count` hosts, has left: URLs, bytes, and seconds as politeness has it."""

    host: str
    count: int
    urls: Band
    bytes: float
    interval: float
    gap: float
    opens_in: float
    why: str

    @property
    def seconds(self) -> float:
        return self.opens_in + self.urls.likely * self.interval


class _Group:
    """Hosts that are alike, summed up."""

    def __init__(self) -> None:
        self.count = 0
        self.low = self.likely = self.high = self.bytes = self.interval = self.gap = self.opens_in = 0.0

    def add(self, left: HostLeft) -> None:
        self.count += 1
        self.low += left.urls.low
        self.likely += left.urls.likely
        self.high += left.urls.high
        self.bytes += left.bytes
        self.interval += left.interval
        self.gap += left.gap
        self.opens_in += left.opens_in

    def mean(self) -> HostLeft:
        n = self.count
        return HostLeft(
            host="",
            count=n,
            urls=Band(self.low / n, self.likely / n, self.high / n),
            bytes=self.bytes / n,
            interval=self.interval / n,
            gap=self.gap / n,
            opens_in=self.opens_in / n,
            why="",
        )


class _Begun:
    """Hosts of which a few answers are known, together: single ones say nothing of a trend, many of them do."""

    def __init__(self) -> None:
        self.count = 0
        self.queued = self.answers = self.brought = self.recent = 0.0

    def add(self, work: HostWork) -> None:
        if work.answers:
            self.count += 1
            self.queued += work.queued
            self.answers += work.answers
            self.brought += work.brought
            self.recent += work.recent

    def more(self) -> Band:
        """How many URLs each of them has left beside those that are queued. The same for all: one with a long
        queue is as likely to be known whole as to be large."""
        if not self.count:
            return Band(0.0, 0.0, 1.0)
        n = self.count
        queued = self.queued / n
        left = urls_left(queued, self.answers / n, self.brought / n, self.recent / n, float("inf"))
        return left.plus(Band(-queued, -queued, -queued))

    def size(self) -> float:
        return (self.answers + self.queued) / self.count + self.more().likely if self.count else 1.0


class Workload:
    """States: hosts are added, then `result` is asked for once. Hosts of which too little is known are judged at
    the end, by what the others turned out to be."""

    def __init__(self, named: int = NAMED) -> None:
        self._named = named
        self._longest: list[tuple[float, int, HostLeft]] = []
        self._groups: dict[tuple[int, int, int], _Group] = {}
        self._unknown: dict[tuple[int, int, int], tuple[HostWork, int]] = {}
        self._number = 0
        self._explored = 0
        self._begun = _Begun()
        self._sizes = self._bytes = self._answers = 0.0

    def add(self, work: HostWork) -> None:
        self._bytes += work.bytes
        self._answers += work.answers
        if work.answers < FEWEST_ANSWERS and work.queued:
            # a host of which three pages are known and none waits is finished; this one is not
            key = (_step(work.interval), _step(work.opens_in), work.answers * 1000 + min(work.queued, 999))
            self._begun.add(work)
            first, count = self._unknown.get(key, (work, 0))
            self._unknown[key] = first, count + 1
            return
        left = urls_left(work.queued, work.answers, work.brought, work.recent, work.most)
        if work.answers:
            self._explored += 1
            self._sizes += work.answers + left.likely
        if work.queued:
            self._keep(_left_of(work, left, 1))

    def _keep(self, left: HostLeft) -> None:
        self._number += 1
        entry = (left.seconds, self._number, left)
        if left.count == 1 and len(self._longest) < self._named:
            heapq.heappush(self._longest, entry)
            return
        if left.count == 1 and entry > self._longest[0]:
            left = heapq.heapreplace(self._longest, entry)[2]
        key = (_step(left.seconds), _step(left.interval), _step(left.gap))
        self._groups.setdefault(key, _Group()).add(left)

    def result(self) -> list[HostLeft]:
        """Those that take longest by name, and the rest in groups."""
        more = self._begun.more()
        size = self._sizes / self._explored if self._explored else self._begun.size()
        mean_bytes = self._bytes / self._answers if self._answers else 0.0
        guessed = [_guessed(work, count, more, size, mean_bytes) for work, count in self._unknown.values()]
        named = [left for _, _, left in self._longest]
        found = [*named, *guessed, *(group.mean() for group in self._groups.values())]
        return sorted(found, key=lambda left: -left.seconds)


def _left_of(work: HostWork, urls: Band, count: int) -> HostLeft:
    each = work.bytes / work.answers if work.answers else 0.0
    return HostLeft(
        host=work.host if count == 1 else "",
        count=count,
        urls=urls,
        bytes=each * urls.likely,
        interval=work.interval,
        gap=work.gap,
        opens_in=work.opens_in,
        why=work.why,
    )


def _guessed(work: HostWork, count: int, more: Band, size: float, mean_bytes: float) -> HostLeft:
    """Hosts of which little was seen: those that have begun go on as they do together, the others are as large as
    the others are on average."""
    urls = more.plus(Band(work.queued, work.queued, work.queued))
    if not work.answers:
        urls = Band(work.queued, max(float(work.queued), size), max(2 * size, 2.0 * work.queued))
    urls = urls.at_most(work.most)
    left = _left_of(work, urls, count)
    each = work.bytes / work.answers if work.answers >= 2 else mean_bytes
    return msgspec.structs.replace(left, bytes=each * urls.likely)


def _step(value: float) -> int:
    return round(log(value) / _STEP) if value > 1e-9 else -1_000_000
