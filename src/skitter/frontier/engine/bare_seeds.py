"""Seeds that were given without a scheme: https is asked first, and http if the host cannot be connected.

Asked by `admission.py` when one comes in, and by `settling.py` when a host's robots.txt, which is always the
first request to it, fails. Never asks over http where https has ever answered, and never for links.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec

from skitter.frontier.engine.changed_rules.refuse_queued import refuse
from skitter.frontier.rows import HostRow, UrlRow
from skitter.frontier.tables import queries
from skitter.frontier.tables.transaction import Transaction
from skitter.model import Discovered, Failed, FailureKind, Refusal, UrlKey, UrlState
from skitter.schedule.priority import TIERS
from skitter.urls.canonical import host_of, normalise

_K = FailureKind
CANNOT_BE_CONNECTED = frozenset(
    (
        _K.CONNECT_REFUSED,
        _K.CONNECT_TIMEOUT,
        _K.TLS_EXPIRED,
        _K.TLS_UNTRUSTED,
        _K.TLS_NAME,
        _K.TLS_HANDSHAKE,
    )
)
_BARE = "given without a scheme: over http, if the host cannot be connected"
# A host has one bare seed, or a few; in one transaction no more are looked at.
_MOST = 2_000


def mark_bare(tx: Transaction, found: Discovered) -> None:
    """The seed was let in just now."""
    row = tx.url(found.key)
    if row is not None and row.state == UrlState.QUEUED:
        row.rule = _BARE
        tx.put_url(found.key, row)
        _, host = tx.host(found.host)
        host.health.has_bare_seeds = True


def was_led_to_http(row: UrlRow) -> bool:
    return row.state == UrlState.REFUSED and row.reason == Refusal.NO_HTTPS


def take_bare_seeds(
    tx: Transaction, ident: bytes, host: HostRow, failed: Failed
) -> list[tuple[UrlKey, UrlRow]]:
    """Those that wait for a host which turns out not to speak https leave its queue; the caller admits their http
    forms."""
    if failed.kind not in CANNOT_BE_CONNECTED or host.robots.read_at:
        return []
    taken = list(_waiting(tx, ident, host))
    for tier, key, row in taken:
        words = f"{host.host} cannot be connected ({failed.kind}): {http_form(row.url)} is asked for instead"
        refuse(tx, key, row, host, tier, Refusal.NO_HTTPS, words)
    host.health.has_bare_seeds = False
    return [(key, row) for _, key, row in taken]


def _waiting(tx: Transaction, ident: bytes, host: HostRow) -> Iterator[tuple[int, UrlKey, UrlRow]]:
    for tier in range(TIERS):
        for slot, key in itertools.islice(queries.waiting(tx.cache, ident, host, tier), _MOST):
            row = tx.url(key)
            if row is not None and row.slot == slot and row.rule == _BARE:
                yield tier, UrlKey(key), row


def http_form(url: str) -> str:
    plain = "http" + url.removeprefix("https")
    return normalise(plain) or plain


def over_http(tx: Transaction, found: Discovered) -> Discovered:
    """The same seed, as it is asked for where there is no https."""
    url = found.over_http
    key = tx.cache.keys.key_of(url)
    return msgspec.structs.replace(found, url=url, key=key, host=host_of(url), over_http="")


def seed_over_http(tx: Transaction, row: UrlRow) -> Discovered:
    url = http_form(row.url)
    return Discovered(
        url=url,
        key=tx.cache.keys.key_of(url),
        host=host_of(url),
        depth=0,
        via=row.found.via,
        priority=row.priority,
    )
