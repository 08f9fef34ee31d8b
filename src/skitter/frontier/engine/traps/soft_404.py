"""The soft-404 probe: a path that does not exist, requested once from a host whose pages begin to look alike.

A page task like any other: leased, paced, recorded and archived. When the answer is a page and not a 404, that
page is the host's answer for everything that it does not have. Its links are not followed, and it does not
count for its own skeleton.
"""

from __future__ import annotations

from hashlib import blake2b

from skitter.frontier.rows import Found, HostRow, UrlRow
from skitter.frontier.tables.transaction import Transaction
from skitter.frontier.tables.trap_tables import key_for
from skitter.model import Fetched, TaskKind, UrlState, Via
from skitter.schedule.priority import SEED_PRIORITY

_TAG = 4


def probe_url(host: str) -> str:
    """Always the same for a host, so that a repeated crawl makes the same requests."""
    return f"{host}/no-such-page-{blake2b(host.encode(), digest_size=6).hexdigest()}"


def ask_for_probe(tx: Transaction, ident: bytes, host: HostRow) -> None:
    host.novelty.is_probed = True
    url = probe_url(host.host)
    key = key_for(tx.cache, url)
    if tx.url(key) is not None:
        return
    row = UrlRow(
        url=url, state=UrlState.QUEUED, priority=SEED_PRIORITY, found=Found(0, Via.PROBE, kind=TaskKind.PROBE)
    )
    host.queue.admitted += 1
    tx.cache.seen.add(key)
    tx.enqueue(key, row, ident, host)


def learn_probe(host: HostRow, key: bytes, row: UrlRow, page: Fetched) -> None:
    """Remember the tag of the page that the host answered with."""
    if row.near.simhash is not None:
        host.novelty.soft_404 = (row.near.of or key)[-_TAG:]
    elif page.digest:
        host.novelty.soft_404 = page.digest[:_TAG]
