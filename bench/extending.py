"""What users' code costs a page: in the worker, and in the process that runs it.

    python -m bench.extending --pages 4000

CPU of both sides in microseconds a page, for a plugin that does nothing, one with four selectors and an item, and
the same inline; with pages one after the other, and many at once. A page of another host costs only the match.

Then the same child with functions that hang, eat memory, die and make too much: the longest stretch of CPU that
the worker's event loop gave to one thing meanwhile. So long at most another host waits because of users' code:
20 ms.
Exit code 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench._report import last_line, table
from skitter.clock import SystemClock
from skitter.extend.messages import PageMessage
from skitter.settings import Settings
from skitter.settings.plugins import PluginSettings
from skitter.worker.extractors import Extractors

_IDLE = "import skitter\n@skitter.page('a.test/*')\ndef idle(page):\n    return None\n"
_BUSY = """
import skitter

@skitter.page("a.test/*"{inline})
def busy(page):
    yield {{"h1": page.first("h1"), "price": page.number(".price"), "sku": page.attr("[data-sku]", "data-sku"),
           "links": len(page.css("a"))}}
"""
_PLUGINS = {
    "nothing to do": _IDLE,
    "four selectors": _BUSY.format(inline=""),
    "the same inline": _BUSY.format(inline=", inline=True"),
}
# Each ends in another way, and none lets itself be ended sooner than it must.
_BAD = """
import os, time, skitter

@skitter.page("hang.test/*")
def hang(page):
    while True:
        pass

@skitter.page("memory.test/*")
def memory(page):
    kept = []
    while True:
        kept.append(bytearray(50_000_000))

@skitter.page("die.test/*")
def die(page):
    os._exit(3)

@skitter.page("raise.test/*")
def wrong(page):
    raise ValueError(page.url)

@skitter.page("much.test/*")
def much(page):
    for n in range(1_000_000):
        yield {"n": n, "words": "many " * 20}
