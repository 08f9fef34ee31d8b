"""Dates of sitemaps, feeds and headers: W3C forms with and without a zone, and those of mail (RSS, HTTP). Pure.

Asked for every entry of a file, so the usual forms are read by the standard library's C code and the last answers
are kept. Never raises: what is no date is None. Whether a date lies in the future is up to who knows the time.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache

_LONGEST = 60
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
# https://www.w3.org/TR/NOTE-datetime, with what people make of it: a blank for the T, a zone without colon.
_W3C = re.compile(
    r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)"
    r"(?:[T ]+(\d\d?):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?)?)?)?",
    re.IGNORECASE | re.ASCII,
)


@lru_cache(maxsize=4096)
def parse_w3c(text: str) -> float | None:
    """Seconds since the epoch; a date without a zone is read as UTC."""
    if len(text) > _LONGEST:
        return None
    try:
        found = datetime.fromisoformat(text) if len(text) >= 10 else None
    except ValueError:
        found = None
    try:
        return _seconds(found if found is not None else _by_pattern(text))
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=1024)
def parse_date(text: str) -> float | None:
    """Of a feed: as mail writes it, or in a W3C form."""
    if len(text) > _LONGEST:
        return None
    try:
        found = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError, IndexError):
        return parse_w3c(text)
    # RFC 5322 3.3: a zone belongs to it; -0000 means UTC
    return _seconds(found) if found.tzinfo or text.endswith("-0000") else None


def parse_http_date(text: str) -> float | None:
    """Of a header such as Last-Modified (RFC 9110 5.6.7). The usual form costs a microsecond."""
    if len(text) == 29 and text.endswith(" GMT"):
        try:
            year, month, day = int(text[12:16]), _MONTHS.index(text[8:11]) + 1, int(text[5:7])
            hour, minute, second = int(text[17:19]), int(text[20:22]), int(text[23:25])
            return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
        except (ValueError, OverflowError):
            return None
    return parse_date(text)


def _by_pattern(text: str) -> datetime:
    match = _W3C.fullmatch(text)
    if match is None:
        raise ValueError(text)
    year, month, day, hour, minute, second, zone = match.groups()
    date = f"{year}-{int(month or 1):02}-{int(day or 1):02}"
    time = f"{int(hour or 0):02}:{minute or '00'}:{second or '00'}"
    return datetime.fromisoformat(f"{date}T{time}{(zone or 'Z').upper()}")


def _seconds(found: datetime) -> float:
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
