"""What the worker in the desk's own process sees of it while others in other processes work as well.

Between `worker/loop.py` and the desk. Nothing crosses a wire, and what the desk says is done when it is said; but
hosts are shared out as among all others, by the crew: the more the desk has to do with what others deliver, the
fewer are for this worker, whose core is the desk's. The desk's own duties are the crawl's: a worker among
others does not know when a crawl is over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skitter.clock import Clock
from skitter.desk.brain import Delivery, Standing, nobody
from skitter.desk.desk import Desk
from skitter.desk.exertion import Exertion
from skitter.desk.reception import Reception
from skitter.desk.wire import LeaseAsk
from skitter.model import Host, HostLease, Token

_INCARNATION = "own"


class Foreman:
    """A `Brain`. `in_flight` and `held` are the worker's requests and hosts, for the crew to know."""

    def __init__(self, desk: Desk, reception: Reception, clock: Clock) -> None:
        self._desk = desk
        self._reception = reception
        self._exertion = Exertion(clock)
        self.in_flight: Callable[[], int] = lambda: 0
        self.held: Callable[[], int] = lambda: 0

    @property
    def standing(self) -> Standing:
        return self._desk.standing

    @property
    def uncommitted(self) -> int:
        return self._desk.uncommitted

    async def lease(self, worker: str, capacity: int, duration: float) -> list[HostLease]:
        """For as long as the crew's leases are, whatever `duration`: all are of one crawl."""
        ask = LeaseAsk(
            worker=worker,
            incarnation=_INCARNATION,
            sequence=0,
            capacity=capacity,
            in_flight=self.in_flight(),
            held=self.held(),
            busy=self._exertion.look(),
        )
        return await self._reception.given(ask)

    async def settle(self, deliveries: Sequence[Delivery], committed: Callable[[], None] = nobody) -> None:
        await self._desk.settle(deliveries, committed)

    async def renew(self, leases: Sequence[tuple[Host, Token]], duration: float) -> list[float | None] | None:
        return await self._desk.renew(leases, duration)

    async def release(self, leases: Sequence[tuple[Host, Token]]) -> None:
        await self._desk.release(leases)

    async def beat(self, as_of: float | None = None) -> None:
        pass
