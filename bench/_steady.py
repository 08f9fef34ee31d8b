"""What a crawl's rate was by the web's own log: when it became steady, and how that compares with what politeness
allows. Never asks the crawler."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import fmean

import msgspec

from skitter.testing.audit import is_robots
from skitter.testing.request_log import Request

# A start is over in the first of so many seconds in a row with nine tenths of the later rate.
_IN_A_ROW = 3
_NEARLY = 0.9


class Steady(msgspec.Struct, frozen=True):
    """Pages a second in the second half of a crawl; `reached` are the seconds from its start to that rate."""

    rate: float
    reached: float
    pages: int


def steady(requests: Sequence[Request], began: float, ended: float) -> Steady:
    """`began` is when the crawler's process was started, `ended` when it was told to stop."""
    starts = [row.start for row in requests if not is_robots(row.path) and row.start < ended]
    half = (began + ended) / 2
    rate = sum(start >= half for start in starts) / (ended - half)
    seconds = Counter(int(start - began) for start in starts)
    enough = [seconds[number] >= _NEARLY * rate for number in range(int(ended - began))]
    runs = (n for n in range(len(enough)) if all(enough[n : n + _IN_A_ROW]))
    return Steady(rate, float(next(runs, len(enough))), len(starts))


def allowed(requests: Sequence[Request], hosts: int, delay: float, slow_factor: float) -> float:
    """Pages a second: each host one every `delay`, or every `slow_factor` response times where that is longer;
    and a request never starts before the last one has ended."""
    times: dict[str, list[float]] = defaultdict(list)
    for row in requests:
        if row.end is not None and not row.aborted:
            times[row.host].append(row.end - row.start)
    slowest = max(1.0, slow_factor)
    found = [1.0 / max(delay, slowest * fmean(taken)) for taken in times.values()]
    return sum(found) * hosts / max(1, len(found))
