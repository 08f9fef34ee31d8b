"""The links of a sitemap go ahead of its outcome, a batch a transaction.

Before a commit. A file of 50,000 URLs in one transaction would keep every other worker waiting for half a
second. Its links are only discoveries: if the outcome is never settled, they are known all the same, and the next
reading of the file finds them so. The last batch stays with the outcome. Never touches the links of a page: traps
are told by all of them together.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from skitter.committer.work_source import Delivery
from skitter.frontier.base import Admitted, Frontier, Settlement
from skitter.model import Fetched, Via

_LISTED = (Via.SITEMAP, Via.FEED)


class LinksAhead:
    """Of one commit: by the place of each delivery, what was said of its links that went ahead."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._told: dict[int, list[Admitted]] = {}

    async def send(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        """The deliveries, without what went ahead."""
        if not any(map(_is_long, deliveries)):
            return deliveries
        return [await self._send(number, delivery) for number, delivery in enumerate(deliveries)]

    async def _send(self, number: int, delivery: Delivery) -> Delivery:
        result = delivery.outcome.result
        if not _is_long(delivery) or not isinstance(result, Fetched):
            return delivery
        *ahead, last = result.link_batches
        self._told[number] = await self._frontier.admit_listed(ahead)
        return replace(
            delivery, outcome=replace(delivery.outcome, result=replace(result, link_batches=(last,)))
        )

    def with_counts(self, settlements: list[Settlement]) -> list[Settlement]:
        for number, told in self._told.items():
            one = settlements[number]
            settlements[number] = replace(
                one,
                added=one.added + sum(part.added for part in told),
                known=one.known + sum(part.known for part in told),
                refused=one.refused + sum(part.refused for part in told),
            )
        return settlements


def _is_long(delivery: Delivery) -> bool:
    result = delivery.outcome.result
    return (
        isinstance(result, Fetched) and len(result.link_batches) > 1 and result.link_batches[0].via in _LISTED
    )
