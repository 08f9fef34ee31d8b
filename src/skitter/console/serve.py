"""`skitter serve`: opens a crawl's folder as `crawl` does and serves it to workers and operators.

Fetches nothing itself. SIGTERM and Ctrl-C close it: what was delivered is committed, what is out with workers is
delivered to the next server, or fetched again.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Sequence

from skitter import __version__
from skitter.console.crawl import GC_THRESHOLDS, admit_seeds, check, with_whole_paths
from skitter.console.display import PlainDisplay
from skitter.console.uploading import uploading
from skitter.folder import CrawlFolder
from skitter.model import Discovered
from skitter.seeds import require_contact
from skitter.service.access import Access
from skitter.service.serve import check_listen
from skitter.settings.load import Loaded, dump_toml
from skitter.telemetry import Ended, Event
from skitter.wiring import Office, open_office, probe_objects, serving_office

_BEAT = 0.05


async def run_serve(
    folder: CrawlFolder,
    loaded: Loaded,
    seeds: Sequence[Discovered],
    listen: str,
    tokens: Access,
    say: Callable[[str], None],
) -> int:
    """Until SIGINT or SIGTERM. `say` is told where the service is once it answers."""
    check_listen(listen, tokens)
    display = PlainDisplay(sys.stderr)
    settings = with_whole_paths(loaded.settings)
    check(settings)
    require_contact(settings, seeds)
    await probe_objects(settings)
    folder.lock()
    try:
        folder.write_settings(dump_toml(settings))
        gc.set_threshold(*GC_THRESHOLDS)
        async with open_office(folder, settings, apart=True) as office:
            office.log.write(Event.CRAWL_RESUMED, folder=str(folder.path), version=__version__)
            await admit_seeds(office, seeds, display)
            async with uploading(office, display) as rest:
                async with serving_office(office, folder, settings, listen, tokens) as (where, _):
                    say(where)
                    await _until_told(office)
                await rest(Ended.INTERRUPTED)
            office.log.write(Event.CRAWL_ENDED, how=Ended.INTERRUPTED)
    finally:
        folder.unlock()
    return 0


async def _until_told(office: Office) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    beating = asyncio.create_task(beat(office))
    stopping = asyncio.create_task(stopped.wait())
    try:
        await asyncio.wait((beating, stopping), return_when=asyncio.FIRST_COMPLETED)
        if beating.done():
            beating.result()
    finally:
        office.desk.drain()
        for task in (beating, stopping):
            task.cancel()
        await asyncio.gather(beating, stopping, return_exceptions=True)


async def beat(office: Office) -> None:
    """The desk's duties, for as long as it serves."""
    while True:
        await office.desk.beat()
        office.desk.complain_of_room()
        office.log.flush()
        await asyncio.sleep(_BEAT)
