"""The links that a page brought: which of them are known, and admission for the others.

Inside the turn that settles the page. A link within the page's own host to a key that is known for certain says
nothing new, and costs a look at a table: 0.1 us, where admission takes 1.5, and 5 to 20 with a read. Never
decides what is let in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from skitter.frontier.bundles import picked, runs_of, size
from skitter.frontier.rocks.admission import ADDED, KNOWN, Admission
from skitter.frontier.rocks.book import Turn
from skitter.model import Bundle, Discovered, Via


class Admitted(NamedTuple):
    """How many links were added, known and refused; `fresh` are those that nobody knew."""

    added: int
    known: int
    refused: int
    fresh: list[Discovered]


def admit_links(
    turn: Turn,
    admission: Admission,
    ident: bytes,
    links: Sequence[Discovered],
    bundles: Sequence[Bundle] = (),
) -> Admitted:
    """Those of a page whose key begins with `ident`, as they are or in bundles."""
    total = len(links) + sum(map(size, bundles))
    fresh: list[Discovered] = []
    added = 0
    for run in _unsure(turn, ident, links, bundles):
        for link, verdict in zip(run, admission.admit_run(turn, run), strict=True):
            if verdict is not KNOWN:
                fresh.append(link)
                added += verdict is ADDED
    return Admitted(added, total - len(fresh), len(fresh) - added, fresh)


def _unsure(
    turn: Turn, ident: bytes, links: Sequence[Discovered], bundles: Sequence[Bundle]
) -> Iterator[list[Discovered]]:
    """The links that admission has to be asked about, in runs that differ in URL and key alone."""
    lacks = turn.book.certain.lacks
    for bundle in bundles:
        numbers = lacks(bundle.keys, ident) if bundle.via is Via.LINK else list(range(size(bundle)))
        if numbers:
            yield picked(bundle, numbers)
    if links:
        numbers = lacks(b"".join([link.key for link in links]), ident)
        if others := [number for number, link in enumerate(links) if link.via is not Via.LINK]:
            numbers = sorted({*numbers, *others})
        yield from runs_of([links[number] for number in numbers])
