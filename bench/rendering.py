"""A browser without a network: what leaves it, what kills it, what it finds, and what a page costs.

    python -m bench.rendering            # all of it: some fifteen minutes
    python -m bench.rendering --only cost --pages 200

leaks: a page with sixty ways out, against listeners on loopback, with each layer taken away in turn. hostile:
thirty pages that attack the browser. done: pages whose link comes late, by how long answers take. cost: CPU of
the browser and of Python for a page of an app, and memory (PSS), beside the same page only read. Needs Debian's
chromium-headless-shell. Exit code 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import resource
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from urllib.parse import urlsplit

from bench._report import last_line, progress, table
from skitter.clock import SystemClock
from skitter.errors import UsageError
from skitter.parse.page import read_page
from skitter.render.base import Answer, Asked, PageToRender, Rendered
from skitter.render.browser import find_program
from skitter.render.canary import Canary
from skitter.render.layers import ALL, Layer
from skitter.render.renderer import Renderer
from skitter.settings.rendering import RenderSettings
from skitter.testing.scripted import hostile_pages, late_links
from skitter.testing.scripted.leaks import leak_page, ways
from skitter.testing.scripted.page import HTML, JSON, SCRIPT, ScriptedPage, scripted

Rows = list[tuple[object, ...]]
_GOOD = scripted("good", "setTimeout(add, 300, 'found')")
_TICKS = os.sysconf("SC_CLK_TCK")
_MOST_SECONDS = 16.0


class _Answers:
    def __init__(self, page: ScriptedPage, delay: float = 0.0) -> None:
        self._page, self._delay = page, delay

    async def find(self, asked: Asked) -> Answer | None:
        if self._delay:
            await asyncio.sleep(self._delay)
        found = self._page.answers.get(urlsplit(asked.url).path)
        return None if found is None else _answer(found[1], found[0])


def _answer(body: bytes, content_type: str) -> Answer:
    return Answer(status=200, headers=(("content-type", content_type),), body=body)


async def _show(using: Renderer, page: ScriptedPage, delay: float = 0.0) -> Rendered:
    asked = PageToRender(url=page.url, answer=_answer(page.html.encode(), HTML), fetched_at=1.7e9)
    return await using.render(asked, _Answers(page, delay))


def _is_found(page: ScriptedPage, rendered: Rendered) -> bool:
    return all(f'href="{path}"' in rendered.html for path in page.finds)


@contextlib.asynccontextmanager
async def _renderer(layers: frozenset[Layer] = ALL, tabs: int = 4) -> AsyncIterator[Renderer]:
    made = Renderer(RenderSettings(tabs=tabs), SystemClock(), layers=layers)
    try:
        yield made
    finally:
        await made.close()


# -- what leaves it


async def leaks() -> tuple[Rows, bool]:
    chosen: list[tuple[str, frozenset[Layer]]] = [
        ("no layer", frozenset()),
        ("interception alone", frozenset({Layer.INTERCEPTION})),
        ("the filter alone", frozenset({Layer.FILTER})),
        *((f"all but {layer}", ALL - {layer}) for layer in Layer),
        ("all", ALL),
    ]
    rows: Rows = [("layers", "arrived", "ending", "seconds")]
    good = True
    for name, layers in chosen:
        async with Canary() as canary, _renderer(layers) as using:
            page = ScriptedPage("ways-out", leak_page(canary.addresses))
            rendered = await _show(using, page)
            await canary.wait(1.5)
            rows.append((name, len(canary.hits), str(rendered.ending), rendered.seconds))
            is_held = Layer.FILTER in layers or len(layers) == len(ALL) - 1
            good = good and (not canary.hits if is_held else bool(canary.hits))
        progress(f"leaks: {name}")
    rows.append((f"({ways(['x'])} ways)", "", "", ""))
    return rows, good


# -- what kills it


async def hostile() -> tuple[Rows, bool]:
    rows: Rows = [("page", "ending", "seconds", "next page", "browsers")]
    good = True
    async with _renderer(tabs=1) as using:
        for page in hostile_pages.HOSTILE:
            began = time.monotonic()
            rendered = await _show(using, page)
            took = time.monotonic() - began
            is_next_good = _is_found(_GOOD, await _show(using, _GOOD))
            word = "good" if is_next_good else "lost"
            rows.append((page.name, str(rendered.ending), took, word, using.figures.browsers))
            good = good and is_next_good and took <= _MOST_SECONDS
            progress(f"hostile: {page.name}")
    return rows, good


# -- what it finds


async def done() -> tuple[Rows, bool]:
    rows: Rows = [("pages", "answers after", "found", "of", "seconds a page", "lost")]
    good = True
    sets = {"usual": (late_links.USUAL, 17), "hard": (late_links.HARD, 15), "new": (late_links.NEW, 0)}
    for delay in (0.0, 0.3, 2.5):
        for name, (pages, wanted) in sets.items():
            async with _renderer(tabs=2) as using:
                rendered = await asyncio.gather(*(_show(using, page, delay) for page in pages))
            lost = [page.name for page, one in zip(pages, rendered, strict=True) if not _is_found(page, one)]
            seconds = sum(one.seconds + one.frozen for one in rendered) / len(pages)
            rows.append((name, delay, len(pages) - len(lost), len(pages), seconds, " ".join(lost)))
            good = good and len(pages) - len(lost) >= wanted
            progress(f"done: {name}, answers after {delay} s")
    return rows, good


# -- what it costs


def _app() -> ScriptedPage:
    """An app of 250 KB, most of it code that is read and not run, and one request for data."""
    unused = "".join(f"function f{n}(a,b){{return a+b*{n}+String(a).length}}\n" for n in range(5000))
    script = unused + (
        "fetch('/data').then((a) => a.json()).then((rows) => { document.getElementById('root').innerHTML ="
        "rows.map((row) => `<p><a href='/thing/${row}'>Thing ${row}: ${'words '.repeat(20)}</a></p>`).join('') })"
    )
    html = "<!DOCTYPE html><title>shop</title><body><div id=root></div><script src=/app.js></script>"
    answers = {"/app.js": (SCRIPT, script.encode()), "/data": (JSON, str(list(range(50))).encode())}
    return ScriptedPage("app", html, answers, ("/thing/49",))


def _on_host(page: ScriptedPage, number: int) -> ScriptedPage:
    return page._replace(name=f"app{number}")


async def cost(pages: int) -> tuple[Rows, bool]:
    rows: Rows = [("a page of an app", "browser ms", "Python ms", "PSS MB", "after MB", "wrong")]
    app = _app()
    good = True
    ways_to_run: tuple[tuple[str, int, Callable[[int], int]], ...] = (
        ("a tab for each page", 1, lambda n: n),
        ("a tab for 8 pages of a host", 1, lambda n: n // 8),
        ("the same, four at once", 4, lambda n: n // 8),
    )
    for name, at_once, host in ways_to_run:
        async with _renderer(tabs=at_once) as using:
            first = await _measured(using, app, range(20), host, at_once)
            rest = await _measured(using, app, range(24, 24 + pages), host, at_once)
        rows.append((name, rest[0], rest[1], first[2], rest[2], first[3] + rest[3]))
        good = good and not first[3] + rest[3] and (at_once < 4 or rest[0] + rest[1] <= 300)
        progress(f"cost: {name}")
    rows.append(("the same page, only read", 0.0, _reading_ms(app), "", "", 0))
    return rows, good


async def _measured(
    using: Renderer, app: ScriptedPage, numbers: Iterable[int], host: Callable[[int], int], at_once: int
) -> tuple[float, float, float, int]:
    wanted = list(numbers)
    await _show(using, _GOOD)  # so that there is a browser
    before, own = _browser_cpu(using), _own_cpu()
    waiting = iter(wanted)
    wrong = 0

    async def work() -> None:
        nonlocal wrong
        for number in waiting:
            page = _on_host(app, host(number))
            wrong += not _is_found(page, await _show(using, page))

    await asyncio.gather(*(work() for _ in range(at_once)))
    used = 1000 * (_browser_cpu(using) - before) / len(wanted)
    return used, 1000 * (_own_cpu() - own) / len(wanted), _pss(using) / 1e6, wrong


def _own_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _browser_cpu(using: Renderer) -> float:
    """With the processes that ended: their time is their parents' when they were waited for."""
    total = 0
    for pid in using.browser.processes() if using.browser else ():
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))
    return total / _TICKS


