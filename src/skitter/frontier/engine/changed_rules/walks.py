"""Walks over refused URLs: which are begun, of all URLs or of those of a host, and for which reasons.

Begun by whatever loosens a rule: changed settings or blocklists, a seed, a host's policy, pages that earned a
host a larger budget. `rejudge.py` takes their steps. Never looks at a URL.
"""

from __future__ import annotations

from collections.abc import Iterable

from skitter.frontier.rows import Walk
from skitter.frontier.tables.transaction import Transaction
from skitter.model import Host
from skitter.urls.canonical import host_id


def begin_walk(tx: Transaction, reasons: Iterable[str], host: Host | None = None) -> None:
    """Look at what was refused for these reasons from the start, whatever walk is under way. Nothing is done when
    nothing was."""
    asked = [str(reason) for reason in reasons if tx.tally.refusals.get(reason)]
    if not asked:
        return
    ident = b"" if host is None else host_id(host)
    walk = tx.walk(ident)
    if walk is None:
        tx.put_walk(ident, Walk(asked, host or ""))
        return
    walk.reasons = sorted({*walk.reasons, *walk.again, *asked})
    walk.again, walk.cursor = [], b""
    tx.put_walk(ident, walk)


def walk_later(tx: Transaction, reasons: Iterable[str]) -> None:
    """The same of all URLs, after the walk that is under way: what may be asked for again and again must not keep
    it from its end."""
    walk = tx.walk(b"")
    if walk is None:
        begin_walk(tx, reasons)
        return
    walk.again = sorted({*walk.again, *map(str, reasons)})
    tx.put_walk(b"", walk)
