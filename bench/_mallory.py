"""A worker that was taken over: it joins, leases a host now and then, and delivers what no worker could make.

Beside the honest workers of `bench.soak`, in a thread. What it sends is tried on the check first: only what must
be refused goes out, so that the account of the crawl stays exact.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time

import msgspec
from tests.fuzz.deliveries import Variants, honest
from tests.fuzz.mutation import Mutator

from skitter.clock import SystemClock
from skitter.committer.delivery_check import DeliveryCheck
from skitter.committer.worker_messages import SETTLE, SettleRequest, SettleResponse
from skitter.errors import SkitterError
from skitter.model import HostLease
from skitter.settings import Settings
from skitter.worker.remote.http_link import Away, HttpLink, Refused
from skitter.worker.remote.remote_work_source import RemoteWorkSource

_REST = 10.0
_decode = msgspec.msgpack.Decoder(SettleResponse).decode


class Mallory:
    """`sent` malformed deliveries; `taken` are those that were not refused: a fault. `waits` is how many
    milliseconds each lease took, on a connection of its own."""

    def __init__(self, where: str, seed: int) -> None:
        self._where = where
        self._variants = Variants(Mutator(seed))
        self._ended = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self.sent = self.refused_calls = self.taken = 0
        self.waits: list[float] = []

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join(60)

    async def _run(self) -> None:
        while not self._ended.is_set():
            link = HttpLink(self._where)
            try:
                source = RemoteWorkSource(link, SystemClock(), "mallory")
                settings = await source.join()
                began = time.perf_counter()
                leases = await source.lease("", 1, 60.0)
                self.waits.append((time.perf_counter() - began) * 1000)
                for lease in leases:
                    await self._attack(link, source, lease, settings)
                await source.release([(lease.host, lease.token) for lease in leases])
            except (Away, Refused, SkitterError):
                self.refused_calls += 1
            finally:
                await link.close()
            await asyncio.sleep(_REST)

    async def _attack(
        self, link: HttpLink, source: RemoteWorkSource, lease: HostLease, settings: Settings
    ) -> None:
        check, now = DeliveryCheck(settings), SystemClock().now()
        made = honest(lease, lease.tasks[0], now, 1)
        for number, message in enumerate(self._variants.of(made)):
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                bad = msgspec.msgpack.decode(message, type=type(made))
                if not check.fault(bad, now):
                    continue
                seals = source._seals.of([(lease.host, lease.token)])
                request = SettleRequest(
                    worker="mallory", incarnation="m", sequence=number, deliveries=[bad], seals=seals
                )
                self.sent += 1
                told = _decode(await link.post(SETTLE, msgspec.msgpack.encode(request)))
                self.taken += 0 not in told.refused
