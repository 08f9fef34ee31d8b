"""For how long a page says that it stays as it is: `Cache-Control: max-age`, or `Expires` (RFC 9111 4.2.1).

Read where a crawl is kept fresh. Whether it is believed is learnt per host (`schedule/signals.py`). Pure; never
raises.
"""

from __future__ import annotations

import re

from skitter.parse.dates import parse_http_date

_MAX_AGE = re.compile(r"(?:^|,)\s*max-age\s*=\s*\"?(\d{1,9})", re.IGNORECASE)
_NO_PROMISE = re.compile(r"(?:^|,)\s*no-(?:cache|store)\b", re.IGNORECASE)
# The standard's own advice: nothing is promised for longer than a year.
_LONGEST = 365 * 86_400.0


def promised_seconds(cache_control: str, expires: str, now: float) -> float:
    """From `now` on; 0 where nothing is promised."""
    if cache_control:
        if _NO_PROMISE.search(cache_control):
            return 0.0
        if (found := _MAX_AGE.search(cache_control)) is not None:
            return min(float(found[1]), _LONGEST)
    at = parse_http_date(expires) if expires else None
    return 0.0 if at is None else min(max(0.0, at - now), _LONGEST)
