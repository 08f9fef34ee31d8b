"""What a status means, with the headers that belong to it: the one place for these rules. Pure.

Used by our own workers (`results.py`) and for the reports of foreign ones (`service/foreign_reports.py`), so both
are settled alike. Every answer of the web means something: its faults are a `Failed` with a kind.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import Protocol

import msgspec

from skitter.model import (
    Discovered,
    Failed,
    FailureKind,
    NotModified,
    Redirected,
    Result,
    TaskKind,
    UrlKey,
    Via,
)
from skitter.urls.canonical import host_of, normalise
from skitter.urls.keys import Keys, form_key

_REDIRECTS = (301, 302, 303, 307, 308)
_KEEPS_METHOD = (307, 308)
_PAGE = TaskKind.PAGE
_THROTTLED = (429, 503)
_LONGEST_RETRY_AFTER = 7 * 86_400
_LONGEST_DETAIL = 200


class Asked(Protocol):
    """The task, as far as the rules look at it."""

    @property
    def url(self) -> str: ...
    @property
    def key(self) -> UrlKey: ...
    @property
    def depth(self) -> int: ...
    @property
    def hops(self) -> int: ...
    @property
    def kind(self) -> TaskKind: ...
    @property
    def nesting(self) -> int: ...
    @property
    def form(self) -> str: ...


class StatusLine(msgspec.Struct, frozen=True, kw_only=True):
    """The answer, as far as the rules look at it. `location` is the header as text, `retry_after` in seconds.
    `is_conditional`: the request carried validators, so that 304 is an answer to it."""

    status: int
    size: int = 0
    location: str = ""
    retry_after: float | None = None
    is_conditional: bool = False


def result_by_status(asked: Asked, line: StatusLine, keys: Keys) -> Result | None:
    """The result that the status alone decides; None where the body does."""
    status = line.status
    if status in _REDIRECTS:
        return _redirected(asked, line, keys)
    if status in _THROTTLED:
        return _failed(FailureKind.THROTTLED, f"status {status}", line, retry_after=line.retry_after)
    if status >= 500:
        return _failed(FailureKind.SERVER_ERROR, f"status {status}", line)
    if status != 304:
        return None
    if line.is_conditional:
        return NotModified()
    # It would pass for a page that was seen before, and never was.
    return Failed(kind=FailureKind.PROTOCOL, detail="304, unasked", status=status)


def robots_refusal(status: int) -> Failed | None:
    """RFC 9309 2.3.1: 2xx has rules, 4xx says that there are none; any other status is no permission."""
    if 200 <= status < 300 or 400 <= status < 500:
        return None
    return Failed(kind=FailureKind.PROTOCOL, detail=f"robots.txt answered {status}", status=status)


def retry_after(value: str, now: float) -> float | None:
    """Seconds to wait by a Retry-After header in either form (RFC 9110 10.2.3); None when it says nothing."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(min(int(value[:9]), _LONGEST_RETRY_AFTER))
    try:
        at = parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(0.0, at - now), _LONGEST_RETRY_AFTER)


def _failed(kind: FailureKind, detail: str, line: StatusLine, retry_after: float | None = None) -> Failed:
    return Failed(kind=kind, detail=detail, status=line.status, retry_after=retry_after, size=line.size)


def _redirected(asked: Asked, line: StatusLine, keys: Keys) -> Result:
    target = normalise(line.location, asked.url) if line.location else None
    if target is None:
        return _failed(FailureKind.BAD_REDIRECT, line.location[:_LONGEST_DETAIL] or "no Location", line)
    key, kind, form = keys.key_of(target), asked.kind, ""
    if asked.form:
        # as browsers do: only these two post once more (RFC 9110 15.4.8, 15.4.9)
        is_posted = line.status in _KEEPS_METHOD
        key, kind, form = (form_key(key, asked.form), kind, asked.form) if is_posted else (key, _PAGE, "")
    found = Discovered(
        url=target,
        key=key,
        host=host_of(target),
        depth=asked.depth,
        via=Via.REDIRECT,
        parent=asked.key,
        hops=asked.hops + 1,
        kind=kind,
        nesting=asked.nesting,
        form=form,
    )
    return Redirected(status=line.status, location=target, target=found, size=line.size)
