"""What users' code costs a page: in the worker, and in the process that runs it.

    python -m bench.extending --pages 4000

CPU of both sides in microseconds a page, for a plugin that does nothing, one with four selectors and an item, and
the same inline; with pages one after the other, and many at once. A page of another host costs only the match.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import tempfile
import time
from pathlib import Path

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


async def _ask(extractors: Extractors, number: int) -> None:
    url = f"http://a.test/{number}"
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
    print(table(rows))
    last_line(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
