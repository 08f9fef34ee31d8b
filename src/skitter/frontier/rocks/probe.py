"""The probe: a path that nobody made, asked of a host once, when its pages begin to look alike.

A page task like any other, leased, paced, recorded and archived. Where the answer is 404 the host tells what it
does not have; where it is a page, that page is what the host says of everything it does not have. No link of
it is followed, and it tells nothing of its own skeleton.
"""

from __future__ import annotations

from hashlib import blake2b

from skitter.frontier.rocks.rows import HostRow, UrlRow
from skitter.frontier.rocks.subjects import key_for
from skitter.frontier.rocks.turn import Turn
from skitter.model import Fetched, UrlState, Via
from skitter.schedule.priority import SEED_PRIORITY

_MARK = 4


def probe_url(host: str) -> str:
    """The same at every time: a crawl that is repeated asks for nothing else."""
    return f"{host}/no-such-page-{blake2b(host.encode(), digest_size=6).hexdigest()}"


def ask_for_probe(turn: Turn, ident: bytes, host: HostRow) -> None:
    host.probed = True
    url = probe_url(host.host)
    key = key_for(turn.book, url)
    if turn.url(key) is not None:
        return
    row = UrlRow(url=url, state=UrlState.QUEUED, priority=SEED_PRIORITY, depth=0, via=Via.PROBE)
    host.admitted += 1
    turn.book.seen.add(key)
    turn.enqueue(key, row, ident, host)


def learn_probe(host: HostRow, key: bytes, row: UrlRow, page: Fetched) -> None:
    """Its likeness, by the page that stands for all that resemble it."""
    if row.simhash is not None:
        host.soft = (row.near_of or key)[-_MARK:]
    elif page.digest:
        host.soft = page.digest[:_MARK]
