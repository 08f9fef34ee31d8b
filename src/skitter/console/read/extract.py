"""`skitter extract`: runs plugins over what was archived, and says what came of it. `skitter plugins`: what there
is to load."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import msgspec

from skitter.clock import SystemClock
from skitter.collection.collection import Collection
from skitter.console.display.output import write
from skitter.console.display.progress import progress
from skitter.console.display.table import table
from skitter.console.display.wording import counted
from skitter.errors import UsageError
from skitter.extend.extractor import Described
from skitter.extend.process import ExtractorProcess
from skitter.folder import CrawlFolder
from skitter.runtime.extract_archive import ArchiveExtraction, Done, with_plugins
from skitter.settings import Settings
from skitter.settings.load import load


def run_extract(
    path: Path, names: Sequence[str], config: Path | None, where: str, jobs: int, *, as_json: bool
) -> None:
    folder = CrawlFolder.existing(path)
    settings = load(crawl_file=folder.settings_file).settings
    if settings.archive.url:
        raise UsageError("extract works in a crawl's own folder, and this archive is in an object store")
    rules = load(config_file=config).settings.extract if config is not None else {}
    chosen = with_plugins(settings, names, rules)
    clock = SystemClock()
    with Collection.at(path) as collection, progress("extracting", collection.count(_PAGES)) as advance:
        extraction = ArchiveExtraction(collection, folder.archive, chosen, clock, where, jobs)
        done = asyncio.run(extraction.run(advance))
    write((msgspec.json.encode(done).decode() if as_json else _said(done)) + "\n")


_SAMPLE = 200
_PAGES = "kind = 'page' and status = 200"


def _said(done: Done) -> str:
    lines = []
    if done.segments:
        made = f"{counted(done.items, 'item')} of {counted(done.pages, 'page')}"
        lines.append(f"{made} in {counted(done.segments, 'segment')}, {counted(done.faults, 'fault')}")
    if done.before:
        lines.append(f"{counted(done.before, 'segment')} done already")
    if done.growing:
        lines.append(f"{counted(done.growing, 'segment')} left out: a crawl still writes to it")
    return "\n".join(lines) or "there is nothing in the archive yet"


def run_plugins(
    path: Path | None, names: Sequence[str], config: Path | None, *, with_cost: bool, as_json: bool
) -> None:
    settings = _settings(path, names, config)
    if with_cost and path is None:
        raise UsageError("--cost is measured on archived pages: name a crawl with --in DIR")
    found = asyncio.run(_described(settings)) if settings.plugins.with_ or settings.extract else []
    costs = _costs(path, settings) if with_cost and path is not None else {}
    if as_json:
        told = [
            {**msgspec.to_builtins(each), "inline": each.hook.inline, **_cost_of(each, costs)}
            for each in found
        ]
        write(msgspec.json.encode({"loaded": told, "installed": _installed()}).decode() + "\n")
        return
    rows = [("extractor", "hook", "pages", "version", "from"), *map(_row, found)]
    if costs:
        rows = [(*rows[0], "us a page", "on"), *((*_row(each), *_cost_words(each, costs)) for each in found)]
    text = "\n".join(table(rows)) if found else "no plugins: name some with --with, or a crawl with --in"
    offered = "".join(f"\ninstalled: {name} ({module})" for name, module in _installed().items())
    write(f"{text}{offered}\n")


def _settings(path: Path | None, names: Sequence[str], config: Path | None) -> Settings:
    crawl_file = CrawlFolder.existing(path).settings_file if path is not None else None
    settings = load(crawl_file=crawl_file, config_file=config).settings
    if names:
        settings = msgspec.structs.replace(
            settings, plugins=msgspec.structs.replace(settings.plugins, with_=tuple(names))
        )
    return settings


async def _described(settings: Settings) -> list[Described]:
    process = ExtractorProcess(settings.plugins, settings.extract)
    try:
        return await process.start()
    finally:
        await process.close()


def _row(each: Described) -> tuple[str, ...]:
    pages = ", ".join(each.hook.patterns) or "*"
    types = f" ({', '.join(each.hook.types)})" if each.hook.types else ""
    inline = ", inline" if each.hook.inline else ""
    return each.name, each.hook.kind + inline, pages + types, each.version, each.origin


Costs = dict[str, tuple[int, float]]
"""By extractor: on how many pages, and the CPU of one in microseconds."""


def _costs(path: Path, settings: Settings) -> Costs:
    """Measured here and now, on pages of the crawl itself. Runs the code in this process, without its limits."""
    from skitter.extend.calling import call_extractors
    from skitter.extend.extractor import patterns_of
    from skitter.extend.loading import load_extractors

    extractors = load_extractors(settings.plugins.with_, settings.extract)
    patterns = patterns_of([each.described for each in extractors])
    spent: Costs = {}
    with Collection.at(path) as collection:
        for shown in islice(collection.pages(_PAGES, newest=True), _SAMPLE):
            page = collection.page(shown.url)
            for number in patterns.find(page.url, page.media_type):
                fresh = collection.page(shown.url)
                began = time.thread_time()
                call_extractors(fresh, extractors, (number,))
                pages, before = spent.get(extractors[number].name, (0, 0.0))
                spent[extractors[number].name] = pages + 1, before + (time.thread_time() - began) * 1e6
    return {name: (pages, total / pages) for name, (pages, total) in spent.items()}


def _cost_of(each: Described, costs: Costs) -> dict[str, float]:
    pages, micros = costs.get(each.name, (0, 0.0))
    return {"pages_measured": pages, "us_a_page": round(micros, 1)} if pages else {}


def _cost_words(each: Described, costs: Costs) -> tuple[str, str]:
    pages, micros = costs.get(each.name, (0, 0.0))
    return (f"{micros:,.0f}", counted(pages, "page")) if pages else ("", "no page")


def _installed() -> dict[str, str]:
    from importlib.metadata import entry_points

    from skitter.extend.loading import GROUP

    return {point.name: point.value for point in entry_points(group=GROUP)}
