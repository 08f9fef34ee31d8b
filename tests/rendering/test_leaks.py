"""Nothing leaves the browser: one page with every way out, and listeners on TCP and UDP, IPv4 and IPv6."""

from __future__ import annotations

import asyncio

import pytest

from skitter.clock import SystemClock
from skitter.errors import RenderFailed
from skitter.render.canary import Canary
from skitter.render.layers import ALL, Layer
from skitter.render.renderer import Renderer
from skitter.settings.rendering import RenderSettings
from skitter.testing.scripted.leaks import DONE, leak_page, ways
from skitter.testing.scripted.page import ScriptedPage
from tests.rendering.kit import PATIENT, ScriptedAnswers, page_to_render, renderer


async def _hits(layers: frozenset[Layer], seconds: float = 60.0) -> tuple[list[str], str]:
    limits = RenderSettings(soft_limit=seconds, hard_limit=2 * seconds)
    async with Canary() as canary, renderer(limits, layers) as using:
        page = ScriptedPage("ways-out", leak_page(canary.addresses))
        rendered = await using.render(page_to_render(page), ScriptedAnswers(page))
        await canary.wait(1.5)
        return canary.hits, rendered.html


def test_the_page_knows_sixty_ways() -> None:
    assert ways(["127.0.0.1:1"]) >= 60


def test_a_browser_without_any_layer_is_seen_to_leak() -> None:
    """Or the other tests here would prove nothing."""
    hits, _ = asyncio.run(_hits(frozenset(), seconds=5.0))
    assert len(hits) >= 5
    assert any(hit.startswith("UDP") for hit in hits)


def test_the_filter_alone_holds() -> None:
    """The page behaves as in the test before: only what arrives differs."""
    hits, _ = asyncio.run(_hits(frozenset({Layer.FILTER})))
    assert hits == []


def test_nothing_arrives_through_all_layers_and_every_way_is_tried() -> None:
    hits, html = asyncio.run(_hits(ALL))
    assert hits == []
    assert DONE in html.rpartition("</script>")[2]


def test_a_browser_that_leaks_is_not_used_and_says_so() -> None:
    async def start() -> None:
        using = Renderer(PATIENT, SystemClock(), layers=frozenset())
        with pytest.raises(RenderFailed, match="reaches the network"):
            await using.start()
        assert using.browser is None

    asyncio.run(start())
