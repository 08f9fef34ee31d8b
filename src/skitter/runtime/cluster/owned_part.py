"""One partition that this node has: opened, kept, and let go.

A partition is the services of a crawl of its own: frontier, archive, committer, upload, checkpoints, and a relay
for its post. It ends when the node lets go of it, when another node has taken it, or by a fault of its own, and
harms no other partition then.

    opening     its log is claimed, its folder catches up
    open        it is among those that workers and operators find here
    letting go  nobody finds it here any more: its archive is finished and uploaded, its tables are checkpointed
    over        its lock is free; `fault` says why, unless the node let go of it
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, cast

from msgspec.structs import replace

from skitter.errors import SkitterError
from skitter.folder import CrawlFolder
from skitter.frontier.cluster.base import Part
from skitter.frontier.cluster.relay import Relay, Tell
from skitter.frontier.opening import PartOpening
from skitter.runtime.cluster.grants import Grants
from skitter.runtime.lifecycle import run_chores
from skitter.settings import Settings
from skitter.settings.load import dump_toml
from skitter.telemetry import Telemetry
from skitter.wiring import CrawlServices, close_archive, open_services

# Seconds between two looks into an outbox that was empty; and until one is tried again that could not be told.
_BETWEEN_POSTS, _AFTER_TROUBLE = 0.05, 0.5
# To upload what is left, when it is let go of; the next owner fetches again what was not.
_LONGEST_FAREWELL = 30.0


class OwnedPart:
    def __init__(
        self,
        number: int,
        folder: CrawlFolder,
        settings: Settings,
        telemetry: Telemetry,
        opening: PartOpening,
        tell: Tell,
        grants: Grants,
    ) -> None:
        self.number = number
        self._folder = folder
        self._settings = settings
        self._telemetry = telemetry
        self._opening = opening
        self._tell = tell
        self._grants = grants
        self._letting_go = asyncio.Event()
        self.services: CrawlServices | None = None
        self.relay: Relay | None = None
        self.fault: BaseException | None = None

    @property
    def part(self) -> Part | None:
        return cast(Part, self.services.frontier) if self.services is not None else None

    def let_go(self) -> None:
        self._letting_go.set()

    @property
    def is_letting_go(self) -> bool:
        return self._letting_go.is_set()

    def change_settings(self, settings: Settings) -> None:
        """Of those that can change while it runs; its page limit is what it was granted."""
        self._settings = replace(
            self._settings, politeness=replace(self._settings.politeness, delay=settings.politeness.delay)
        )
        if self.services is not None:
            self.services.change_settings(self._grants.limited(self._settings, self.number))

    async def run(self, opened: Callable[[], None]) -> None:
        """Until it is over. `opened` is called when it can be asked."""
        try:
            self._folder.lock()
            try:
                self._folder.write_settings(dump_toml(self._settings))
                settings = await self._grants.begin(self.number, self._settings)
                async with open_services(self._folder, settings, self._telemetry, self._opening) as services:
                    await services.frontier.allow_private(settings.fetch.allow_private)
                    self.services = services
                    opened()
                    await self._keep(services)
            finally:
                self.services = None
                self._folder.unlock()
        except (SkitterError, OSError) as error:
            self.fault = error

    async def _keep(self, services: CrawlServices) -> None:
        uploader = services.uploader
        assert uploader is not None
        self.relay = Relay(self.number, cast(Part, services.frontier), self._tell)
        uploading = asyncio.create_task(uploader.run())
        duties = [
            asyncio.create_task(run_chores(services)),
            asyncio.create_task(self._carry_posts(self.relay)),
            asyncio.create_task(self._grants.keep(self.number, services, lambda: self._settings)),
        ]
        leaving = asyncio.create_task(self._letting_go.wait())
        try:
            try:
                await asyncio.wait((*duties, uploading, leaving), return_when=asyncio.FIRST_COMPLETED)
            finally:
                self.services = None  # nobody finds it here from now on
                services.committer.drain()
                await _end([*duties, leaving])
            for duty in (*duties, uploading):
                if duty.done() and not duty.cancelled() and (error := duty.exception()) is not None:
                    raise error
            if self.is_letting_go:
                await self._leave(services, uploading)
        finally:
            await _end([uploading])

    async def _carry_posts(self, relay: Relay) -> None:
        while True:
            moved = await relay.run_once()
            await asyncio.sleep(0 if moved else _AFTER_TROUBLE if relay.trouble else _BETWEEN_POSTS)

    async def _leave(self, services: CrawlServices, uploading: asyncio.Task[None]) -> None:
        """The last commits are made, then nothing is asked of it: its next owner finds all that it knew."""
        assert services.uploader is not None
        async with services.frontier.settling([]):
            pass  # whoever is committing has finished
        await close_archive(services.archive, services.frontier)
        services.uploader.finish()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_FAREWELL):
                await asyncio.shield(uploading)
        if services.checkpoints is not None:
            await services.checkpoints.take()


async def _end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def settings_of_part(settings: Settings, number: int, parts_a_node: int) -> Settings:
    """Those of the crawl, as one partition has them: names of its own, and its share of the node's memory."""
    return replace(
        settings,
        archive=replace(settings.archive, prefix=f"{settings.archive.prefix}-p{number:04}"),
        frontier=replace(
            settings.frontier, memory=max(_LEAST_MEMORY, settings.frontier.memory // max(1, parts_a_node))
        ),
    )


_LEAST_MEMORY = 8_000_000
