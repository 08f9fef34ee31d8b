"""`skitter report`: what a crawl holds and lacks, as a page for people or as JSON for programs.

The archive is read by `collection/report`; what only the frontier knows (failures without an answer, robots.txt,
traps, what waits) is asked of it, where there is one.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from skitter.collection.collection import Collection
from skitter.collection.export.target import whole
from skitter.collection.report.figures import MOST_LISTED, Listing, read_figures
from skitter.collection.report.page import Report, as_html
from skitter.console.display.output import write
from skitter.console.display.progress import progress
from skitter.console.display.wording import counted, size

if TYPE_CHECKING:
    from skitter.folder import CrawlFolder
    from skitter.settings import Settings


def run_report(folder: Path | str, to: Path | None, *, force: bool, as_json: bool) -> None:
    with Collection.at(folder) as collection:
        pages = collection.count("kind = 'page' and status = 200")
        with progress("reading", pages) as advance:
            figures = read_figures(collection, advance)
    report = asyncio.run(_with_frontier(Report(archive=figures), folder))
    if to is not None:
        with whole(to, force=force, folder=False) as target:
            target.write_text(as_html(report), encoding="utf-8")
    if as_json:
        write(msgspec.json.encode(report).decode() + "\n")
    else:
        write("\n".join(_lines(report, to)) + "\n")


async def _with_frontier(report: Report, place: Path | str) -> Report:
    from skitter.folder import CrawlFolder
    from skitter.settings.load import load

    folder = CrawlFolder(Path(place))
    if folder.is_new or not folder.frontier.is_dir():
        return report
    loaded = load(crawl_file=folder.settings_file, config_file=None, environ=os.environ, flags={})
    return await _asked(report, folder, loaded.settings)


async def _asked(report: Report, folder: CrawlFolder, settings: Settings) -> Report:
    from skitter.wiring import open_frontier

    async with open_frontier(folder, settings, read_only=True) as frontier:
        stats = await frontier.stats()
        dead = await frontier.dead_letters(limit=MOST_LISTED)
        traps = await frontier.traps(limit=MOST_LISTED)
        hosts = await frontier.hosts(limit=MOST_LISTED)
    failing = [
        (view.host, view.standing, view.failed, view.denied) for view in hosts if view.failed or view.denied
    ]
    return msgspec.structs.replace(
        report,
        has_frontier=True,
        wants_requisites=settings.crawl.requisites,
        states=dict(stats.urls),
        failures=dict(stats.failures),
        refusals=dict(stats.refusals),
        failing_hosts=Listing(len(failing), [tuple(row) for row in failing]),
        dead=Listing(
            stats.urls.get("dead_letter", len(dead)), [(each.url, each.kind, each.detail) for each in dead]
        ),
        traps=Listing(stats.verdicts, [(each.host, each.skeleton, each.refused, each.why) for each in traps]),
    )


def _lines(report: Report, to: Path | None) -> list[str]:
    archive = report.archive
    lines = [
        f"{counted(archive.pages, 'page')} of {counted(archive.hosts, 'host')}, "
        f"{counted(archive.answers, 'answer')}, {size(archive.bytes)} of bodies"
    ]
    if archive.first:
        lines.append(f"from {archive.first} to {archive.last} UTC")
    lacking = (
        (archive.missing.total, "file", "that pages need and the archive lacks"),
        (sum(int(row[2]) for row in archive.errors.rows), "answer", "with an error"),
        (archive.truncated.total, "body", "cut off at a limit"),
        (archive.unreadable, "page", "that cannot be read: skitter verify names them"),
        (report.dead.total, "URL", "given up after all attempts"),
        (report.states.get("denied", 0), "URL", "forbidden by robots.txt"),
        (report.traps.total, "kind of page", "stopped as traps"),
        (archive.changes.total, "change", "since an earlier visit"),
    )
    lines += [f"  {counted(number, noun)} {words}" for number, noun, words in lacking if number]
    if report.has_frontier and not report.wants_requisites and archive.missing.total:
        lines.append("this crawl was not asked for what pages need to look as they do: --requisites")
    lines.append(f"the whole report: {to}" if to else "as a page: --to PATH; for programs: --json")
    return lines
