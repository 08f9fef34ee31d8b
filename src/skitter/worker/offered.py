"""Which links of a page need not cross the wire, because an earlier page of the same host told of them.

On the worker's side, before a batch is sent. Nine of ten links of a page are known to the frontier; a link within
its host says nothing new the second time, while one from elsewhere counts as a vote and is always sent. Only
links of pages that were accepted are remembered, and none once the server was started anew: it may have lost its
last second. Bounded, by forgetting the older half.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from skitter.desk.brain import Delivery
from skitter.model import Discovered, Fetched, Outcome, Via

# 16 bytes each, some 20 MB in two sets.
_MOST = 100_000


class Offered:
    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._new: set[bytes] = set()
        self._old: set[bytes] = set()
        self.saved = 0

    def sifted(self, delivery: Delivery) -> Delivery:
        """Without the links that were told before; 0.1 us a link."""
        outcome = delivery.outcome
        result = outcome.result
        if not isinstance(result, Fetched) or not result.links:
            return delivery
        links = tuple([link for link in result.links if not self._is_old(outcome, link)])
        if len(links) == len(result.links):
            return delivery
        self.saved += len(result.links) - len(links)
        return replace(delivery, outcome=replace(outcome, result=replace(result, links=links)))

    def accepted(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            if isinstance(outcome.result, Fetched):
                self._new.update([link.key for link in outcome.result.links if _is_own(outcome, link)])
        if len(self._new) > self._most:
            self._old, self._new = self._new, set()

    def forget(self) -> None:
        self._new, self._old = set(), set()

    def _is_old(self, outcome: Outcome, link: Discovered) -> bool:
        return (link.key in self._new or link.key in self._old) and _is_own(outcome, link)


def _is_own(outcome: Outcome, link: Discovered) -> bool:
    return link.via is Via.LINK and link.key[:8] == outcome.key[:8]
