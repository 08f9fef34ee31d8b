"""What goes back to a queue: due retries, URLs a changed robots.txt may allow, dead letters, and what is to be
looked at again."""

from __future__ import annotations

from skitter.frontier.engine.health import forgive
from skitter.frontier.engine.load_limits import open_again
from skitter.frontier.engine.uploads.not_uploaded import stop_counting
from skitter.frontier.rows import HostRow, UrlRow
from skitter.frontier.tables import queries
from skitter.frontier.tables.queries import Cursor
from skitter.frontier.tables.transaction import Transaction
from skitter.model import FailureKind, Host, UrlKey, UrlState
from skitter.urls.canonical import host_id, host_of, target_of

# One transaction moves at most so many, so that no call takes long however many are due.
_MOST = 2_000
_MOST_LOOKED_AT = 10_000


def promote(tx: Transaction) -> int:
    return _promote_due(tx) + _rejudge_denied(tx)


def _back(tx: Transaction, key: UrlKey, row: UrlRow, was: UrlState) -> None:
    ident, host = tx.host(host_of(row.url))
    tx.count(was, -1)
    row.reason = row.rule = ""
    tx.enqueue(key, row, ident, host)


def _promote_due(tx: Transaction) -> int:
    moved = 0
    for due in queries.consume_due(tx.cache, tx.now, _MOST):
        tx.drop_due(due)
        row = tx.url(due.key)
        if row is not None and row.state == UrlState.FAILED and due.is_of(row):
            _back(tx, due.key, row, UrlState.FAILED)
            moved += 1
    return moved


def _rejudge_denied(tx: Transaction) -> int:
    """Hosts whose robots.txt changed: what it no longer denies is queued again."""
    for ident, cursor in queries.hosts_to_rejudge(tx.cache):
        moved, go_on = _rejudge_host(tx, ident, cursor)
        if go_on is None:
            tx.unmark_to_rejudge(ident)
        else:
            tx.mark_to_rejudge(ident, go_on)
        return moved
    return 0


def _rejudge_host(tx: Transaction, ident: bytes, start: Cursor) -> tuple[int, Cursor | None]:
    concerned = tx.cache.host(ident)
    if concerned is None:
        return 0, None
    rules = tx.cache.rules(ident)
    moved = 0
    for looked, key in enumerate(queries.denied(tx.cache, Host(concerned.host), start)):
        if looked >= _MOST:
            return moved, key
        row = tx.url(key)
        if row is None or row.state != UrlState.DENIED or host_id(host_of(row.url)) != ident:
            continue
        if not rules.decide(target_of(row.url)).allowed:
            continue
        tx.drop_denied(key)
        _, host = tx.host(host_of(row.url))
        host.counts.denied -= 1
        _back(tx, key, row, UrlState.DENIED)
        moved += 1
    return moved, None


def requeue_dead(tx: Transaction, start: Cursor, host: Host | None) -> tuple[int, Cursor | None]:
    """Dead letters from `start` on (of one host, if given) go back; where to go on, None when all are done."""
    moved = 0
    for looked, key in enumerate(queries.dead_letters(tx.cache, host, start)):
        if moved >= _MOST or looked >= _MOST_LOOKED_AT:
            return moved, key
        if _is_of(tx, key, host):
            moved += revive(tx, key)
    return moved, None


def _is_of(tx: Transaction, key: bytes, host: Host | None) -> bool:
    """Where keys fold hosts, those of others lie among a host's own."""
    if host is None or not tx.cache.keys.folds_hosts:
        return True
    row = tx.url(key)
    return row is not None and host_of(row.url) == host


def revive(tx: Transaction, key: UrlKey) -> int:
    row = tx.url(key)
    tx.drop_dead(key)
    if row is None or row.state != UrlState.DEAD_LETTER:
        return 0
    row.attempts = 0
    row.answer.failure = ""
    row.found.is_out = False
    _, host = tx.host(host_of(row.url))
    # the operator asked for it: the host is tried again without waiting out its backoff, but not sooner
    # after its last request than its delay
    _try_again(host)
    _back(tx, key, row, UrlState.DEAD_LETTER)
    return 1


def forgive_certificate(host: HostRow) -> None:
    """The operator says not to mind the host's certificate: if that was what kept us away, it is over."""
    if host.health.last_failure.startswith("tls_"):
        _try_again(host)


def _try_again(host: HostRow) -> None:
    forgive(host)
    host.pace.not_before = 0.0


