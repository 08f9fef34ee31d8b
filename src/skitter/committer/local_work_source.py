"""The work source of the worker in the crawl's own process, while other processes work as well.

Between `worker/loop.py` and the committer. Nothing crosses a wire. The registry shares out hosts among all
workers: the more the committer has to do for the others, the fewer this one gets, because both run on one core.
The pool does the committer's periodic chores: a worker among others does not know when a crawl is over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skitter.clock import Clock
from skitter.committer.committer import Committer
from skitter.committer.cpu_share import CpuShare
from skitter.committer.render_source import RenderSource
from skitter.committer.work_source import Delivery, Standing, nobody
from skitter.committer.worker_messages import LeaseRequest
from skitter.committer.worker_rpc import WorkerRpc
from skitter.model import Host, HostLease, Token

_INCARNATION = "own"


class LocalWorkSource:
    """A `WorkSource`. It stays beside `RemoteWorkSource` because the crawl's own process would otherwise send its
    pages to itself over a socket, about 10 us of CPU a page, and because its first host need not wait for a
    process to start. `in_flight` and `held` are the worker's requests and hosts, for the registry to know."""

    def __init__(self, committer: Committer, rpc: WorkerRpc, clock: Clock) -> None:
        self._committer = committer
        self._rpc = rpc
        self._cpu_share = CpuShare(clock)
        self.in_flight: Callable[[], int] = lambda: 0
        self.held: Callable[[], int] = lambda: 0

    @property
    def standing(self) -> Standing:
        return self._committer.standing

    @property
    def uncommitted(self) -> int:
        return self._committer.uncommitted

    @property
    def renders(self) -> RenderSource:
        return self._committer.renders

    async def lease(self, worker: str, capacity: int, duration: float) -> list[HostLease]:
        """For as long as the registry's leases are, whatever `duration`: all are of one crawl."""
        request = LeaseRequest(
            worker=worker,
            incarnation=_INCARNATION,
            sequence=0,
            capacity=capacity,
            in_flight=self.in_flight(),
            held=self.held(),
            busy=self._cpu_share.measure(),
        )
        return await self._rpc.lease_directly(request)

    async def settle(self, deliveries: Sequence[Delivery], committed: Callable[[], None] = nobody) -> None:
        await self._committer.settle(deliveries, committed)

    async def renew(self, leases: Sequence[tuple[Host, Token]], duration: float) -> list[float | None] | None:
        return await self._committer.renew(leases, duration)

    async def release(self, leases: Sequence[tuple[Host, Token]]) -> None:
        await self._committer.release(leases)

    async def beat(self, as_of: float | None = None) -> None:
        pass
