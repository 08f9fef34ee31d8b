"""The page limit of a crawl, granted to its partitions in blocks, in advance.

Beside each partition that a node has. What is granted is in the database, and its sum is never above the limit:
so the limit holds whoever dies. A partition that has nothing left to do gives back what it did not use. Without a
limit nothing is asked.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from msgspec.structs import replace

from skitter.errors import LogFailed
from skitter.frontier.log.members import Members
from skitter.settings import Settings
from skitter.wiring import CrawlServices

_LOOK = 0.5
_LARGEST_BLOCK = 1_000


class Grants:
    def __init__(self, members: Members, limit: int, parts: int) -> None:
        self._members = members
        self._limit = limit
        # so small that every partition gets some, and the last ones are shared out
        self._block = max(1, min(_LARGEST_BLOCK, limit // (4 * parts)))
        self._granted: dict[int, int] = {}

    def change_limit(self, limit: int) -> None:
        self._limit = limit

    async def begin(self, part: int, settings: Settings) -> Settings:
        """The partition's own limit: what it was granted, or its first block."""
        if not self._limit:
            return settings
        known = await asyncio.to_thread(self._members.granted)
        self._granted[part] = known.get(part) or await self._ask(part)
        return self.limited(settings, part)

    async def keep(self, part: int, services: CrawlServices, settings: Callable[[], Settings]) -> None:
        """As long as the partition is here."""
        while True:
            if self._limit:
                # while the database is away it goes on with what it has
                with contextlib.suppress(LogFailed):
                    await self._look(part, services, settings)
            await asyncio.sleep(_LOOK)

    async def _look(self, part: int, services: CrawlServices, settings: Callable[[], Settings]) -> None:
        horizon, stats = await services.frontier.horizon(), await services.frontier.stats()
        granted = self._granted.setdefault(part, 0)
        has_work = horizon.next_at is not None or horizon.leased_hosts > 0
        if has_work and (horizon.limit_reached or not granted):
            self._granted[part] = await self._ask(part)
        elif not has_work and granted > stats.pages:
            await asyncio.to_thread(self._members.give_back, part, stats.pages)
            self._granted[part] = stats.pages
        if self._granted[part] != granted:
            services.change_settings(self.limited(settings(), part))
        # nothing granted is no limit of 0, which would be none at all
        if self._granted[part]:
            services.committer.resume()
        else:
            services.committer.pause()

    async def _ask(self, part: int) -> int:
        return await asyncio.to_thread(self._members.grant, part, self._block, self._limit)

    def limited(self, settings: Settings, part: int) -> Settings:
        """With the partition's own limit."""
        if not self._limit or part not in self._granted:
            return settings
        return replace(settings, crawl=replace(settings.crawl, max_pages=max(1, self._granted[part])))
