"""`skitter import`: an archive into a crawl's folder, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from skitter.collection.collection import Collection
from skitter.console.display.output import write
from skitter.console.display.progress import progress
from skitter.console.display.wording import counted
from skitter.folder import CrawlFolder
from skitter.model import Discovered
from skitter.runtime.import_archive import Imported, import_archive
from skitter.runtime.lifecycle import check_settings, own_folder, within_installed
from skitter.settings import Settings


async def run_import(
    archive: Path,
    folder: CrawlFolder,
    settings: Settings,
    seeds: Sequence[Discovered],
    where: str,
    *,
    as_json: bool,
) -> None:
    # Nobody is asked for anything here: what a crawl of public hosts needs is looked at when it starts.
    settings = await check_settings(settings, ())
    with Collection.at(archive) as collection:
        total = collection.count("kind = 'page' and status between 200 and 399 and status <> 304")
        with own_folder(folder, settings), progress("importing", total) as advance:
            done = await import_archive(collection, folder, within_installed(settings), seeds, where, advance)
    if as_json:
        write(msgspec.json.encode(done).decode() + "\n")
    else:
        write("\n".join(_lines(done, folder)) + "\n")


def _lines(done: Imported, folder: CrawlFolder) -> list[str]:
    found = [f"{counted(done.pages, 'page')} taken, {counted(done.links, 'new link')} to follow"]
    if done.known:
        found.append(f"{counted(done.known, 'page')} left out: this crawl has them, or is fetching them")
    if done.out_of_scope:
        found.append(f"{counted(done.out_of_scope, 'page')} left out: the rules of the crawl refuse them")
    if done.unreadable:
        found.append(f"{counted(done.unreadable, 'page')} could not be read: skitter verify says why")
    found.append(
        f"go on: skitter crawl --into {folder.path}; what changed: skitter refresh {folder.path} first"
    )
    return found
