"""In which order the addresses of a host are dialled, and how long each may take.

Between the address guard and the connection: sees only addresses that may be dialled. They are dialled one
after the other, never two at once, because that would be two connections to one host. So each gets a share of
the time to connect, and an address that could not be reached lately goes last.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import chain, zip_longest

from skitter.clock import Clock

MOST_DIALLED = 3
REMEMBERED_FOR = 300.0
_MOST_REMEMBERED = 4096


class DialOrder:
    def __init__(self, connect_timeout: float, clock: Clock) -> None:
        self._timeout = connect_timeout
        self._clock = clock
        self._unreached: OrderedDict[str, float] = OrderedDict()

    def plan(self, addresses: Sequence[str]) -> list[tuple[str, float]]:
        """The addresses to dial one after the other, with the seconds for each: together the time to connect."""
        order = sorted(_alternate_families(addresses), key=self._was_unreached)[:MOST_DIALLED]
        return [(address, self._timeout / len(order)) for address in order]

    def note_unreached(self, address: str) -> None:
        self._unreached[address] = self._clock.now() + REMEMBERED_FOR
        self._unreached.move_to_end(address)
        if len(self._unreached) > _MOST_REMEMBERED:
            self._unreached.popitem(last=False)

    def _was_unreached(self, address: str) -> bool:
        return bool(self._unreached) and self._unreached.get(address, 0.0) > self._clock.now()


def _alternate_families(addresses: Sequence[str]) -> list[str]:
    """IPv4, IPv6, IPv4, ...: when one address cannot be reached, often its whole family cannot.

    IPv4 first, because a machine without a route for IPv6 is still more common than one without IPv4.
    """
    v4 = [address for address in addresses if ":" not in address]
    v6 = [address for address in addresses if ":" in address]
    return [address for address in chain.from_iterable(zip_longest(v4, v6)) if address]
