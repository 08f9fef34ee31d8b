"""`skitter render`: renders archived pages in a browser without a network, and says what scripts added."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from skitter.clock import SystemClock
from skitter.collection.collection import Collection
from skitter.collection.export.target import whole
from skitter.collection.record import Record
from skitter.console.display.output import write
from skitter.console.display.progress import progress
from skitter.console.display.wording import counted
from skitter.errors import UsageError
from skitter.folder import CrawlFolder
from skitter.render.base import Rendered
from skitter.runtime.render_archive import PAGES, ArchiveRendering, Done, RenderedPage, chosen_urls
from skitter.runtime.rendered_file import ContactSheet, RenderedFile
from skitter.settings import Settings
from skitter.settings.load import load

Tell = Callable[[RenderedPage, Rendered, Record], None]
_MOST_NAMED = 10


def run_render(
    place: Path | str,
    url: str,
    where: str,
    to: Path | None,
    screenshots: Path | None,
    *,
    every: bool,
    force: bool,
    as_json: bool,
) -> None:
    if to is not None and not to.name.endswith(".warc.gz"):
        raise UsageError(f"{to} is to be a WARC file: call it {to.name}.warc.gz")
    with Collection.at(place) as collection, ExitStack() as stack:
        total = 1 if url else collection.count(PAGES)
        advance = stack.enter_context(progress("rendering", total))
        tells = [*stack.enter_context(_written(to, screenshots, force=force)), _line if as_json else _said]
        work = ArchiveRendering(
            collection, _settings(place), SystemClock(), screenshots=screenshots is not None
        )
        urls = _counted(chosen_urls(collection, url, where), advance)

        def tell(told: RenderedPage, rendered: Rendered, record: Record) -> None:
            for each in tells:
                each(told, rendered, record)

        done = asyncio.run(work.run(urls, tell, only_shells=not (url or every)))
    if not as_json:
        write(_summary(done) + "\n")


@contextmanager
def _written(to: Path | None, screenshots: Path | None, *, force: bool) -> Iterator[list[Tell]]:
    """Each place is there whole at the end, or not at all."""
    tells: list[Tell] = []
    with ExitStack() as stack:
        if to is not None:
            path = stack.enter_context(whole(to, force=force, folder=False))
            file = stack.enter_context(RenderedFile(path, to.name, SystemClock()))
            tells.append(lambda told, rendered, record: file.add(rendered, record))
        if screenshots is not None:
            sheet = ContactSheet(stack.enter_context(whole(screenshots, force=force, folder=True)))
            stack.callback(sheet.finish)
            tells.append(lambda told, rendered, record: sheet.add(rendered, record))
        yield tells


def _settings(place: Path | str) -> Settings:
    if "://" in str(place) or not (Path(place) / "crawl.toml").is_file():
        return load(environ=os.environ).settings
    crawl_file = CrawlFolder.existing(Path(place)).settings_file
    return load(crawl_file=crawl_file, environ=os.environ).settings


def _counted(urls: Iterator[str], advance: Callable[[int], None]) -> Iterator[str]:
    for url in urls:
        yield url
        advance(1)


def _line(told: RenderedPage, rendered: Rendered, record: Record) -> None:
    write(msgspec.json.encode(told).decode() + "\n")


def _said(told: RenderedPage, rendered: Rendered, record: Record) -> None:
    links = f"{counted(len(told.links), 'link')}, {len(told.new_links):,} of them by scripts"
    text = f"{len(told.text):,} characters of text, {told.plain_text:,} without scripts"
    lines = [f"{told.ending}  {told.url}", f"      {links}; {text}"]
    lines += [f"      missing: {url}" for url in told.missing[:_MOST_NAMED]]
    if len(told.missing) > _MOST_NAMED:
        lines.append(f"      and {counted(len(told.missing) - _MOST_NAMED, 'missing answer')} more")
    lines += [f"      leads to: {url}" for url in told.leads_to]
    write("\n".join(lines) + "\n")


def _summary(done: Done) -> str:
    told = f"{counted(done.pages, 'page')} rendered, {done.changed:,} of them changed by scripts"
    if done.incomplete:
        told += f", {done.incomplete:,} without some of the answers that they asked for"
    if done.failed:
        told += f", {done.failed:,} failed"
    if done.left_out:
        told += f"; {counted(done.left_out, 'page')} left out that need no browser (--all renders them too)"
    return told