def _pss(using: Renderer) -> float:
    total = 0
    for pid in using.browser.processes() if using.browser else ():
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
    return total


def _reading_ms(app: ScriptedPage) -> float:
    body, began = app.html.encode(), time.process_time()
    for _ in range(2000):
        read_page(body, url=app.url, content_type=HTML, with_text=True)
    return 1000 * (time.process_time() - began) / 2000


async def _all(only: str, pages: int) -> bool:
    parts: dict[str, Callable[[], Awaitable[tuple[Rows, bool]]]] = {
        "leaks": leaks,
        "hostile": hostile,
        "done": done,
        "cost": lambda: cost(pages),
    }
    verdicts = {}
    for name in (only,) if only else parts:
        rows, verdicts[name] = await parts[name]()
        print(f"\n{name}\n{table(rows)}", flush=True)
    last_line({name: "good" if good else "missed" for name, good in verdicts.items()})
    return all(verdicts.values())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.rendering", description=__doc__)
    parser.add_argument("--only", choices=("leaks", "hostile", "done", "cost"), default="")
    parser.add_argument("--pages", type=int, default=200, help="of each way to run, for cost")
    options = parser.parse_args()
    try:
        find_program(RenderSettings())
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if asyncio.run(_all(options.only, options.pages)) else 1


if __name__ == "__main__":
    sys.exit(main())