"""
_BAD_HOSTS = ("hang", "memory", "die", "raise", "much")
_TICK = 0.001
MOST_STRETCH_MS = 20.0
MOST_WORKER_US, MOST_CHILD_US, MOST_US_AT_ONCE = 70.0, 60.0, 25.0
_ROW = "<tr><td>%d</td><td><a href='/item/%d'>An item</a></td><td class=x>words and more words</td></tr>"
_BODY = (
    "<html><h1>A page</h1><span class=price>19,50</span><b data-sku=K></b><table>"
    + "".join(_ROW % (n, n) for n in range(200))
    + "</table></html>"
).encode()
_HTML = (
    ("content-type", "text/html; charset=utf-8"),
    ("server", "x"),
    ("date", "Thu, 01 Jan 1970 00:00:00 GMT"),
)


def _cpu() -> tuple[float, float]:
    """Of this process, and of children that have ended."""
    mine, theirs = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return mine.ru_utime + mine.ru_stime, theirs.ru_utime + theirs.ru_stime


async def _measure(plugin: Path, pages: int, at_once: int) -> tuple[float, float]:
    """Microseconds a page in the worker, and in the child; what it costs to start is taken off."""
    settings = Settings(plugins=PluginSettings(with_=(str(plugin),)))
    start = await _run(settings, 0, 1)
    worked = await _run(settings, pages, at_once)
    return tuple((b - a) / pages * 1e6 for a, b in zip(start, worked, strict=True))  # type: ignore[return-value]


async def _run(settings: Settings, pages: int, at_once: int) -> tuple[float, float]:
    before = _cpu()
    extractors = await Extractors.open(settings, SystemClock())
    for start in range(0, pages, at_once):
        await asyncio.gather(*(_ask(extractors, start + n) for n in range(at_once)))
    await extractors.close()
    after = _cpu()
    return after[0] - before[0], after[1] - before[1]


async def _stretch(plugin: Path, pages: int) -> float:
    """Milliseconds of CPU, between two turns of the event loop, while users' code misbehaves. CPU, not time:
    others may have the core."""
    settings = Settings(plugins=PluginSettings(with_=(str(plugin),), seconds=0.2))
    extractors = await Extractors.open(settings, SystemClock())
    longest, is_over = 0.0, False

    async def tick() -> None:
        nonlocal longest
        while not is_over:
            before = time.thread_time()
            await asyncio.sleep(_TICK)
            longest = max(longest, time.thread_time() - before)

    ticking = asyncio.create_task(tick())
    for start in range(0, pages, len(_BAD_HOSTS)):
        await asyncio.gather(*(_ask(extractors, start, f"{host}.test") for host in _BAD_HOSTS))
    is_over = True
    await ticking
    await extractors.close()
    return longest * 1e3


async def _ask(extractors: Extractors, number: int, host: str = "a.test") -> None:
    url = f"http://{host}/{number}"
    numbers = extractors.matching(url, "text/html")
    result = await extractors.run(PageMessage(url, _BODY, 200, _HTML, 1.0, 0, numbers))
    extractors.rows(result)


def _match_cost(extractors: Extractors, url: str) -> float:
    began = time.process_time()
    for _ in range(100_000):
        extractors.matching(url, "text/html")
    return (time.process_time() - began) * 10


def main(arguments: list[str] | None = None) -> int:
    import uvloop

    parser = argparse.ArgumentParser(prog="python -m bench.extending", description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=4000)
    parser.add_argument("--bad-pages", type=int, default=25)
    options = parser.parse_args(arguments)
    rows: list[tuple[str, object, object]] = [("us of CPU a page", "worker", "child")]
    figures: dict[str, object] = {"bench": "extending", "pages": options.pages, "body": len(_BODY)}
    with (
        tempfile.TemporaryDirectory(prefix="skitter-extending-") as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        for name, source in _PLUGINS.items():
            plugin = Path(folder) / f"{name.replace(' ', '_')}.py"
            plugin.write_text(source)
            for at_once in (1, 16):
                worker, child = runner.run(_measure(plugin, options.pages, at_once))
                rows.append((f"{name}, {at_once} at once", round(worker, 1), round(child, 1)))
                figures[f"{name}, {at_once} at once"] = [round(worker, 1), round(child, 1)]
        settings = Settings(plugins=PluginSettings(with_=(str(Path(folder) / "nothing_to_do.py"),)))
        extractors = runner.run(Extractors.open(settings, SystemClock()))
        for name, url in (("match of another host", "http://b.test/x"), ("match", "http://a.test/x")):
            rows.append((name, round(_match_cost(extractors, url), 2), 0))
            figures[name] = round(_match_cost(extractors, url), 2)
        runner.run(extractors.close())
        bad = Path(folder) / "bad.py"
        bad.write_text(_BAD)
        stretch = runner.run(_stretch(bad, options.bad_pages))
        rows.append(("longest stretch on the event loop, ms", round(stretch, 1), ""))
        figures["longest_stretch_ms"] = round(stretch, 1)
    print(table(rows))
    missed = [*_missed(figures)]
    print(*missed, sep="\n", end="\n" if missed else "")
    last_line({**figures, "missed": missed})
    return int(bool(missed))


def _missed(figures: dict[str, Any]) -> Iterator[str]:
    one, many = figures["nothing to do, 1 at once"], figures["nothing to do, 16 at once"]
    if one[0] > MOST_WORKER_US or one[1] > MOST_CHILD_US:
        yield f"a page costs {one[0]} us in the worker and {one[1]} in the child"
    if many[1] > MOST_US_AT_ONCE:
        yield f"with 16 at once a page costs {many[1]} us in the child"
    if figures["longest_stretch_ms"] > MOST_STRETCH_MS:
        yield f"the event loop was held up for {figures['longest_stretch_ms']} ms"


if __name__ == "__main__":
    sys.exit(main())
