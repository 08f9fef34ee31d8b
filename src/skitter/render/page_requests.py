"""The requests of one page while it is rendered: which are answered, refused or missing, within its limits.

Between a tab, which sees requests, and whoever has answers. Counts each URL once. Knows nothing of the browser.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from skitter.render.base import Answer, Answers, Asked, PageToRender, Refused
from skitter.render.rules import refusal
from skitter.settings.rendering import RenderSettings

_NO_STYLE = Answer(status=200, headers=(("content-type", "text/css"),))
_MOST_NAVIGATIONS = 20


class PageRequests:
    """`waiting` are requests whose answer is not there yet. `is_over` once the page is taken: then nobody is
    asked any more."""

    def __init__(
        self, page: PageToRender, answers: Answers, limits: RenderSettings, on_waiting: Callable[[], None]
    ) -> None:
        self.page = page
        self._answers = answers
        self._limits = limits
        self._on_waiting = on_waiting
        self._bytes = 0
        self.made = 0
        self.waiting = 0
        self.popups = 0
        self.is_over = False
        self._is_shown = False
        self.used: dict[str, None] = {}
        self.missing: dict[str, Asked] = {}
        self.refused: dict[str, Refused] = {}
        self.leads_to: dict[str, None] = {}

    def navigate(self, url: str, method: str) -> Answer | None:
        """The document of the main frame: the page, once. Whatever else it wants to become is a link."""
        if not self._is_shown and url == self.page.url:
            self._is_shown = True
            return self.page.answer
        if url != self.page.url and method == "GET" and len(self.leads_to) < _MOST_NAVIGATIONS:
            self.leads_to[url] = None
        return None

    async def answer(self, asked: Asked) -> Answer | None:
        if self.is_over:
            return None
        why = self._refusal(asked)
        if why:
            self._refuse(asked, why)
            return None
        if asked.kind == "Stylesheet" and not self.page.screenshots:
            return _NO_STYLE
        self.made += 1
        found = await self._find(asked)
        if found is None:
            self._miss(asked)
        elif len(found.body) > self._limits.max_answer or (
            self._bytes + len(found.body) > self._limits.max_answers
        ):
            self._refuse(asked, "size")
            return None
        else:
            self._bytes += len(found.body)
            self.used[asked.url] = None
        return found

    def _refusal(self, asked: Asked) -> str:
        why = refusal(asked, with_looks=self.page.screenshots)
        return why or ("requests" if self.made >= self._limits.max_requests else "")

    async def _find(self, asked: Asked) -> Answer | None:
        self.waiting += 1
        self._on_waiting()
        try:
            return await self._answers.find(asked)
        except asyncio.CancelledError:
            self._miss(asked)
            raise
        finally:
            self.waiting -= 1
            self._on_waiting()

    def _miss(self, asked: Asked) -> None:
        if asked.url not in self.used:
            self.missing.setdefault(asked.url, asked)

    def _refuse(self, asked: Asked, why: str) -> None:
        if len(self.refused) < self._limits.max_requests:
            self.refused.setdefault(asked.url, Refused(asked.url, why))
