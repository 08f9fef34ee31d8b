"""Pages in a real browser: what is found, what is missing, and that it is the same each time."""

from __future__ import annotations

import asyncio

import pytest

from skitter.render.base import Ending, Rendered
from skitter.render.renderer import Renderer
from skitter.testing.scripted import late_links
from skitter.testing.scripted.page import ScriptedPage, scripted
from tests.rendering.kit import ScriptedAnswers, found, page_to_render, renderer, run, show

# One of each sort that does not hang on how busy the machine is.
SAMPLE = """timer-3500 fetch-and-timers xhr frame idle worker polling below-the-fold import shadow-root sync-xhr
frame-message served-frame worker-imports top-level-await router own-time-out socket-first""".split()


def test_links_that_come_late_are_found() -> None:
    pages = [page for page in late_links.ALL if page.name in SAMPLE]

    async def work(using: Renderer) -> list[Rendered]:
        return await asyncio.gather(*(show(using, page) for page in pages))

    rendered = run(work)
    assert len(pages) == len(SAMPLE)
    assert [page.name for page, one in zip(pages, rendered, strict=True) if not found(page, one)] == []
    assert {one.ending for one in rendered} == {Ending.DONE}


CHATTY = scripted(
    "chatty",
    """
    fetch('/there').then((a) => a.text()).then((text) => { document.getElementById('root').textContent = text; });
    fetch('/absent?_=' + Date.now()).catch(() => 0);
    fetch('/post', {method: 'POST', body: 'x'}).catch(() => 0);
    fetch('/guess', {headers: {'Next-Router-Prefetch': '1'}}).catch(() => 0);
    fetch('file:///etc/passwd').catch(() => 0);
    document.body.insertAdjacentHTML('beforeend', '<img src=/picture><link rel=stylesheet href=/style>');
    setTimeout(() => { location.href = '/elsewhere'; }, 300);
    open('/popup');
    document.body.append(Math.random(), new Date().toISOString(), crypto.randomUUID());
    """,
    {"/there": '"it is there"'},
)


def test_what_is_missing_is_named_and_what_is_refused_never_asked_for() -> None:
    answers = ScriptedAnswers(CHATTY)
    rendered = run(lambda using: using.render(page_to_render(CHATTY), answers))
    assert [asked.url for asked in rendered.missing] == [f"{CHATTY.url}absent?_=1767225600000"]
    assert rendered.used == (f"{CHATTY.url}there",)
    assert {asked.url for asked in answers.asked} == {*rendered.used, rendered.missing[0].url}
    refused = {one.url.removeprefix(CHATTY.url): one.why for one in rendered.refused}
    assert refused.get("post") == "method POST"
    assert refused.get("guess") == "prefetch"
    assert rendered.leads_to == (f"{CHATTY.url}elsewhere",)
    assert "it is there" in rendered.text


def test_two_browsers_render_a_page_byte_for_byte_alike_and_so_does_a_used_tab() -> None:
    async def twice(using: Renderer) -> list[str]:
        return [(await show(using, CHATTY)).html for _ in range(2)]

    first, second = run(twice)
    assert first == second == run(lambda using: show(using, CHATTY)).html
    assert "2026-01-01T00:00:00.000Z" in first


def test_a_page_that_waits_is_frozen_and_its_clock_stands() -> None:
    page = scripted(
        "impatient",
        "const late = setTimeout(() => document.body.append('gave up'), 2000);"
        "fetch('/slow').then(() => { clearTimeout(late); add(); });",
        {"/slow": "1"},
    )

    async def work(using: Renderer) -> Rendered:
        frozen = asyncio.Event()
        asyncio.get_running_loop().call_later(4.0, frozen.set)
        return await using.render(page_to_render(page), ScriptedAnswers(page, frozen.wait))

    rendered = run(work)
    assert found(page, rendered)
    assert rendered.html.count("gave up") == 1  # in the script
    assert rendered.frozen > 1.0


def test_shadow_roots_and_frames_are_in_the_html_and_lies_are_not() -> None:
    page = scripted(
        "shadows",
        "const host = document.createElement('x-list'); document.body.append(host);"
        "host.attachShadow({mode: 'open'}).innerHTML = '<a href=/found>in the shadow</a>';"
        "Element.prototype.getHTML = () => 'a lie';"
        "Object.defineProperty(document, 'body', {get() { for (;;); }});",
    )
    rendered = run(lambda using: show(using, page))
    assert '<template shadowrootmode="open"' in rendered.html
    assert found(page, rendered)
    assert rendered.ending is Ending.DONE


@pytest.mark.parametrize("content_type", ["application/zip", "application/octet-stream"])
def test_what_is_no_page_has_an_ending_of_its_own(content_type: str) -> None:
    page = ScriptedPage("zip", "PK")

    async def work(using: Renderer) -> Rendered:
        asked = page_to_render(page)
        answer = type(asked.answer)(status=200, headers=(("content-type", content_type),), body=b"PK\3\4")
        return await using.render(
            type(asked)(url=asked.url, answer=answer, fetched_at=0.0), ScriptedAnswers(page)
        )

    assert run(work).ending is Ending.NO_PAGE


def test_a_screenshot_is_as_high_as_its_page() -> None:
    page = ScriptedPage("low", "<body style='margin:0'><div style='height:1500px;background:red'></div>")

    async def shoot() -> bytes:
        async with renderer(pictures=True) as using:
            rendered = await using.render(page_to_render(page, screenshots=True), ScriptedAnswers(page))
            assert rendered.screenshots is not None
            return rendered.screenshots.whole

    picture = asyncio.run(shoot())
    start = picture.index(b"\xff\xc0")  # start of frame: length, precision, height, width
    assert [int.from_bytes(picture[start + at : start + at + 2], "big") for at in (5, 7)] == [1500, 1280]


def test_a_worker_in_a_frame_of_another_site_asks_us_as_well() -> None:
    page = scripted(
        "outer",
        "onmessage = () => add(); const f = document.createElement('iframe');"
        "f.src = 'http://other-site.invalid/frame.html'; document.body.append(f);",
        {
            "/frame.html": "<script>const w = new Worker('/worker.js');"
            "w.onmessage = () => parent.postMessage(1, '*');</script>",
            "/worker.js": "fetch('/deep').then((answer) => answer.json()).then(() => postMessage(1))",
            "/deep": "1",
        },
    )
    answers = ScriptedAnswers(page)
    rendered = run(lambda using: using.render(page_to_render(page), answers))
    assert "http://other-site.invalid/deep" in {asked.url for asked in answers.asked}
    assert found(page, rendered)
