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
from skitter.render.base import Ending
from skitter.render.cdp import BrowserGone, CallFailed
from skitter.render.renderer import Renderer
from skitter.settings import Settings
from skitter.urls.keys import Keys
from skitter.worker.renders.archived_answers import ArchivedAnswers
from skitter.worker.renders.rendered_pages import RenderedPages, outcome_of
from skitter.worker.renders.shown_page import ShownPage

_TRIES = 3


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
        self._fault: BaseException | None = None
        self._is_unable = False

    @property
    def is_busy(self) -> bool:
        return any(page.task is not None for page in self._shown.values())

    async def look(self) -> None:
        """Takes as many pages as there are free tabs."""
        if self._fault is not None:
            raise self._fault
        busy = sum(page.task is not None for page in self._shown.values())
        capacity = self._limits.tabs - busy
        if capacity > 0 and self._source.waiting and not self._is_unable:
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
        if kept is not None and kept.task is None and not kept.is_given_up:
            kept.take(task)
            self._spawn(kept.go_on())
            return
        page = ShownPage(task, self._archived, self._renderer, self._keys, self._limits, self._hand_over)
        self._shown[task.key] = page
        page.running = self._spawn(self._run(page))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        running = asyncio.get_running_loop().create_task(work)
        self._running.add(running)
        running.add_done_callback(self._ran)
        return running

    def _ran(self, running: asyncio.Task[None]) -> None:
        self._running.discard(running)
        if not running.cancelled() and (error := running.exception()) is not None:
            self._fault = self._fault or error

    async def _run(self, page: ShownPage) -> None:
        try:
            if why := await self._start():
                await self._decline(page, why)
                return
            try:
                await page.show()
            except (RenderFailed, UsageError, OSError) as error:
                # no browser could be started: others may have taken all the memory
                self._settle(page, Rendered(ending=Ending.DIED, note=str(error)))
                return
            if page.task is not None and page.is_given_up:
                await self._source.release([(page.key, page.task.token)])
            if page.task is None or page.rendered is None or page.is_given_up:
                return  # it is rendered anew
            delivery = await self._pages.read(page.task, page, self._clock.now())
            page.task = None
            self._deliver(delivery)
        finally:
            if self._shown.get(page.key) is page:
                del self._shown[page.key]

    async def _decline(self, page: ShownPage, why: str) -> None:
        """There is no browser that can be used here. Where others work too, one of them may have one; else the
        crawl ends, and says so: what is to be rendered is not lost."""
        task, page.task = page.task, None
        if task is not None:
            await self._source.release([(task.key, task.token)])
        self._is_unable = True
        if not self._source.has_others:
            raise RenderFailed(why)

    async def _start(self) -> str:
        """Why there is no browser to be used; empty when there is. Found out once."""
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._tried())
        return await asyncio.shield(self._starting)

    async def _tried(self) -> str:
        """On a busy machine a browser may be too slow to be tried, or be killed meanwhile: so more than once."""
        why = ""
        for _ in range(_TRIES):
            try:
                await self._renderer.start()
            except UsageError as error:
                return str(error)
            except RenderFailed as error:
                why = str(error)
            except (BrowserGone, CallFailed, TimeoutError) as error:
                why = f"pages are not rendered: the browser ended while it was tried ({error})"
            else:
                return ""
            await self._renderer.close()
        return why

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
