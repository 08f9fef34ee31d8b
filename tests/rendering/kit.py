"""Shows scripted pages to a real browser, and has their answers at hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar
from urllib.parse import urlsplit

from skitter.clock import SystemClock
from skitter.render.base import Answer, Asked, PageToRender, Rendered
from skitter.render.layers import ALL, Layer
from skitter.render.renderer import Renderer
from skitter.settings.rendering import RenderSettings
from skitter.testing.scripted.page import HTML, ScriptedPage

T = TypeVar("T")
# A machine that is busy otherwise must not make a page late.
PATIENT = RenderSettings(soft_limit=60.0, hard_limit=120.0, tabs=2)
FETCHED_AT = 1_767_225_600.0


class ScriptedAnswers:
    """`asked` is every question, in order. `until`, if given, is waited for before each answer."""

    def __init__(self, page: ScriptedPage, until: Callable[[], Awaitable[object]] | None = None) -> None:
        self._page = page
        self._until = until
        self.asked: list[Asked] = []

    async def find(self, asked: Asked) -> Answer | None:
        self.asked.append(asked)
        if self._until is not None:
            await self._until()
        found = self._page.answers.get(urlsplit(asked.url).path)
        return None if found is None else answer(found[1], found[0])


def answer(body: bytes | str, content_type: str = HTML) -> Answer:
    content = body if isinstance(body, bytes) else body.encode()
    return Answer(status=200, headers=(("content-type", content_type),), body=content)


def page_to_render(page: ScriptedPage, *, screenshots: bool = False) -> PageToRender:
    return PageToRender(
        url=page.url, answer=answer(page.html), fetched_at=FETCHED_AT, screenshots=screenshots
    )


@asynccontextmanager
async def renderer(
    settings: RenderSettings = PATIENT, layers: frozenset[Layer] = ALL, *, pictures: bool = False
) -> AsyncIterator[Renderer]:
    """Without the canary at the start, which has a test of its own."""
    made = Renderer(settings, SystemClock(), pictures=pictures, layers=layers)
    try:
        yield made
    finally:
        await made.close()


async def show(using: Renderer, page: ScriptedPage) -> Rendered:
    return await using.render(page_to_render(page), ScriptedAnswers(page))


def found(page: ScriptedPage, rendered: Rendered) -> bool:
    return all(f'href="{path}"' in rendered.html for path in page.finds)


def run(work: Callable[[Renderer], Awaitable[T]], settings: RenderSettings = PATIENT) -> T:
    async def alone() -> T:
        async with renderer(settings) as using:
            return await work(using)

    return asyncio.run(alone())
