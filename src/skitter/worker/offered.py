"""Which links of a page need not cross the wire, because an earlier page of the same host told of them.

On the worker's side, before a batch is sent. Nine of ten links of a page are known to the frontier; a link within
its host says nothing new the second time, while one from elsewhere counts as a vote and is always sent. Only
links of pages that were accepted are remembered, and none once the server was started anew: it may have lost its
last second. Bounded, by forgetting the older half.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from skitter.desk.brain import Delivery
from skitter.frontier.bundles import bundled, keys_of
from skitter.model import Discovered, Fetched, Outcome, Result, Via
from skitter.schedule.traps import MARK
from skitter.urls.skeleton import section

# Keys, in each of two sets: some 20 MB in all.
_MOST = 100_000
# An enum's member takes as long to find as the rest of the question whether a link was told.
_LINK = Via.LINK


class Told:
    """Keys of links that accepted pages told of, within their own hosts: telling of them again says nothing new.
    Bounded, by forgetting the older half. Absence means nothing."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._new: set[bytes] = set()
        self._old: set[bytes] = set()

    def among(self, keys: Sequence[bytes]) -> set[bytes]:
        """Those of the keys that were told."""
        known = self._new.intersection(keys)
        return known | self._old.intersection(keys) if self._old and len(known) < len(keys) else known

    def add(self, keys: Iterable[bytes]) -> None:
        self._new.update(keys)
        if len(self._new) > self._most:
            self._old, self._new = self._new, set()

    def forget(self) -> None:
        self._new, self._old = set(), set()


class Offered:
    def __init__(self) -> None:
        self._told = Told()
        self.saved = 0

    def sifted(self, delivery: Delivery) -> Result:
        """The result as it crosses the wire: its links in bundles, without those that were told before; 0.5 us a
        link."""
        outcome = delivery.outcome
        result, host = outcome.result, outcome.host
        if not isinstance(result, Fetched) or not result.links:
            return result
        told = self._told.among([link.key for link in result.links])
        sent: list[Discovered] = []
        left_out: list[Discovered] = []
        for link in result.links:
            is_told = link.key in told and link.host == host and link.via is _LINK
            (left_out if is_told else sent).append(link)
        self.saved += len(left_out)
        return replace(
            result,
            links=(),
            bundles=bundled(sent),
            told_before=len(left_out),
            told_inside=_marks_inside(delivery.parcel.url, left_out) if delivery.parcel else b"",
        )

    def accepted(self, outcomes: Iterable[Outcome]) -> None:
        """As they crossed the wire: what was left out of them was told already."""
        for outcome in outcomes:
            if isinstance(outcome.result, Fetched):
                for bundle in outcome.result.bundles:
                    if bundle.via is _LINK and bundle.host == outcome.host:
                        self._told.add(keys_of(bundle))

    def forget(self) -> None:
        self._told.forget()


def _marks_inside(url: str, links: Iterable[Discovered]) -> bytes:
    """Of links within the section that the page lies in, but not to the folders that it lies in: from these the
    frontier learns whether a section has an end (frontier/rocks/growth.py)."""
    name = section(url)
    inside = [link for link in links if link.url.startswith(name) and not url.startswith(link.url)]
    return b"".join([link.key[-MARK:] for link in inside])
