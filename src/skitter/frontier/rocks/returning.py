"""What goes back to a queue: due retries, URLs a changed robots.txt may allow, dead letters, and what is to be
looked at again."""

from __future__ import annotations

from skitter.frontier.rocks.health import forgive
from skitter.frontier.rocks.holding import count_no_more
from skitter.frontier.rocks.rows import ABANDON, REJUDGE, HostRow, UrlRow, micros
from skitter.frontier.rocks.turn import Turn
from skitter.model import FailureKind, Host, UrlKey, UrlState
from skitter.urls.canonical import host_id, host_of, target_of

# One turn moves at most so many, so that no call takes long however many are due.
_MOST = 2_000
_MOST_LOOKED_AT = 10_000
_END = b"\xff" * 16


def promote(turn: Turn) -> int:
    return _promote_due(turn) + _rejudge_denied(turn)


def _back(turn: Turn, key: UrlKey, row: UrlRow, was: UrlState) -> None:
    ident, host = turn.host(host_of(row.url))
    turn.count(was, -1)
    row.reason = row.rule = ""
    turn.enqueue(key, row, ident, host)


def _promote_due(turn: Turn) -> int:
    book = turn.book
    moved = 0
    end = micros(turn.now) + _END
    low = end
    for entry, _ in book.store.scan("due", book.due_low, end):
        if moved >= _MOST:
            low = entry
            break
        key = UrlKey(entry[8:])
        turn.delete("due", entry)
        row = turn.url(key)
        if row is not None and row.state == UrlState.FAILED and micros(row.due) == entry[:8]:
            _back(turn, key, row, UrlState.FAILED)
            moved += 1
    book.due_low = low
    return moved


def _rejudge_denied(turn: Turn) -> int:
    """Hosts whose robots.txt changed: what it no longer denies is queued again."""
    for entry, _ in turn.book.store.scan("meta", REJUDGE, REJUDGE + b"\xff" * 9):
        ident = entry[len(REJUDGE) :]
        moved, done = _rejudge_host(turn, ident, turn.book.store.get("meta", entry) or b"")
        if done is None:
            turn.delete("meta", entry)
        else:
            turn.put("meta", entry, done)
        return moved
    return 0


def _rejudge_host(turn: Turn, ident: bytes, start: bytes) -> tuple[int, bytes | None]:
    rules = turn.book.rules(ident)
    concerned = turn.book.host(ident)
    prefix = turn.book.keys.prefix(concerned.host) if concerned is not None else ident
    moved = looked = 0
    for key, _ in turn.book.store.scan("denied", start or prefix, prefix + _END):
        if looked >= _MOST:
            return moved, key
        looked += 1
        row = turn.url(key)
        if row is None or row.state != UrlState.DENIED or host_id(host_of(row.url)) != ident:
            continue
        if not rules.decide(target_of(row.url)).allowed:
            continue
        turn.delete("denied", key)
        _, host = turn.host(host_of(row.url))
        host.denied -= 1
        _back(turn, UrlKey(key), row, UrlState.DENIED)
        moved += 1
    return moved, None


def requeue_dead(turn: Turn, start: bytes, host: Host | None) -> tuple[int, bytes | None]:
    """Dead letters from `start` on (of one host, if given) go back; where to go on, None when all are done."""
    prefix = turn.book.keys.prefix(host) if host else b""
    moved = 0
    for looked, (key, _) in enumerate(turn.book.store.scan("dead", start or prefix, prefix + _END)):
        if moved >= _MOST or looked >= _MOST_LOOKED_AT:
            return moved, key
        if _is_of(turn, key, host):
            moved += revive(turn, UrlKey(key))
    return moved, None


def _is_of(turn: Turn, key: bytes, host: Host | None) -> bool:
    """Where keys fold hosts, those of others lie among a host's own."""
    if host is None or not turn.book.keys.folds_hosts:
        return True
    row = turn.url(key)
    return row is not None and host_of(row.url) == host


def revive(turn: Turn, key: UrlKey) -> int:
    row = turn.url(key)
    turn.delete("dead", key)
    if row is None or row.state != UrlState.DEAD_LETTER:
        return 0
    row.attempts = 0
    row.failure = ""
    _, host = turn.host(host_of(row.url))
    # the operator asked for it: the host is tried again without waiting out its backoff, but not sooner
    # after its last request than its delay
    _try_again(host)
    _back(turn, key, row, UrlState.DEAD_LETTER)
    return 1


def forgive_certificate(host: HostRow) -> None:
    """The operator says not to mind the host's certificate: if that was what kept us away, it is over."""
    if host.last_failure.startswith("tls_"):
        _try_again(host)


def _try_again(host: HostRow) -> None:
    forgive(host)
    host.not_before = 0.0


def pardon_some(turn: Turn, start: bytes, host: Host | None) -> tuple[int, bytes | None]:
    """Hosts that were given up are tried again, also when their URLs have not become dead letters yet; the others
    are found through those. No URL moves."""
    if host is not None:
        _pardon(turn, host_id(host))
        return 0, None
    entries = turn.book.store.scan("meta", start or ABANDON, ABANDON + b"\xff" * 9)
    for looked, (entry, _) in enumerate(entries):
        if looked >= _MOST:
            return 0, entry
        _pardon(turn, entry[len(ABANDON) :])
    return 0, None


def _pardon(turn: Turn, ident: bytes) -> None:
    host = turn.book.host(ident)
    if host is not None and host.given_up:
        turn.touch(ident)
        _try_again(host)


# -- what is looked at again


def refresh_some(turn: Turn, start: bytes, host: Host | None) -> tuple[int, bytes | None]:
    """URLs from `start` on (of one host, if given) that have their final answer go back; where to go on."""
    prefix = turn.book.keys.prefix(host) if host else b""
    moved = 0
    urls = turn.book.store.scan("urls", start or prefix, prefix + _END)
    for looked, (key, _) in enumerate(urls):
        if moved >= _MOST or looked >= _MOST_LOOKED_AT:
            return moved, key
        if _is_of(turn, key, host):
            moved += refresh_one(turn, UrlKey(key))
    return moved, None


def refresh_one(turn: Turn, key: UrlKey) -> int:
    row = turn.url(key)
    if row is None or not _has_final_answer(row):
        return 0
    was = UrlState(row.state)
    if was is UrlState.REFUSED:
        turn.tally.refusals[row.reason] -= 1
    elif was is UrlState.COMPLETED and 200 <= row.status < 300:
        turn.count_answer(row, -1)
        if row.waiting:
            count_no_more(turn, key, row)
    row.attempts = 0
    _back(turn, key, row, was)
    return 1


def back_from_the_archive(turn: Turn, key: UrlKey, row: UrlRow) -> bool:
    """What a URL's last answer brought is lost: it goes back to its queue, unless it waits for a retry or is
    queued."""
    was = UrlState(row.state)
    if was is UrlState.DEAD_LETTER:
        turn.delete("dead", key)
    elif not _has_final_answer(row):
        return False
    if was is UrlState.REFUSED:
        turn.tally.refusals[row.reason] -= 1
    elif was is UrlState.COMPLETED and 200 <= row.status < 300:
        turn.count_answer(row, -1)
    row.attempts = 0
    row.failure = ""
    _back(turn, key, row, was)
    return True


def _has_final_answer(row: UrlRow) -> bool:
    if row.state == UrlState.REFUSED:
        return row.reason == FailureKind.TYPE_UNWANTED
    return row.state in (UrlState.COMPLETED, UrlState.GONE)
