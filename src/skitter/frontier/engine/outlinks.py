"""The links that a page brought: which of them are known, and admission for the others.

Inside the transaction that settles the page. Two kinds of links say nothing new and cost only a look at a table
in memory: a link within the page's own host to a known key, and a link between hosts to a known key, unless it
doubles the number of hosts that were seen to link it. Admission is asked about the rest. Never decides what is
let in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from skitter.frontier.engine.admission import ADDED, KNOWN, Admission
from skitter.frontier.link_batches import runs_of, select, size
from skitter.frontier.tables.transaction import Transaction
from skitter.model import Discovered, LinkBatch, TaskKind, Via

_KEY = 16
_LINK, _PAGE = Via.LINK, TaskKind.PAGE


class Admitted(NamedTuple):
    """How many links were added, known and refused; `fresh` are those that nobody knew."""

    added: int
    known: int
    refused: int
    fresh: list[Discovered]


def admit_links(
    tx: Transaction, admission: Admission, ident: bytes, link_batches: Sequence[LinkBatch]
) -> Admitted:
    """Those of one page, whose key begins with `ident`."""
    total = added = 0
    fresh: list[Discovered] = []
    for link_batch in link_batches:
        total += size(link_batch)
        if not (numbers := _unsure(tx, ident, link_batch)):
            continue
        links = select(link_batch, numbers)
        # columns may give links of one batch priorities of their own
        for run in [links] if link_batch.columns is None else runs_of(links):
            for link, verdict in zip(run, admission.admit_run(tx, run), strict=True):
                if verdict is not KNOWN:
                    fresh.append(link)
                    added += verdict is ADDED
    return Admitted(added, total - len(fresh), len(fresh) - added, fresh)


def _unsure(tx: Transaction, ident: bytes, link_batch: LinkBatch) -> Sequence[int]:
    """The places of links that admission has to be asked about. The others are known, and who links them is noted
    as admission would (`Admission._is_news`)."""
    is_plain = link_batch.via is _LINK and link_batch.kind is _PAGE
    if not is_plain or link_batch.columns is not None or link_batch.priority is not None:
        return range(size(link_batch))
    known_keys, recent, parent = tx.cache.known_keys, tx.cache.recent, link_batch.parent
    if parent is None or len(parent) != _KEY:
        return known_keys.find_missing(link_batch.keys, ident)
    unsure = known_keys.find_news(link_batch.keys, ident, recent.young, recent.old, parent)
    recent.age()
    return unsure
