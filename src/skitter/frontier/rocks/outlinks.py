"""The links that a page brought: which of them are known, and admission for the others.

Inside the turn that settles the page. A link within the page's own host to a key that is known for certain says
nothing new, and costs a look at a table: 0.1 us, where admission takes 1.5, and 5 to 20 with a read. Never
decides what is let in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from skitter.frontier.bundles import picked, runs_of, size
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


def admit_links(
    turn: Turn,
    admission: Admission,
    ident: bytes,
    links: Sequence[Discovered],
    bundles: Sequence[Bundle] = (),
) -> Admitted:
    """Those of one page, whose key begins with `ident`: as they are or in bundles."""
    total = len(links) + sum(map(size, bundles)) if bundles else len(links)
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
) -> list[list[Discovered]]:
    """The links that admission has to be asked about, in runs that differ in URL and key alone."""
    runs = []
    for bundle in bundles:
        is_link = bundle.via is _LINK
        numbers = _unheard_of(turn, ident, bundle.keys, bundle.parent) if is_link else range(size(bundle))
        if numbers:
            runs.append(picked(bundle, numbers))
    if not links:
        return runs
    numbers = _unheard_of(turn, ident, b"".join([link.key for link in links]), links[0].parent)
    if [link.via for link in links].count(_LINK) < len(links):
        others = [number for number, link in enumerate(links) if link.via is not _LINK]
        numbers = sorted({*numbers, *others})
    if len(numbers) == 1:
        return [*runs, [links[numbers[0]]]]
    return runs + runs_of([links[number] for number in numbers])


def _unheard_of(turn: Turn, ident: bytes, keys: bytes, parent: bytes | None) -> Sequence[int]:
    """The places of those that are not known for certain, or that the host of `parent` was not heard to link."""
    numbers = turn.book.certain.lacks(keys, ident)
    if not numbers or not parent:
        return numbers
    has_heard, linker = turn.book.recent.has_heard, parent[:2]
    return [number for number in numbers if not has_heard(keys[_KEY * number : _KEY * number + _KEY], linker)]
