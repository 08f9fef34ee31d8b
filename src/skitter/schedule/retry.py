"""What follows a failure: one row for each kind, and the waits.

The frontier asks this table when it settles a failed task; the worker asks it whether to go on with the host.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from skitter.model import FailureKind, UrlState
from skitter.settings import RetrySettings


class FailureRule(msgspec.Struct, frozen=True, kw_only=True):
    """Of a URL: `attempts` caps the setting `retry.attempts` (0: no cap), `ends_as` is the state after the last.

    `waits`: seconds after the 1st, 2nd, ... failure, of the URL and of the host, where `retry.backoff` would be
    too soon or too late; the last repeats.

    Of a host: `blames_host` says that it is left alone as well, as every kind does when it was robots.txt that
    could not be had. `quarantine_after` and `quarantine` cap the settings of those names; `quarantines` replaces
    the setting. 0 leaves the setting alone.

    `is_unsent`: nothing of the request can have reached the host, or the host says that it did nothing; so what
    must not be sent twice may be sent again.
    """

    attempts: int = 0
    waits: tuple[float, ...] = ()
    blames_host: bool = False
    quarantine_after: int = 0
    quarantine: float = 0.0
    quarantines: int = 0
    is_unsent: bool = False
    ends_as: UrlState = UrlState.DEAD_LETTER
    why: str


_K = FailureKind
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86_400.0
RULES: dict[FailureKind, FailureRule] = {
    # The zone's own word, which resolvers repeat from their caches for up to an hour or three: asked sooner, the
    # second time would be the first one over again.
    _K.DNS_NOT_FOUND: FailureRule(
        is_unsent=True,
        attempts=2,
        waits=(_HOUR,),
        blames_host=True,
        quarantine_after=2,
        quarantine=_HOUR,
        quarantines=1,
        why="the name does not exist",
    ),
    # Broken delegation or signatures: repaired in hours. RFC 2308, 7.1 lets resolvers keep it for five minutes.
    _K.DNS_FAILED: FailureRule(
        is_unsent=True,
        waits=(10 * _MINUTE, _HOUR),
        blames_host=True,
        quarantine_after=3,
        quarantine=_HOUR,
        quarantines=3,
        why="the name servers answered with an error",
    ),
    # Lost packets, ours or theirs, are over soon, and nothing remembers them; often it is our own network's
    # fault, so most of a day passes before a host is given up.
    _K.DNS_TIMEOUT: FailureRule(
        is_unsent=True,
        waits=(_MINUTE, 10 * _MINUTE, _HOUR),
        blames_host=True,
        quarantine_after=4,
        quarantine=_HOUR,
        quarantines=20,
        why="the name servers did not answer",
    ),
    _K.ADDRESS_REFUSED: FailureRule(
        is_unsent=True,
        attempts=1,
        quarantine_after=2,
        quarantine=_HOUR,
        quarantines=1,
        ends_as=UrlState.REFUSED,
        why="the name leads to an address we must not dial",
    ),
    _K.CONNECT_REFUSED: FailureRule(
        is_unsent=True, blames_host=True, why="nobody listens there, or it is unreachable"
    ),
    _K.CONNECT_TIMEOUT: FailureRule(
        is_unsent=True, blames_host=True, why="no connection within fetch.connect_timeout"
    ),
    # Certificates are mended by people, within a day or two if at all.
    _K.TLS_EXPIRED: FailureRule(
        is_unsent=True,
        attempts=3,
        waits=(6 * _HOUR, _DAY),
        blames_host=True,
        quarantine_after=3,
        quarantines=1,
        why="the certificate has expired or is not valid yet",
    ),
    _K.TLS_UNTRUSTED: FailureRule(
        is_unsent=True,
        attempts=2,
        waits=(_DAY,),
        blames_host=True,
        quarantine_after=2,
        quarantines=1,
        why="the certificate is self-signed or its issuer unknown",
    ),
    _K.TLS_NAME: FailureRule(
        is_unsent=True,
        attempts=2,
        waits=(_DAY,),
        blames_host=True,
        quarantine_after=2,
        quarantines=1,
        why="the certificate is for another name",
    ),
    _K.TLS_HANDSHAKE: FailureRule(
        is_unsent=True,
        attempts=3,
        blames_host=True,
        quarantine_after=3,
        quarantines=1,
        why="no agreement on TLS, or the connection closed during the handshake",
    ),
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
    _K.THROTTLED: FailureRule(
        is_unsent=True, blames_host=True, why="429 or 503: asked too often, or overloaded"
    ),
    _K.SERVER_ERROR: FailureRule(blames_host=True, why="another 5xx"),
    # Ours, and mended by whoever runs it: often within minutes.
    _K.PROXY_FAILED: FailureRule(
        is_unsent=True,
        waits=(_MINUTE, 10 * _MINUTE, _HOUR),
        blames_host=True,
        quarantine=_HOUR,
        quarantines=20,
        why="the proxy for this host cannot be reached, or refuses to connect",
    ),
    # Asked less at once, and after a day once more: a block is never evaded, and rarely meant for ever.
    _K.TURNED_AWAY: FailureRule(
        attempts=3,
        waits=(6 * _HOUR, _DAY),
        blames_host=True,
        quarantine_after=2,
        quarantines=2,
        why="a block page, captcha or challenge in place of the page; skitter policy --ignore-walls undoes it",
    ),
    _K.GATED: FailureRule(
        attempts=1,
        why="a gate in place of the page: consent, age, login, subscription, a parked or empty site",
    ),
    _K.OUTCOME_UNKNOWN: FailureRule(
        attempts=1,
        why="a form that may have been sent: it is not sent twice unless its hook says that it is safe",
    ),
    # Few tries, far apart: many sites lock an account after some wrong passwords.
    _K.LOGIN_FAILED: FailureRule(
        is_unsent=True,
        attempts=3,
        waits=(_HOUR, 6 * _HOUR),
        blames_host=True,
        quarantine_after=3,
        quarantines=1,
        why="the login recipe did not get in, or the host shows its login page all the same",
    ),
}


def attempts_allowed(kind: FailureKind, setting: int) -> int:
    return int(_capped(setting, RULES[kind].attempts))


def wait_after(kind: FailureKind, failures: int, backoff: Sequence[float]) -> float:
    """The wait after the n-th failure in a row, n counted from 1; the last entry repeats."""
    waits = RULES[kind].waits or backoff
    return waits[min(failures, len(waits)) - 1]


def host_wait(kind: FailureKind, failures: int, alike: int, retry: RetrySettings) -> float:
    """How long a host is left alone after `failures` in a row, the last `alike` of them of this kind.

    A kind's own, shorter patience counts only its own failures: a single NXDOMAIN after a day of connection
    failures is not yet a name that does not exist.
    """
    rule = RULES[kind]
    if failures >= retry.quarantine_after or alike >= _capped(retry.quarantine_after, rule.quarantine_after):
        return _capped(retry.quarantine, rule.quarantine)
    return wait_after(kind, alike if rule.waits else failures, retry.backoff)


def is_hopeless(kind: FailureKind, failures: int, alike: int, retry: RetrySettings) -> bool:
    """Whether a host that failed so often is given up."""
    rule = RULES[kind]
    usual = retry.quarantine_after + retry.quarantines
    own = _capped(retry.quarantine_after, rule.quarantine_after) + (rule.quarantines or retry.quarantines)
    return alike >= own or failures >= max(own, usual)


def _capped(setting: float, cap: float) -> float:
    return min(setting, cap) if cap else setting
