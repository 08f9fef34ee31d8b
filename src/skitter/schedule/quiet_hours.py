"""Hours in which a host is left alone, and days over which its load is counted, by the clock of a time zone.

Pure arithmetic, asked by the frontier before a host is leased. Where a zone's clock is put forward or back it
errs on the quiet side: a host opens late rather than early.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import datetime, tzinfo

from skitter.settings.quiet_hours import DAY, Span

_MINUTE = 60.0
# No host is quiet all day: so many jumps reach the end of any hours.
_MOST_JUMPS = 200
# Minutes by which a clock is put forward or back at most: on such a day quiet hours begin early, or once more.
_LARGEST_SHIFT = 120


def _local(at: float, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(at, zone)


def is_quiet(spans: Sequence[Span], zone: tzinfo, at: float) -> bool:
    there = _local(at, zone)
    minute = 60 * there.hour + there.minute
    return any(span.has(minute) for span in spans)


def quiet_until(spans: Sequence[Span], zone: tzinfo, at: float) -> float:
    """When the quiet hours end in which `at` lies; `at` itself outside of them."""
    for _ in range(_MOST_JUMPS):
        there = _local(at, zone)
        minute = 60 * there.hour + there.minute
        span = next((span for span in spans if span.has(minute)), None)
        if span is None:
            return at
        at = _start_of_minute(at, there) + _MINUTE * ((span.end - minute) % DAY)
    return at


def quiet_from(spans: Sequence[Span], zone: tzinfo, at: float) -> float:
    """When quiet hours begin next, of a host that is open at `at`."""
    there = _local(at, zone)
    now = 60 * there.hour + there.minute
    ahead = min((span.start - now) % DAY for span in spans)
    minutes = itertools.chain(
        range(1, _LARGEST_SHIFT), itertools.count(max(_LARGEST_SHIFT, ahead - _LARGEST_SHIFT))
    )
    starts = (_start_of_minute(at, there) + _MINUTE * minute for minute in minutes)
    return next(start for start in starts if is_quiet(spans, zone, start))


def day_of(zone: tzinfo, at: float) -> int:
    """The number of the day there."""
    return _local(at, zone).toordinal()


def next_day(zone: tzinfo, at: float) -> float:
    """When the next day begins there."""
    today, later = day_of(zone, at), at
    while day_of(zone, later) == today:
        there = _local(later, zone)
        later = _start_of_minute(later, there) + _MINUTE * (DAY - 60 * there.hour - there.minute)
    return later


def _start_of_minute(at: float, there: datetime) -> float:
    # in whole seconds: a hair before the full hour would be the minute before it
    return float(int(at) - there.second)
