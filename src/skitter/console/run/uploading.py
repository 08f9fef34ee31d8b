"""The object store as the operator sees it: what goes wrong with it, and what is left to upload at the end.

Beside `crawl`, for archives with a URL; for others nothing here does anything.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from skitter.committer.upload import Uploader
from skitter.console.display.display import Display
from skitter.console.display.wording import counted, size
from skitter.runtime.stop_signals import stop_event
from skitter.telemetry import Ended, Event
from skitter.wiring import CrawlServices, close_archive

_LOOK = 0.25
_SAY_AGAIN = 10.0


@contextlib.asynccontextmanager
async def uploading(
    crawl: CrawlServices, display: Display
) -> AsyncIterator[Callable[[Ended], Awaitable[Ended]]]:
    """Finished segments are uploaded meanwhile; what is yielded uploads the rest, and says how it all ended."""
    uploader = crawl.uploader
    if uploader is None:
        yield _nothing_to_do
        return
    running = asyncio.create_task(uploader.run())
    running.add_done_callback(crawl.committer.note_fault)
    telling = asyncio.create_task(_tell(crawl, uploader, display))

    async def rest(ended: Ended) -> Ended:
        return (
            ended if ended is Ended.STOPPED else await _upload_rest(crawl, uploader, running, display, ended)
        )

    try:
        yield rest
    finally:
        for task in (telling, running):
            task.cancel()
        await asyncio.gather(telling, running, return_exceptions=True)


async def _nothing_to_do(ended: Ended) -> Ended:
    return ended


async def _upload_rest(
    crawl: CrawlServices, uploader: Uploader, running: asyncio.Task[None], display: Display, ended: Ended
) -> Ended:
    """The last segment is finished and uploaded; Ctrl-C leaves what is left to the next run."""
    await close_archive(crawl.archive, crawl.frontier)
    uploader.finish()
    stopped = stop_event()
    waits = uploader.waiting()
    if waits:
        display.note(
            f"uploading the last {counted(len(waits), 'segment')}; Ctrl-C leaves them for the next run"
        )
    stopping = asyncio.create_task(stopped.wait())
    await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if running.done():
        running.result()
        return ended
    left = len(uploader.waiting())
    display.note(f"{counted(left, 'segment')} left in {crawl.archive.folder}: the same command uploads them")
    return Ended.INTERRUPTED


async def _tell(crawl: CrawlServices, uploader: Uploader, display: Display) -> None:
    """Trouble when it begins, from time to time, and when it is over; the same of a spool that is full."""
    said, said_at, was_paused = "", 0.0, False
    while True:
        now = crawl.clock.now()
        if uploader.trouble and (not said or now - said_at >= _SAY_AGAIN):
            display.note(
                f"{uploader.trouble}; {size(uploader.spooled())} wait for upload, it is tried again and again"
            )
            if not said:
                crawl.log.write(Event.UPLOAD_FAILED, why=uploader.trouble)
            said, said_at = uploader.trouble, now
        elif said and not uploader.trouble:
            display.note("the object store answers again")
            said = ""
        if crawl.committer.is_paused != was_paused:
            was_paused = crawl.committer.is_paused
            _tell_pause(crawl, uploader, display, was_paused)
        await asyncio.sleep(_LOOK)


def _tell_pause(crawl: CrawlServices, uploader: Uploader, display: Display, is_paused: bool) -> None:
    if is_paused:
        why = f"{size(uploader.spooled())} wait for upload, and archive.spool allows no more"
        display.note(f"paused: {why}; goes on when they are fewer, Ctrl-C stops")
        crawl.log.write(Event.CRAWL_PAUSED, why=why)
    else:
        display.note("there is room for more to upload: going on")
        crawl.log.write(Event.CRAWL_GOES_ON)
