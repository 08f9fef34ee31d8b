"""What follows a failure: one row for each kind, and the waits.

The frontier asks this table when it settles a failed task; the worker asks it whether to go on with the host.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from skitter.model import FailureKind, UrlState


class FailureRule(msgspec.Struct, frozen=True, kw_only=True):
    """`attempts` caps the setting `retry.attempts` for this kind (0: no cap). `blames_host`: the host is left
    alone for a while as well. `ends_as`: the state after the last attempt."""

    attempts: int = 0
    blames_host: bool = False
    ends_as: UrlState = UrlState.DEAD_LETTER
    why: str


_K = FailureKind
RULES: dict[FailureKind, FailureRule] = {
    _K.DNS_NOT_FOUND: FailureRule(attempts=2, blames_host=True, why="the name does not exist"),
    _K.DNS_FAILED: FailureRule(blames_host=True, why="the name servers answered with an error"),
    _K.DNS_TIMEOUT: FailureRule(blames_host=True, why="the name servers did not answer"),
    _K.ADDRESS_REFUSED: FailureRule(
        attempts=1, ends_as=UrlState.REFUSED, why="the name leads to an address we must not dial"
    ),
    _K.CONNECT_REFUSED: FailureRule(blames_host=True, why="nobody listens there, or it is unreachable"),
    _K.CONNECT_TIMEOUT: FailureRule(blames_host=True, why="no connection within fetch.connect_timeout"),
    _K.TLS: FailureRule(attempts=2, blames_host=True, why="no secure connection: certificate or handshake"),
    _K.FIRST_BYTE_TIMEOUT: FailureRule(blames_host=True, why="no answer within fetch.first_byte_timeout"),
    _K.STALLED: FailureRule(blames_host=True, why="slower than fetch.stall_rate for fetch.stall_timeout"),
    _K.TOTAL_TIMEOUT: FailureRule(attempts=3, why="not finished within fetch.total_timeout"),
    _K.CONNECTION_LOST: FailureRule(blames_host=True, why="the connection broke before the answer ended"),
    _K.PROTOCOL: FailureRule(attempts=2, why="the answer was not HTTP"),
    _K.HEADERS_TOO_LARGE: FailureRule(attempts=1, why="more headers than fetch.max_header_bytes or _count"),
    _K.BAD_CODING: FailureRule(attempts=2, why="the body could not be decoded as its headers say"),
    _K.BAD_REDIRECT: FailureRule(attempts=1, why="a redirect without a usable target"),
    _K.ENDLESS_REDIRECT: FailureRule(
        attempts=1, why="a loop of redirects, or more than fetch.max_redirects; the status is given as 599"
    ),
    _K.TYPE_UNWANTED: FailureRule(
        attempts=1, ends_as=UrlState.REFUSED, why="a content type that holds no text; the body was not read"
    ),
    _K.THROTTLED: FailureRule(blames_host=True, why="429 or 503: asked too often, or overloaded"),
    _K.SERVER_ERROR: FailureRule(blames_host=True, why="another 5xx"),
}


def attempts_allowed(kind: FailureKind, setting: int) -> int:
    cap = RULES[kind].attempts
    return min(cap, setting) if cap else setting


def wait_after(failures: int, backoff: Sequence[float]) -> float:
    """The wait after the n-th failure in a row, n counted from 1; the last entry repeats."""
    return backoff[min(failures, len(backoff)) - 1]
