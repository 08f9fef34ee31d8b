"""The links that a page brought: which of them are known, and admission for the others.

Inside the turn that settles the page. A link within the page's own host to a key that is known for certain says
nothing new, nor does one between hosts to what is known, unless it doubles the hosts that were heard to link it:
both cost a look at a table, 0.1 us, where admission takes 1.5 to 5, and 5 to 20 with a read. Never decides what
is let in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from skitter.frontier.bundles import picked, size
from skitter.frontier.rocks.admission import ADDED, KNOWN, Admission
from skitter.frontier.rocks.turn import Turn
from skitter.model import Bundle, Discovered, Via

_KEY = 16
_LINK = Via.LINK


class Admitted(NamedTuple):
    """How many links were added, known and refused; `fresh` are those that nobody knew."""

    added: int
    known: int
    refused: int
    fresh: list[Discovered]


def admit_links(turn: Turn, admission: Admission, ident: bytes, bundles: Sequence[Bundle]) -> Admitted:
    """Those of one page, whose key begins with `ident`."""
    total = added = 0
    fresh: list[Discovered] = []
    for bundle in bundles:
        total += size(bundle)
        if not (numbers := _unsure(turn, ident, bundle)):
            continue
        links = picked(bundle, numbers)
        for link, verdict in zip(links, admission.admit_run(turn, links), strict=True):
            if verdict is not KNOWN:
                fresh.append(link)
                added += verdict is ADDED
    return Admitted(added, total - len(fresh), len(fresh) - added, fresh)


def _unsure(turn: Turn, ident: bytes, bundle: Bundle) -> Sequence[int]:
    """The places of links that admission has to be asked about. The others are known, and who links them is noted
    as admission would (`Admission._is_news`)."""
    if bundle.via is not _LINK or bundle.requisite:
        return range(size(bundle))
    certain, recent, parent = turn.book.certain, turn.book.recent, bundle.parent
    if parent is None or len(parent) != _KEY:
        return certain.lacks(bundle.keys, ident)
    unsure = certain.unheard(bundle.keys, ident, recent.young, recent.old, parent)
    recent.age()
    return unsure
