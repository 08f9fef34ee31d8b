"""`skitter serve`: the frontier of a folder behind the HTTP API, for workers and operators elsewhere.

Opens the folder as a crawl does, fetches nothing itself, and keeps the frontier in order: what is due is
promoted, leases that ran out go back, everything is synced.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from skitter.folder import CrawlFolder
from skitter.service.access import Access
from skitter.service.brain import Brain
from skitter.service.serve import check_listen, serving
from skitter.service.tickets import seal_of
from skitter.settings import Settings
from skitter.settings.load import Loaded, dump_toml
from skitter.wiring import Crawl, open_crawl, probe_objects

_BEAT = 0.05


async def run_serve(
    folder: CrawlFolder, loaded: Loaded, listen: str, tokens: Access, say: Callable[[str], None]
) -> int:
    """Until SIGINT or SIGTERM. `say` is told where the service is once it answers."""
    check_listen(listen, tokens)
    await probe_objects(loaded.settings)
    folder.lock()
    try:
        folder.write_settings(dump_toml(loaded.settings))
        async with (
            open_crawl(folder, loaded.settings) as crawl,
            keeping(crawl) as keeper,
            serving(_brain(folder, loaded.settings, crawl), listen, tokens) as where,
        ):
            say(where)
            await _stopped(keeper)
    finally:
        folder.unlock()
    return 0


def _brain(folder: CrawlFolder, settings: Settings, crawl: Crawl) -> Brain:
    return Brain(
        frontier=crawl.frontier,
        settings=settings,
        folder=folder,
        telemetry=crawl.telemetry,
        clock=crawl.clock,
        seal=seal_of(folder.path),
        desk=crawl.desk,
    )


async def _stopped(keeper: asyncio.Task[None]) -> None:
    """Until a signal comes, or the keeper meets a fault of ours, which is raised."""
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    waiting = asyncio.create_task(told.wait())
    await asyncio.wait((waiting, keeper), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if keeper.done():
        keeper.result()


@asynccontextmanager
async def keeping(crawl: Crawl) -> AsyncIterator[asyncio.Task[None]]:
    """The desk's duties, which no worker of this process reminds it of."""
    keeper = asyncio.create_task(_keep(crawl))
    try:
        yield keeper
    finally:
        keeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeper


async def _keep(crawl: Crawl) -> None:
    while True:
        await crawl.desk.beat()
        crawl.desk.complain_of_room()
        crawl.log.flush()
        await asyncio.sleep(_BEAT)
