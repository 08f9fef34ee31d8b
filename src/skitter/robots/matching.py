"""Which pattern of a robots.txt decides about a path: the longest that matches, found without trying them all.

Below `robots/rules.py`, which reads the file. A question is linear in the path for prefixes and bounded by a
budget for wildcards: no file may make it slow, so one that would is answered with a refusal.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

import msgspec

# Up to this many wildcards are tried one by one; more are found through an index, which costs as much as a
# hundred.
_TRIED_DIRECTLY = 100
_GRAM = 3
_GRAMS_WEIGHED = 12
# Pieces of patterns compared for one question at most: 1 to 2 ms. No honest file comes near: it takes more than
# a thousand wildcards whose rarest three characters all occur in one URL. Then the answer is no.
_MOST_PIECES = 4000
_TOO_MANY = "too many wildcards to try them all: not allowed"


class Ruling(msgspec.Struct, frozen=True):
    """May the URL be fetched, and which line says so; line 0 when no rule matched."""

    allowed: bool
    line: int = 0
    rule: str = ""


NO_RULE = Ruling(True)


class _Wildcard(msgspec.Struct, frozen=True):
    """A pattern with a `*` before its end, cut at its stars.

    Greedy search for the pieces from left to right is exact for `*` (the earliest place for a piece leaves
    the most room for the next), so a question needs no backtracking. `tail` is set when `$` ends the
    pattern. `needle` is the longest piece: a URL without it cannot match.
    """

    rank: int
    needle: str
    head: str
    middles: tuple[str, ...]
    tail: str | None
    ruling: Ruling

    def matches(self, target: str) -> bool:
        if not target.startswith(self.head):
            return False
        at = len(self.head)
        for piece in self.middles:
            at = target.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        tail = self.tail
        return tail is None or (len(target) - at >= len(tail) and target.endswith(tail))


def _wildcard(pattern: str, rank: int, ruling: Ruling) -> _Wildcard:
    anchored = pattern[-1] == "$"
    pieces = (pattern[:-1] if anchored else pattern).split("*")
    tail = pieces[-1] if anchored else None
    middles = tuple(filter(None, pieces[1:-1] if anchored else pieces[1:]))
    return _Wildcard(rank, max(pieces, key=len), pieces[0], middles, tail, ruling)


def _grams_of(needle: str) -> list[str]:
    return [needle[at : at + _GRAM] for at in range(min(len(needle) - _GRAM + 1, _GRAMS_WEIGHED))]


_Ranked = tuple[int, Ruling]
_NOTHING: _Ranked = (0, NO_RULE)


class Table:
    """Patterns arranged for the question: which is the longest that matches this target?

    A rank is twice the pattern's length, plus one for allow: the longest match wins, and allow wins a tie
    (RFC 9309, 2.2.2). Prefixes are sorted, and each knows the best ranked among itself and the prefixes of
    itself, so one bisection finds the answer for all of them. Wildcards are tried one by one, best first, until
    they rank below what the prefixes gave; of many, only those that have three characters in common with the
    target where it counts.
    """

    __slots__ = ("_best", "_exact", "_grams", "_parents", "_prefixes", "_short", "_wildcards")

    def __init__(self, rules: Iterable[tuple[str, Ruling]]) -> None:
        prefixes: dict[str, _Ranked] = {}
        self._exact: dict[str, _Ranked] = {}
        wildcards: dict[str, _Wildcard] = {}
        for pattern, ruling in rules:
            rank = 2 * len(pattern) + ruling.allowed
            literal = pattern.rstrip("*")
            if "*" in literal:
                if pattern not in wildcards or wildcards[pattern].rank < rank:
                    wildcards[pattern] = _wildcard(pattern, rank, ruling)
                continue
            anchored = pattern[-1] == "$"
            ranked = self._exact if anchored else prefixes
            literal = pattern[:-1] if anchored else literal
            if literal not in ranked or ranked[literal][0] < rank:
                ranked[literal] = (rank, ruling)
        self._wildcards = sorted(wildcards.values(), key=lambda each: (-each.rank, each.ruling.line))
        self._index_wildcards()
        self._arrange(prefixes)

    def _index_wildcards(self) -> None:
        """Each wildcard under the rarest of the first grams of its longest piece. Wildcards whose pieces are all
        shorter than a gram are always tried."""
        self._grams: dict[str, list[int]] = {}
        self._short: list[int] = []
        if len(self._wildcards) <= _TRIED_DIRECTLY:
            return
        uses = Counter(gram for wildcard in self._wildcards for gram in _grams_of(wildcard.needle))
        for index, wildcard in enumerate(self._wildcards):
            grams = _grams_of(wildcard.needle)
            place = self._grams.setdefault(min(grams, key=uses.__getitem__), []) if grams else self._short
            place.append(index)

    def _arrange(self, prefixes: dict[str, _Ranked]) -> None:
        self._prefixes = sorted(prefixes)
        self._parents: list[int] = []
        self._best: list[_Ranked] = []
        chain: list[int] = []
        for index, prefix in enumerate(self._prefixes):
            while chain and not prefix.startswith(self._prefixes[chain[-1]]):
                chain.pop()
            parent = chain[-1] if chain else -1
            own = prefixes[prefix]
            above = self._best[parent] if chain else _NOTHING
            self._parents.append(parent)
            self._best.append(own if own[0] >= above[0] else above)
            chain.append(index)

    def find(self, target: str) -> Ruling:
        rank, ruling = self._by_prefix(target)
        exact = self._exact.get(target)
        if exact is not None and exact[0] > rank:
            rank, ruling = exact
        return self._by_wildcard(target, rank) or ruling

    def _by_wildcard(self, target: str, rank: int) -> Ruling | None:
        spent = 0
        for wildcard in self._candidates(target):
            if wildcard.rank <= rank:
                break
            if spent > _MOST_PIECES:
                return Ruling(False, wildcard.ruling.line, _TOO_MANY)
            # a long piece costs more to look for
            spent += 1 + len(wildcard.needle) // 4
            if wildcard.needle in target:
                spent += len(wildcard.middles)
                if wildcard.matches(target):
                    return wildcard.ruling
        return None

    def _candidates(self, target: str) -> Iterable[_Wildcard]:
        wildcards = self._wildcards
        if len(wildcards) <= _TRIED_DIRECTLY:
            return wildcards
        grams = self._grams
        present = {target[at : at + _GRAM] for at in range(len(target) - _GRAM + 1)}
        found = list(self._short)
        for gram in present & grams.keys():
            found += grams[gram]
        found.sort()
        return (wildcards[index] for index in found)

    def _by_prefix(self, target: str) -> _Ranked:
        # The last prefix that sorts at or before the target is its longest prefix or extends that one.
        prefixes = self._prefixes
        index = bisect_right(prefixes, target) - 1
        while index >= 0:
            if target.startswith(prefixes[index]):
                return self._best[index]
            index = self._parents[index]
        return _NOTHING
