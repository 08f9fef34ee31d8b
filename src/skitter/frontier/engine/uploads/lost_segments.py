"""A segment that is gone before it was stored: what lay in it is fetched again, once.

The other end of `holding`. The hosts were asked, so the ledger keeps these fetches, as lost; everything else is
put back to where it was before them. Never touches a URL whose last answer lies elsewhere.
"""

from __future__ import annotations

from skitter.frontier.engine.requeue import forget_answer
from skitter.frontier.engine.uploads.not_uploaded import stop_counting
from skitter.frontier.posts import PostedLoss
from skitter.frontier.tables import queries
from skitter.frontier.tables.queries import HeldFetch
from skitter.frontier.tables.transaction import Transaction
from skitter.model import Host

LOST = "lost"
_MOST = 2_000


def give_back_some(tx: Transaction, segment: str) -> tuple[int, bool]:
    """Fetches of a segment that is lost, a bounded number: how many, and whether those were all."""
    found = queries.held_in(tx.cache, segment, _MOST + 1)
    counts = tx.tally.held[segment]
    for fetch in found[:_MOST]:
        counts[0] -= 1
        counts[1] -= fetch.held.is_page
        tx.drop_held(fetch)
        _forget_record(tx, fetch)
        _forget_copy(tx, fetch.held.copied, segment)
        _ask_again(tx, fetch, segment)
    done = len(found) <= _MOST
    if done:
        del tx.tally.held[segment]
    return min(len(found), _MOST), done


def _forget_record(tx: Transaction, fetch: HeldFetch) -> None:
    """The host was asked, so the ledger keeps the fetch; what it brought is gone."""
    entry = queries.ledger_entry(tx.cache, fetch.fetch)
    if entry is not None:
        row = entry.row
        row.detail = f"{row.result} with {row.record[0] if row.record else 'its record'}, which is lost"
        row.result, row.record = LOST, None
        tx.replace_fetch(fetch.fetch, row)
        tx.tally.lost += 1


def _forget_copy(tx: Transaction, digest: bytes, segment: str) -> None:
    """Unless another copy was made since: no later record may refer to one that is gone."""
    copy = tx.cache.copy_of(digest) if digest else None
    if copy is not None and copy.segment == segment:
        tx.drop_copy(digest)


def _ask_again(tx: Transaction, fetch: HeldFetch, segment: str) -> None:
    if fetch.held.behalf:
        read_robots_again(tx, Host(fetch.held.behalf))
        return
    key = fetch.key
    row = tx.url(key)
    if row is None:
        return
    has_lost_body = row.answer.record is not None and row.answer.record[0] == segment
    # Of a fetch that others followed only its place in the ledger is left to put right.
    if not has_lost_body and fetch.fetch != queries.last_fetch(tx.cache, key):
        return
    if has_lost_body:
        row.answer.record, row.answer.digest, row.answer.body_status, row.answer.size = None, b"", 0, 0
        row.answer.etag = row.answer.last_modified = ""
    if row.waiting and tx.held_segment(row) != segment:
        stop_counting(tx, key, row)
    row.waiting = b""
    if not forget_answer(tx, key, row):
        tx.put_url(key, row)


def read_robots_again(tx: Transaction, name: Host) -> None:
    """The rules stay in force until the file is read again, in the host's next turn."""
    if tx.is_elsewhere(name):
        tx.post(name, PostedLoss(name))
        return
    _, host = tx.host(name)
    host.robots.until = 0.0
    host.robots.etag = host.robots.last_modified = ""
    host.robots.digest = b""
