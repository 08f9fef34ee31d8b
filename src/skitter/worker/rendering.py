"""Renders pages beside the worker's loop: leases them, shows them in the browser, delivers what came of it.

Between the loop, which calls `look` on its pulse and takes deliveries, and `render/`. It fetches nothing: what a
page asks for comes from the archive, and what is not there is told to the frontier, which has it fetched like
anything else. A tab that waits for answers is frozen, and only a cache: lost, its page is rendered anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from skitter.clock import Clock
from skitter.committer.render_source import RenderSource
from skitter.committer.work_source import Delivery
from skitter.errors import RenderFailed, UsageError
from skitter.model import Rendered, RenderTask, UrlKey
from skitter.render.renderer import Renderer
from skitter.settings import Settings
from skitter.urls.keys import Keys
from skitter.worker.archived_answers import ArchivedAnswers
from skitter.worker.rendered_pages import RenderedPages, outcome_of
from skitter.worker.shown_page import ShownPage

UNABLE = "unable"
"""How the rendering of a page ends where there is no browser that can be used."""


class Rendering:
    """`_shown` are pages in a tab, with a lease or waiting for answers; those with a lease are `is_busy`."""

    def __init__(
        self,
        source: RenderSource,
        pages: RenderedPages,
        settings: Settings,
        clock: Clock,
        name: str,
        deliver: Callable[[Delivery], None],
    ) -> None:
        self._source = source
        self._pages = pages
        self._limits = settings.render
        self._clock = clock
        self._name = name
        self._deliver = deliver
        self._keys = Keys(settings.keys)
        self._archived = ArchivedAnswers(source, settings.render)
        self._renderer = Renderer(
            settings.render,
            clock,
            contact=settings.identity.contact,
            pictures=settings.render.screenshots,
        )
        self._starting: asyncio.Task[str] | None = None
        self._shown: dict[UrlKey, ShownPage] = {}
        self._running: set[asyncio.Task[None]] = set()

    @property
    def is_busy(self) -> bool:
        return any(page.task is not None for page in self._shown.values())

    async def look(self) -> None:
        """Takes as many pages as there are free tabs."""
        busy = sum(page.task is not None for page in self._shown.values())
        capacity = self._limits.tabs - busy
        if capacity > 0 and self._source.waiting:
            for task in await self._source.lease(self._name, capacity):
                self._begin(task)

    async def close(self) -> None:
        """Ends the browser; pages that are under way go back."""
        held = [(key, page.task.token) for key, page in self._shown.items() if page.task is not None]
        for running in tuple(self._running):
            running.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        if self._starting is not None:
            await asyncio.gather(self._starting, return_exceptions=True)
        await self._renderer.close()
        if held:
            await self._source.release(held)

    # -- one page

    def _begin(self, task: RenderTask) -> None:
        kept = self._shown.get(task.key)
        if kept is not None and kept.task is None:
            kept.take(task)
            self._spawn(kept.go_on())
            return
        page = ShownPage(task, self._archived, self._renderer, self._keys, self._limits, self._hand_over)
        self._shown[task.key] = page
        page.running = self._spawn(self._run(page))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        running = asyncio.get_running_loop().create_task(work)
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return running

    async def _run(self, page: ShownPage) -> None:
        try:
            if why := await self._start():
                self._settle(page, Rendered(ending=UNABLE, note=why))
                return
            await page.show()
            if page.task is None or page.rendered is None:
                return  # its tab was given up: it is rendered anew
            delivery = await self._pages.read(page.task, page, self._clock.now())
            page.task = None
            self._deliver(delivery)
        finally:
            if self._shown.get(page.key) is page:
                del self._shown[page.key]

    async def _start(self) -> str:
        """Why there is no browser to be used; empty when there is. Found out once."""
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._tried())
        return await asyncio.shield(self._starting)

    async def _tried(self) -> str:
        try:
            await self._renderer.start()
        except (RenderFailed, UsageError) as error:
            return str(error)
        return ""

    def _hand_over(self, page: ShownPage, result: Rendered) -> None:
        """The page waits for answers. Of the tabs that do, the oldest go first."""
        self._settle(page, result)
        waiting = [each for each in self._shown.values() if each.task is None and each is not page]
        for each in waiting[: max(0, len(waiting) + 1 - self._limits.waiting_tabs)]:
            each.give_up()

    def _settle(self, page: ShownPage, result: Rendered) -> None:
        task, page.task = page.task, None
        if task is not None:
            self._deliver(Delivery(outcome_of(task, self._clock.now(), result)))