def pardon_some(tx: Transaction, start: Cursor, host: Host | None) -> tuple[int, Cursor | None]:
    """Hosts that were given up are tried again, also when their URLs have not become dead letters yet; the others
    are found through those. No URL moves."""
    if host is not None:
        _pardon(tx, host_id(host))
        return 0, None
    for looked, (cursor, ident) in enumerate(queries.hosts_to_empty(tx.cache, start)):
        if looked >= _MOST:
            return 0, cursor
        _pardon(tx, ident)
    return 0, None


def _pardon(tx: Transaction, ident: bytes) -> None:
    host = tx.cache.host(ident)
    if host is not None and host.health.given_up:
        tx.touch(ident)
        _try_again(host)


def end_wait(host: HostRow) -> None:
    """The operator wants the host asked now: all that it waits for but its delay is over."""
    _try_again(host)
    host.pace.crowded_until = 0.0
    open_again(host)
    if host.health.address_refused:
        # The refusal holds as long as this robots.txt: it is asked for again, and the address is looked up again.
        host.health.address_refused = ""
        host.robots.until = 0.0


def retry_some(tx: Transaction, start: Cursor, host: Host | None) -> tuple[int, Cursor | None]:
    """URLs of a host from `start` on that wait for their retry go back; where to go on."""
    moved = 0
    for looked, key in enumerate(queries.urls(tx.cache, host, start)):
        if moved >= _MOST or looked >= _MOST_LOOKED_AT:
            return moved, key
        row = tx.url(key)
        if row is not None and row.state == UrlState.FAILED and host_of(row.url) == host:
            tx.drop_due(queries.due_of(key, row))
            _back(tx, key, row, UrlState.FAILED)
            moved += 1
    return moved, None


# -- what is looked at again


def refresh_some(tx: Transaction, start: Cursor, host: Host | None) -> tuple[int, Cursor | None]:
    """URLs from `start` on (of one host, if given) that have their final answer go back; where to go on."""
    moved = 0
    for looked, key in enumerate(queries.urls(tx.cache, host, start)):
        if moved >= _MOST or looked >= _MOST_LOOKED_AT:
            return moved, key
        if _is_of(tx, key, host):
            moved += refresh_one(tx, key)
    return moved, None


def refresh_one(tx: Transaction, key: UrlKey) -> int:
    row = tx.url(key)
    if row is None or not _has_final_answer(row):
        return 0
    was = UrlState(row.state)
    if was is UrlState.REFUSED:
        tx.tally.refusals[row.reason] -= 1
    elif was is UrlState.COMPLETED and 200 <= row.answer.status < 300:
        tx.count_answer(row, -1)
        if row.waiting:
            stop_counting(tx, key, row)
    row.attempts = 0
    _back(tx, key, row, was)
    return 1


def readmit_addresses(tx: Transaction, start: Cursor, host: Host | None) -> tuple[int, Cursor | None]:
    """URLs from `start` on that were refused for their host's address go back; where to go on. Ends when the last
    of them is found: mostly there are a few, and millions of others."""
    moved = 0
    for looked, key in enumerate(queries.urls(tx.cache, host, start)):
        if not tx.tally.refusals.get(FailureKind.ADDRESS_REFUSED):
            break
        if moved >= _MOST or looked >= _MOST_LOOKED_AT:
            return moved, key
        row = tx.url(key)
        if row is None or row.state != UrlState.REFUSED or row.reason != FailureKind.ADDRESS_REFUSED:
            continue
        tx.tally.refusals[row.reason] -= 1
        row.attempts = 0
        row.answer.failure = ""
        _try_again(tx.host(host_of(row.url))[1])
        _back(tx, key, row, UrlState.REFUSED)
        moved += 1
    return moved, None


def forget_answer(tx: Transaction, key: UrlKey, row: UrlRow) -> bool:
    """What a URL's last answer brought is lost, or was not read: it goes back to its queue, unless it waits for a
    retry or is queued."""
    was = UrlState(row.state)
    if was is UrlState.DEAD_LETTER:
        tx.drop_dead(key)
    elif not _has_final_answer(row):
        return False
    if was is UrlState.REFUSED:
        tx.tally.refusals[row.reason] -= 1
    elif was is UrlState.COMPLETED and 200 <= row.answer.status < 300:
        tx.count_answer(row, -1)
    row.attempts = 0
    row.answer.failure = ""
    _back(tx, key, row, was)
    return True


def _has_final_answer(row: UrlRow) -> bool:
    if row.state == UrlState.REFUSED:
        return row.reason == FailureKind.TYPE_UNWANTED
    return row.state in (UrlState.COMPLETED, UrlState.GONE)
