"""From settings to a frontier with a log elsewhere: the part of the wiring that other crawls do not need.

Beside `fetch_stack.py`. Says before anything is written whether a log can keep its promise, opens a crawl as its
owner, and follows one that another machine works on.
"""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING

from skitter.clock import Clock
from skitter.errors import UsageError
from skitter.extras import need
from skitter.folder import CrawlFolder
from skitter.frontier.blocklists import Blocklists
from skitter.frontier.opening import (
    EngineFrontier,
    PartOpening,
    Tell,
    log_of,
    open_logged_frontier,
    open_part,
    standby_in,
)
from skitter.log import Log
from skitter.settings import FrontierSettings, Settings
from skitter.settings.load import dump_toml, load
from skitter.telemetry import Event
from skitter.urls.keys import Keys

if TYPE_CHECKING:
    from skitter.archive.objects import Objects
    from skitter.frontier.log.checkpoints import Checkpoints
    from skitter.frontier.log.standby import Standby


def check_log(folder: CrawlFolder, settings: Settings) -> None:
    """Whether a log elsewhere can keep its promise, and is not another crawl's; said before anything is
    written."""
    if not settings.frontier.log:
        return
    checkpoints_url(settings)
    log = log_of(settings.frontier)
    try:
        standing = log.standing()
    finally:
        log.close()
    if folder.is_new and standing is not None and standing.sequence:
        raise UsageError(
            f"frontier.log holds a crawl already, last of {standing.place}: bring it here with skitter standby "
            f"{folder.path} --frontier-log URL --once and go on with it, or name another database for a new crawl"
        )


def open_standby(folder: CrawlFolder, url: str) -> Standby:
    """What follows the log of a crawl, in its folder on this machine. Its lock must be held. A new folder gets
    the settings that the crawl has where it is worked on."""
    log = log_of(FrontierSettings(log=url)) if url else None
    if folder.is_new:
        assert log is not None
        standing = log.standing()
        if standing is None or not standing.settings:
            log.close()
            raise UsageError("no crawl has its log in that database: check --frontier-log")
        folder.write_settings(standing.settings)
    settings = load(crawl_file=folder.settings_file, environ=os.environ).settings
    if log is None and not settings.frontier.log:
        raise UsageError(f"the crawl in {folder.path} has no log (frontier.log): there is nothing to follow")
    fetch = objects_at(checkpoints_url(settings)).fetch
    return standby_in(folder.frontier, settings.frontier, log or log_of(settings.frontier), fetch)


async def open_logged(
    folder: CrawlFolder,
    settings: Settings,
    clock: Clock,
    log: Log,
    *,
    keys: Keys,
    blocklists: Blocklists,
    tell: Tell,
    part: PartOpening | None = None,
) -> tuple[EngineFrontier, Checkpoints]:
    """A folder that lacks commits is brought to the end of the log first, which may take a while: of a partition
    beside the event loop, which has others to serve."""
    from skitter.frontier.log.checkpoints import Checkpoints  # only crawls with a log need it

    if part is not None:
        files = objects_at(f"{checkpoints_url(settings)}/p{part.partition.number:04}")
        opened = partial(open_part, folder.frontier, settings, clock, part, fetch=files.fetch)
        frontier, store = await asyncio.to_thread(opened, keys=keys, blocklists=blocklists, tell=tell)
        return frontier, Checkpoints(store, files, folder.frontier, settings.frontier.checkpoint_interval)
    files = objects_at(checkpoints_url(settings))
    loop = asyncio.get_running_loop()

    def tell_of_log(why: str) -> None:
        loop.call_soon_threadsafe(partial(log.write, Event.FRONTIER_LOG, why=why))

    frontier, store = open_logged_frontier(
        folder.frontier,
        settings,
        clock,
        fetch=files.fetch,
        keys=keys,
        blocklists=blocklists,
        tell=tell,
        tell_of_log=tell_of_log,
    )
    store.log.keep_settings(dump_toml(settings))
    return frontier, Checkpoints(store, files, folder.frontier, settings.frontier.checkpoint_interval)


def checkpoints_url(settings: Settings) -> str:
    """Beside the archive, where its readers do not look."""
    if not settings.archive.url:
        raise UsageError(
            "frontier.log needs archive.url (--archive): without an object store the pages are lost with their "
            "machine, while the log says that they were archived"
        )
    return settings.archive.url.rstrip("/") + "-frontier"


async def end_task(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def objects_at(url: str) -> Objects:
    need("obstore")
    from skitter.archive.objects import Objects  # 20 ms that a crawl without an object store need not pay

    return Objects(url)
