"""One page in a tab, through the rounds of its rendering: it asks, waits, and goes on when answers have come.

Between `rendering.py`, which has the leases, and the renderer. A page without a lease waits for answers: its tab
is frozen, it holds no permit, and it is given up after `render.patience`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from skitter.frontier.link_batches import pack
from skitter.model import Discovered, Rendered, RenderTask, Standby, TaskKind, Via
from skitter.render.base import Answer, Asked, Ending, PageToRender
from skitter.render.base import Rendered as Taken
from skitter.render.renderer import Renderer
from skitter.settings.rendering import RenderSettings
from skitter.urls.canonical import host_of, normalise
from skitter.urls.keys import Keys
from skitter.urls.scope import registrable_domain
from skitter.worker.renders.archived_answers import ArchivedAnswers, Origin

WAITING = "waiting"
# Seconds in which a page that waits asks for nothing more: then it is said what it waits for. Longer than what
# the tab takes to freeze.
_COMPANY = 0.15
# Data and frames come from the page's own domain; scripts from anywhere.
_OF_OWN_DOMAIN = frozenset(("XHR", "Fetch", "Document"))


class ShownPage:
    """An `Answers`. `task` is None while it waits, and when it has ended."""

    def __init__(
        self,
        task: RenderTask,
        archived: ArchivedAnswers,
        renderer: Renderer,
        keys: Keys,
        limits: RenderSettings,
        hand_over: Callable[[ShownPage, Rendered], None],
    ) -> None:
        self.key = task.key
        self.task: RenderTask | None = task
        self._first = task
        self._archived = archived
        self._renderer = renderer
        self._keys = keys
        self._limits = limits
        self._hand_over = hand_over
        self._round = task.round
        self._domain = _domain(task.url)
        self._pending: dict[str, asyncio.Future[None]] = {}
        self._told: set[str] = set()
        self._waited_for: set[str] = set()
        self._saying: asyncio.TimerHandle | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._has_permit = False
        self.running: asyncio.Task[None] | None = None
        self.is_given_up = False
        self.origin: Origin | None = None
        self.rendered: Taken | None = None
        self.elsewhere = 0

    async def show(self) -> None:
        """Until it is done: `rendered` says how. Without an `origin` there was nothing to show."""
        self.origin = await self._archived.origin(self._first.url)
        if self.origin is None:
            self.rendered = Taken(url=self._first.url, ending=Ending.NO_PAGE)
            return
        page = PageToRender(
            url=self._first.url,
            answer=self.origin.answer,
            fetched_at=_seconds(self.origin.record.date),
            screenshots=self._limits.screenshots,
        )
        await self._take_permit()
        try:
            self.rendered = await self._renderer.show(page, self)
        finally:
            self._cancel_timers()
            self._give_permit()

    def take(self, task: RenderTask) -> None:
        """It is leased again: there are answers to what it waits for."""
        self._cancel_timers()
        self.task, self._round = task, task.round

    async def go_on(self) -> None:
        await self._take_permit()
        self._waited_for |= self._told
        self._told = set()
        pending, self._pending = self._pending, {}
        for each in pending.values():
            if not each.done():
                each.set_result(None)

    def give_up(self) -> None:
        if self.running is not None and self.task is None:
            self.is_given_up = True
            self.running.cancel()

    # -- what it asks for

    async def find(self, asked: Asked) -> Answer | None:
        url = normalise(asked.url)
        if url is None:
            return None
        while True:
            at = await self._archived.standing(url)
            if at.standby is Standby.HELD:
                return await self._archived.answer(url, at)
            if at.standby is Standby.REFUSED or not self._may_wait(url, asked):
                return None
            await self._wait_for(url)

    def _may_wait(self, url: str, asked: Asked) -> bool:
        if asked.kind in _OF_OWN_DOMAIN and _domain(url) != self._domain:
            self.elsewhere += 1
            return False
        return self._round < self._limits.max_rounds and url not in self._waited_for

    async def _wait_for(self, url: str) -> None:
        loop = asyncio.get_running_loop()
        answered = self._pending.get(url)
        if answered is None:
            answered = self._pending[url] = loop.create_future()
            if self._saying is not None:
                self._saying.cancel()
            self._saying = loop.call_later(_COMPANY, self._say)
        try:
            await asyncio.shield(answered)
        except asyncio.CancelledError:
            # The tab's patience is over, or its browser: from here on the page goes on without the answer.
            self.is_given_up = self.is_given_up or self.task is None
            raise

    def _say(self) -> None:
        """What it waits for goes to the frontier, and the lease with it."""
        self._saying = None
        if self.task is None or not self._pending:
            return
        wanted = [
            Discovered(
                url=url,
                key=self._keys.key_of(url),
                host=host_of(url),
                depth=self._first.depth,
                via=Via.RENDER,
                parent=self.key,
                kind=TaskKind.REQUISITE,
                nesting=1,
            )
            for url in self._pending
        ]
        self._told = set(self._pending)
        self._give_permit()
        self._patience = asyncio.get_running_loop().call_later(self._limits.patience, self.give_up)
        self._hand_over(self, Rendered(ending=WAITING, awaited=pack(wanted), keeps_tab=True))

    # -- permits and timers

    async def _take_permit(self) -> None:
        if not self._has_permit:
            await self._renderer.permits.acquire()
            self._has_permit = True

    def _give_permit(self) -> None:
        if self._has_permit:
            self._has_permit = False
            self._renderer.permits.release()

    def _cancel_timers(self) -> None:
        for timer in (self._saying, self._patience):
            if timer is not None:
                timer.cancel()
        self._saying = self._patience = None


def _domain(url: str) -> str:
    return registrable_domain(host_of(url).partition("://")[2])


def _seconds(date: str) -> float:
    try:
        return datetime.fromisoformat(date).timestamp()
    except ValueError:
        return 0.0
