"""When hosts are done that are asked side by side, each at its own interval, with so many pages a second in all.

As long as all hosts together ask for more than that, each is served the slower; when some are done, the others
get their share. So time is the time that politeness alone would take, stretched where capacity is short. Pure
arithmetic, sorted once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

# A host without a delay is asked as soon as it has answered, and that takes a millisecond at least.
_LEAST = 0.001


class Queue(NamedTuple):
    """`hosts` of so many URLs each, asked every `interval` seconds, from `opens_in` on."""

    urls: float
    interval: float
    opens_in: float
    hosts: int

    @property
    def seconds(self) -> float:
        return self.opens_in + self.urls * max(self.interval, _LEAST)


class Finish(NamedTuple):
    """`seconds` in all, of which capacity was short for `short`; `urls` are served by then."""

    seconds: float
    short: float
    urls: float


def finish(queues: Sequence[Queue], capacity: float, most: float = float("inf")) -> Finish:
    """Until all is served, or `most` URLs are. `capacity` is in URLs a second. A host that opens later is taken
    for one that is asked more slowly from now on."""
    todo = sorted((queue for queue in queues if queue.urls > 0), key=lambda queue: queue.seconds)
    rates = [queue.hosts * queue.urls / queue.seconds for queue in todo]
    asked = sum(rates)
    polite = seconds = short = served = 0.0
    for queue, rate in zip(todo, rates, strict=True):
        step = max(0.0, queue.seconds - polite)
        stretch = max(1.0, asked / capacity)
        if served + step * asked >= most:
            step = (most - served) / asked
            return Finish(seconds + step * stretch, short + step * stretch * (stretch > 1), most)
        polite += step
        served += step * asked
        seconds += step * stretch
        short += step * stretch * (stretch > 1)
        asked = max(0.0, asked - rate)
    return Finish(seconds, short, served)
