"""Durations as people write them: `90s`, `10m`, `1h`, `7d`, or a number of seconds."""

from __future__ import annotations

import re

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smhdw]?)")


def seconds_of(text: str) -> float | None:
    """None when it is no duration, or none above 0."""
    found = _DURATION.fullmatch(text)
    return (float(found[1]) * _UNITS[found[2]] or None) if found else None
