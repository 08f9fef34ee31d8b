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
from skitter.desk.bundles import Told
from skitter.model import Discovered, Fetched, Outcome, Via


class Offered:
    def __init__(self) -> None:
        self._told = Told()
        self.saved = 0

    def sifted(self, delivery: Delivery) -> Delivery:
        """Without the links that were told before; 0.1 us a link."""
        outcome = delivery.outcome
        result = outcome.result
        if not isinstance(result, Fetched) or not result.links:
            return delivery
        known = self._told.among([link.key for link in result.links])
        if not known:
            return delivery
        links = tuple([link for link in result.links if link.key not in known or not _is_own(outcome, link)])
        left_out = len(result.links) - len(links)
        self.saved += left_out
        result = replace(result, links=links, told_before=result.told_before + left_out)
        return replace(delivery, outcome=replace(outcome, result=result))

    def accepted(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            if isinstance(outcome.result, Fetched):
                self._told.add([link.key for link in outcome.result.links if _is_own(outcome, link)])

    def forget(self) -> None:
        self._told.forget()


def _is_own(outcome: Outcome, link: Discovered) -> bool:
    return link.via is Via.LINK and link.key[:8] == outcome.key[:8]
