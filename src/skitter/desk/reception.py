"""What a desk says to the asks of workers in other processes: join, lease, settle, renew, release.

Between the wires (`frames.py` for those that this process started, `service/work.py` for others) and the desk.
Both sides are skitter of one version, so none of it is part of the documented API. Never settles a batch twice:
what was answered is answered again with the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from skitter import __version__
from skitter.clock import Clock
from skitter.desk.brain import LINKS_AT_ONCE, Delivery, Standing, commits_of
from skitter.desk.crew import Crew
from skitter.desk.wire import (
    LEASE,
    SETTLE,
    Given,
    JoinAsk,
    Joined,
    LeaseAsk,
    LeasesAsk,
    Released,
    Renewed,
    SettleAsk,
    Taken,
)
from skitter.frontier import bundles
from skitter.frontier.base import Settled
from skitter.model import Fetched, HostLease
from skitter.settings import Settings

# Pages that are committed together, in some 7 ms; then others have their turn, leases first. With 16 what a
# commit takes by itself began to show: the look for near pages alone was 5 % of all, with 64 it is 1.
_AT_ONCE = 32


class Unacceptable(Exception):
    """An ask that no server of this version can take, however often it is sent."""


class Reception:
    def __init__(
        self,
        crew: Crew,
        settings: Settings,
        clock: Clock,
        is_paused: Callable[[], bool] = lambda: False,
        at_once: int = _AT_ONCE,
    ) -> None:
        """So many pages are committed `at_once`; where nobody else asks for leases it may be more."""
        self._crew = crew
        self._at_once = at_once
        self._settings = settings
        self._clock = clock
        self._is_paused = is_paused

    async def join(self, ask: JoinAsk) -> Joined:
        if ask.version != __version__:
            raise Unacceptable(
                f"the worker is skitter {ask.version}, the server {__version__}: install the same version"
            )
        return Joined(**self._signed(), settings=self._settings)

    async def lease(self, ask: LeaseAsk) -> Given:
        self._crew.heard(ask)
        leases = await self._crew.once(LEASE, ask, partial(self._leased, ask))
        return Given(**self._signed(), leases=leases)

    async def given(self, ask: LeaseAsk) -> list[HostLease]:
        """For a worker in this very process, whose asks cannot get lost."""
        self._crew.heard(ask)
        return await self._leased(ask)

    async def settle(self, ask: SettleAsk) -> Taken:
        self._crew.heard(ask, saved=ask.saved)
        _check(ask.deliveries)
        if ask.server and ask.server != self._crew.server:
            return Taken(**self._signed(), settled=[])
        settled, leases = await self._crew.once(SETTLE, ask, partial(self._settled, ask))
        return Taken(**self._signed(), settled=settled, leases=leases)

    async def renew(self, ask: LeasesAsk) -> Renewed:
        deadlines = await self._crew.desk.renew(ask.leases, self._settings.frontier.lease_duration)
        return Renewed(**self._signed(), deadlines=deadlines)

    async def release(self, ask: LeasesAsk) -> Released:
        await self._crew.desk.release(ask.leases)
        return Released(**self._signed())

    async def _settled(self, ask: SettleAsk) -> tuple[list[Settled], list[HostLease]]:
        """Hosts are leased again with the commit that frees them: the next turn may be another worker's, who
        knows neither their connections nor their links."""
        verdicts: list[Settled] = []
        found: list[HostLease] = []
        for part in commits_of(ask.deliveries, self._at_once, LINKS_AT_ONCE):
            settlements = await self._crew.desk.settled(part)
            verdicts += [settlement.settled for settlement in settlements]
            found += await self._leased(ask, len(found))
        return verdicts, found

    async def _leased(self, ask: LeaseAsk | SettleAsk, before: int = 0) -> list[HostLease]:
        """So many were given `before` in the same answer."""
        crew, duration = self._crew, self._settings.frontier.lease_duration
        if not ask.capacity or self._is_paused():
            return []
        share = crew.share(ask)
        room = max(0, share - before)
        # Eight hosts that end together leave a worker without any while the desk commits what came of them all.
        found = await crew.desk.lease(crew.name_of(ask), room, duration, staggered=True) if room else []
        crew.gave(ask, share, found, before)
        return found

    def _signed(self) -> dict[str, Any]:
        standing = Standing.PAUSED if self._is_paused() else self._crew.desk.standing
        return {"server": self._crew.server, "now": self._clock.now(), "standing": standing}


def _check(deliveries: Sequence[Delivery]) -> None:
    try:
        for delivery in deliveries:
            if isinstance(delivery.outcome.result, Fetched):
                bundles.check(delivery.outcome.result.bundles)
    except ValueError as error:
        raise Unacceptable(f"links: {error}") from error
