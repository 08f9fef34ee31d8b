"""Browsers die, are stopped and attacked: each page gets its ending, and the next one is rendered."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from skitter.clock import SystemClock
from skitter.render.base import Answer, Asked, Ending, Rendered
from skitter.render.renderer import Renderer
from skitter.settings.rendering import RenderSettings
from skitter.testing.scripted import hostile_pages
from skitter.testing.scripted.page import ScriptedPage, scripted
from tests.rendering.kit import ScriptedAnswers, found, page_to_render, run, show

GOOD = scripted("good", "setTimeout(add, 300, 'found')")
SLOW = scripted("slow", "fetch('/slow').then(() => add())", {"/slow": "1"})
SHORT = RenderSettings(soft_limit=4.0, hard_limit=6.0, tabs=2)


async def _struck(using: Renderer, blow: str) -> Rendered:
    """Renders a page whose answer comes only after the blow."""
    struck = asyncio.Event()

    async def strike() -> None:
        browser = using.browser
        assert browser is not None
        victims = [browser.pid] if blow.startswith("browser") else _renderers(browser.processes())
        assert victims
        for pid in victims:
            os.kill(pid, signal.SIGSTOP if blow.endswith("stopped") else signal.SIGKILL)
        struck.set()

    class Striking(ScriptedAnswers):
        async def find(self, asked: Asked) -> Answer | None:
            if not struck.is_set():
                await strike()
            return await super().find(asked)

    return await using.render(page_to_render(SLOW), Striking(SLOW))


def _renderers(pids: list[int]) -> list[int]:
    return [pid for pid in pids if b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.parametrize(
    ("blow", "endings"),
    [
        ("browser killed", {Ending.DONE}),  # tried once more
        ("renderer killed", {Ending.CRASHED}),
        ("browser stopped", {Ending.STUCK, Ending.DIED, Ending.DONE}),
    ],
)
def test_after_every_death_the_next_page_is_rendered(blow: str, endings: set[Ending]) -> None:
    async def work(using: Renderer) -> None:
        assert (await _struck(using, blow)).ending in endings
        assert found(GOOD, await show(using, GOOD))
        first = using.browser
        assert first is not None
        await using.close()
        assert _alive(first.processes()) == []

    run(work, SHORT)


def _alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}/cmdline").read_bytes()]


class Renderers:
    """One browser for all hostile pages, in an event loop of its own."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._using = self._runner.run(_made())

    def two(self, first: ScriptedPage, second: ScriptedPage) -> tuple[Rendered, Rendered]:
        async def work() -> tuple[Rendered, Rendered]:
            return await show(self._using, first), await show(self._using, second)

        return self._runner.run(work())

    def close(self) -> None:
        self._runner.run(self._using.close())
        self._runner.close()


async def _made() -> Renderer:
    return Renderer(SHORT, SystemClock())


@pytest.fixture(scope="module")
def shared() -> Iterator[Renderers]:
    made = Renderers()
    yield made
    made.close()


@pytest.mark.parametrize("name", hostile_pages.QUICK)
def test_a_hostile_page_gets_an_ending_and_the_next_page_is_rendered(name: str, shared: Renderers) -> None:
    page = next(page for page in hostile_pages.HOSTILE if page.name == name)
    ending, after = shared.two(page, GOOD)
    assert ending.ending in set(Ending)
    assert found(GOOD, after)
