"""Links that need not cross the wire, because an earlier page of the same host sent them already.

On the worker's side, before a batch is sent. The frontier knows nine of ten links of a page. A link within its
host says nothing new the second time; one from elsewhere counts as a vote, and one with a priority may raise its
URL's: both are always sent. Only links of accepted pages are remembered, and none once the server was started
anew: it may have lost its last second. Bounded.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from skitter.committer.work_source import Delivery
from skitter.frontier.keyset import KnownKeys
from skitter.frontier.link_batches import size, split
from skitter.model import Fetched, LinkBatch, Outcome, Result, Via

_HOST = 8
_ANY_DEPTH = 1 << 31
# An enum's member takes as long to find as the rest of the question whether a link was told.
_LINK = Via.LINK


class SentLinks:
    """Keys of links that accepted pages told of, within their own hosts. Absence means nothing."""

    def __init__(self) -> None:
        # the smallest there is: some 600,000 keys in 4.2 MB
        self._sent = KnownKeys(0)
        self.saved = 0
        self.deepest = _ANY_DEPTH
        """Deeper links are refused, and looked at again when a shorter way leads to them."""

    def leave_out_sent(self, delivery: Delivery) -> Result:
        """The result as it crosses the wire: without the links that were told before; 10 us a page."""
        result, ident = delivery.outcome.result, delivery.outcome.key[:_HOST]
        if not isinstance(result, Fetched) or not result.link_batches:
            return result
        url = delivery.parcel.url if delivery.parcel else ""
        sent: list[LinkBatch] = []
        left_out, inside = 0, b""
        for link_batch in result.link_batches:
            numbers = (
                self._sent.find_missing(link_batch.keys, ident)
                if link_batch.via is _LINK and link_batch.priority is None
                else range(size(link_batch))
            )
            if len(numbers) == size(link_batch):
                sent.append(link_batch)
                continue
            fewer, marks = split(link_batch, numbers, url)
            left_out += size(link_batch) - len(numbers)
            inside += marks
            if numbers:
                sent.append(fewer)
        if not left_out:
            return result
        self.saved += left_out
        return replace(result, link_batches=tuple(sent), already_sent=left_out, already_sent_here=inside)

    def remember(self, outcomes: Iterable[Outcome]) -> None:
        """As they crossed the wire: what was left out of them was told already."""
        for outcome in outcomes:
            if isinstance(outcome.result, Fetched):
                for link_batch in outcome.result.link_batches:
                    # a page at depth 0 may be a host's probe, whose links the frontier does not take
                    if link_batch.via is _LINK and 1 < link_batch.depth <= self.deepest:
                        self._sent.add_own(link_batch.keys, outcome.key[:_HOST])

    def forget(self) -> None:
        self._sent.clear()
