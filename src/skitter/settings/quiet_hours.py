"""Quiet hours and time zones as an operator writes them. What they mean for a host: `schedule/quiet_hours.py`."""

from __future__ import annotations

import re
from datetime import UTC, tzinfo
from functools import lru_cache
from typing import NamedTuple

DAY = 24 * 60
_SPAN = re.compile(r"\s*([01]?\d|2[0-4]):([0-5]\d)\s*-\s*([01]?\d|2[0-4]):([0-5]\d)\s*")


class Span(NamedTuple):
    """From a minute of the day up to another, over midnight if that is earlier."""

    start: int
    end: int

    def has(self, minute: int) -> bool:
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end


@lru_cache(maxsize=1024)
def read_spans(text: str) -> tuple[Span, ...] | None:
    """`22:00-06:00, 12:00-13:00`; None when it is nothing of the kind, or leaves no minute of the day."""
    spans = []
    for part in text.split(","):
        found = _SPAN.fullmatch(part)
        if found is None:
            return None
        hours, minutes, end_hours, end_minutes = map(int, found.groups())
        start, end = 60 * hours + minutes, 60 * end_hours + end_minutes
        if max(start, end) > DAY or start % DAY == end % DAY:
            return None
        spans.append(Span(start % DAY, end % DAY))
    if all(any(span.has(minute) for span in spans) for minute in range(DAY)):
        return None
    return tuple(spans)


@lru_cache(maxsize=1024)
def zone_of(name: str) -> tzinfo | None:
    """By its name in the IANA database, such as Europe/Berlin; UTC where none is given, None if it is unknown."""
    if not name:
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # most crawls name none

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
