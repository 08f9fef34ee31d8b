"""Renders pages: keeps a browser, its tabs by host, and replaces what is used up, late or dead.

What the rest of skitter asks. One browser at a time, `render.tabs` pages at once. A page is tried once more when
its browser dies, and then given up, so that no page takes the others with it. A browser that can reach anything
is not used: `start` says so. Has no clock and no store of its own.
"""

from __future__ import annotations

import asyncio

import msgspec

from skitter import __version__
from skitter.clock import Clock
from skitter.errors import RenderFailed
from skitter.render import canary
from skitter.render.base import Answers, Ending, PageToRender, Rendered
from skitter.render.browser import Browser
from skitter.render.cdp import BrowserGone, CallFailed
from skitter.render.layers import ALL, Layer
from skitter.render.tab import Tab
from skitter.settings.rendering import RenderSettings
from skitter.urls.canonical import host_of

_MOST_PAGES = 2000
_LONGEST_LIFE = 3600.0
_PAGES_BETWEEN_LOOKS = 20
_TRIES = 2


def agent_of(contact: str = "") -> str:
    """What pages are told: scripts take any other form for a browser of twenty years ago. On the wire skitter has
    its own."""
    about = f"; +{contact}" if contact else ""
    who = f"KHTML, like Gecko; compatible; skitter/{__version__}{about}"
    return f"Mozilla/5.0 AppleWebKit/537.36 ({who}) Chrome/156.0.0.0"


class RendererFigures(msgspec.Struct, kw_only=True):
    pages: int = 0
    browsers: int = 0
    deaths: int = 0
    """Browsers that died, or were killed because they did not answer."""
    reused: int = 0
    """Pages that were shown in a tab that another page of their host had used."""


class Renderer:
    """`_browser` is None before the first page and between two browsers; whoever needs one starts it, alone."""

    def __init__(
        self,
        settings: RenderSettings,
        clock: Clock,
        *,
        contact: str = "",
        pictures: bool = False,
        layers: frozenset[Layer] = ALL,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._agent = agent_of(contact)
        self._pictures = pictures
        self._layers = layers
        self._browser: Browser | None = None
        self._idle: dict[str, list[Tab]] = {}
        self.permits = asyncio.Semaphore(settings.tabs)
        """One for each page that runs; who waits for answers may give its own back meanwhile."""
        self._starting = asyncio.Lock()
        self.figures = RendererFigures()

    async def start(self) -> None:
        """Raises RenderFailed for a browser that leaks, and UsageError where there is none."""
        browser = await self._alive()
        async with canary.Canary() as listening:
            tab = await browser.open_tab()
            tried = await tab.render(canary.page(listening.addresses), canary.NoAnswers())
            await listening.wait()
            await browser.close_tab(tab)
        if listening.hits:
            await self.close()
            raise RenderFailed(
                f"pages are not rendered: this browser reaches the network ({listening.hits[0]})"
            )
        if not canary.is_tried(tried.html):
            await self.close()
            raise RenderFailed(
                f"pages are not rendered: the browser did not show a page of our own ({tried.ending})"
            )

    async def render(self, page: PageToRender, answers: Answers) -> Rendered:
        async with self.permits:
            return await self.show(page, answers)

    async def show(self, page: PageToRender, answers: Answers) -> Rendered:
        """The same, for a caller with a permit."""
        for _ in range(_TRIES):
            browser = await self._alive()
            browser.busy += 1
            try:
                return await self._render(browser, page, answers)
            except (BrowserGone, CallFailed, TimeoutError):
                await self._end(browser, died=True)
            finally:
                browser.busy -= 1
                await self._close_if_retired(browser)
        return Rendered(url=page.url, ending=Ending.DIED)

    async def close(self) -> None:
        browser, self._browser = self._browser, None
        self._idle.clear()
        if browser is not None:
            await browser.close()

    @property
    def browser(self) -> Browser | None:
        return self._browser

    # -- one page

    async def _render(self, browser: Browser, page: PageToRender, answers: Answers) -> Rendered:
        host = host_of(page.url)
        tab = await self._tab(browser, host)
        try:
            rendered = await tab.render(page, answers)
        except BaseException:
            browser.close_tab_soon(tab)
            raise
        self.figures.pages += 1
        browser.pages += 1
        if not tab.is_spent and browser is self._browser:
            self._idle.setdefault(host, []).append(tab)
        elif not await self._is_sound_without(browser, tab, rendered.ending):
            await self._end(browser, died=True)
        if browser is self._browser and self._is_used_up(browser):
            self._browser = None
            self._idle.clear()
        return rendered

    async def _is_sound_without(self, browser: Browser, tab: Tab, ending: Ending) -> bool:
        closed = await browser.close_tab(tab)
        return (closed and ending not in (Ending.STUCK, Ending.CRASHED)) or await browser.answers()

    async def _tab(self, browser: Browser, host: str) -> Tab:
        waiting = self._idle.get(host)
        if waiting:
            self.figures.reused += 1
            tab = waiting.pop()
            if not waiting:
                del self._idle[host]
            return tab
        # So many tabs in all: the host that waits longest gives one up.
        while self._idle and sum(map(len, self._idle.values())) + browser.busy > self._settings.tabs:
            for idle in self._idle.pop(next(iter(self._idle))):
                await browser.close_tab(idle)
        return await browser.open_tab()

    # -- browsers

    async def _alive(self) -> Browser:
        async with self._starting:
            if self._browser is not None and not self._browser.is_alive:
                await self._end(self._browser, died=True)
            if self._browser is None:
                browser = Browser(
                    self._settings, self._clock, self._agent, pictures=self._pictures, layers=self._layers
                )
                await browser.start()
                self.figures.browsers += 1
                self._browser = browser
            return self._browser

    async def _end(self, browser: Browser, *, died: bool) -> None:
        """Whoever has a page in it is told by `BrowserGone`."""
        if browser is self._browser:
            self.figures.deaths += died
            self._browser = None
            self._idle.clear()
        await browser.close()

    async def _close_if_retired(self, browser: Browser) -> None:
        """A used up browser ends with its last page."""
        if browser is not self._browser and browser.busy == 0:
            await browser.close()

    def _is_used_up(self, browser: Browser) -> bool:
        if browser.pages >= _MOST_PAGES or self._clock.now() - browser.started_at > _LONGEST_LIFE:
            return True
        return browser.pages % _PAGES_BETWEEN_LOOKS == 0 and browser.memory() > self._settings.memory
