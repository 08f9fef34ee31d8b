"""Which links of a page need not cross the wire, because an earlier page of the same host told of them.

On the worker's side, before a batch is sent. Nine of ten links of a page are known to the frontier; a link within
its host says nothing new the second time, while one from elsewhere counts as a vote and is always sent. Only
links of pages that were accepted are remembered, and none once the server was started anew: it may have lost its
last second. Bounded: keys in a table as the frontier's own.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from skitter.desk.brain import Delivery
from skitter.frontier.bundles import sifted, size
from skitter.frontier.keyset import CertainKeys
from skitter.model import Bundle, Fetched, Outcome, Result, Via

_HOST = 8
# An enum's member takes as long to find as the rest of the question whether a link was told.
_LINK = Via.LINK


class Offered:
    """Keys of links that accepted pages told of, within their own hosts. Absence means nothing."""

    def __init__(self) -> None:
        # the smallest there is: some 600,000 keys in 4.2 MB
        self._told = CertainKeys(0)
        self.saved = 0

    def sifted(self, delivery: Delivery) -> Result:
        """The result as it crosses the wire: without the links that were told before; 10 us a page."""
        result, ident = delivery.outcome.result, delivery.outcome.key[:_HOST]
        if not isinstance(result, Fetched) or not result.bundles:
            return result
        url = delivery.parcel.url if delivery.parcel else ""
        sent: list[Bundle] = []
        left_out, inside = 0, b""
        for bundle in result.bundles:
            numbers = self._told.lacks(bundle.keys, ident) if bundle.via is _LINK else range(size(bundle))
            if len(numbers) == size(bundle):
                sent.append(bundle)
                continue
            fewer, marks = sifted(bundle, numbers, url)
            left_out += size(bundle) - len(numbers)
            inside += marks
            if numbers:
                sent.append(fewer)
        if not left_out:
            return result
        self.saved += left_out
        return replace(result, bundles=tuple(sent), told_before=left_out, told_inside=inside)

    def accepted(self, outcomes: Iterable[Outcome]) -> None:
        """As they crossed the wire: what was left out of them was told already."""
        for outcome in outcomes:
            if isinstance(outcome.result, Fetched):
                for bundle in outcome.result.bundles:
                    # a page at depth 0 may be a host's probe, whose links the frontier does not take
                    if bundle.via is _LINK and bundle.depth > 1:
                        self._told.add_own(bundle.keys, outcome.key[:_HOST])

    def forget(self) -> None:
        self._told.clear()
