"""`skitter serve`: opens a crawl's folder as `crawl` does and serves it to workers and operators.

Fetches nothing itself. A stop signal closes it: what was delivered is committed; what workers still hold is
delivered to the next server, or fetched again. On a full disk it closes too, waits for room and serves again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from skitter import __version__
from skitter.clock import SystemClock
from skitter.console.display.display import Display
from skitter.console.run.pause import first_fault, wait_for_room
from skitter.console.run.rule_changes import tell_rule_changes
from skitter.console.run.uploading import uploading
from skitter.errors import DiskFull, UsageError
from skitter.extras import need
from skitter.folder import CrawlFolder
from skitter.frontier_log import check_log
from skitter.model import Discovered
from skitter.runtime.lifecycle import (
    admit_seeds,
    bring_back_private,
    check_settings,
    own_folder,
    run_until_stopped,
    within_installed,
)
from skitter.runtime.listening import listen_for_workers
from skitter.runtime.stop_signals import stop_event
from skitter.service.http.access import UNIX, Access, check_listen
from skitter.settings import Settings
from skitter.settings.load import Loaded
from skitter.telemetry import Ended, Event
from skitter.wiring import open_services


async def run_serve(
    folder: CrawlFolder,
    loaded: Loaded,
    seeds: Sequence[Discovered],
    listen: str,
    tokens: Access,
    say: Callable[[str], None],
    display: Display,
) -> int:
    """Until SIGINT or SIGTERM. `say` is told where the service is once it answers."""
    need("numpy")
    check_listen(listen, tokens)
    if (
        listen.startswith(UNIX)
        and Path(listen.removeprefix(UNIX)).absolute() == folder.control_socket.absolute()
    ):
        raise UsageError(f"{folder.control_socket} is for commands: listen at another path")
    settings = await check_settings(loaded.settings, seeds)
    check_log(folder, settings)
    with own_folder(folder, settings):
        settings = within_installed(settings, display.note)
        server = _Server(folder, settings, list(seeds), listen, tokens, say, display)
        while True:
            try:
                await server.run()
            except Exception as error:
                fault = first_fault(error)
                if not isinstance(fault, DiskFull):
                    raise fault from error
                why = str(fault)
                # Its traceback holds all that was opened, also what could not be closed properly.
                del fault
            else:
                return 0
            if not await server.pause(why):
                return 0


class _Server:
    """From open to close, again and again as long as the disk fills up. `_stopped` is there from the first pause
    on: a signal that comes while the crawl is being opened again is not lost."""

    def __init__(
        self,
        folder: CrawlFolder,
        settings: Settings,
        seeds: list[Discovered],
        listen: str,
        tokens: Access,
        say: Callable[[str], None],
        display: Display,
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._seeds = seeds
        self._listen = listen
        self._tokens = tokens
        self._say = say
        self._display = display
        self._stopped: asyncio.Event | None = None

    async def run(self) -> None:
        folder, settings, note = self._folder, self._settings, self._display.note
        async with open_services(folder, settings) as services:
            services.log.write(Event.CRAWL_RESUMED, folder=str(folder.path), version=__version__)
            tell_rule_changes(services, str(folder.path), self._display)
            await bring_back_private(services, settings, note)
            await admit_seeds(services, self._seeds, note)
            self._seeds = []
            async with uploading(services, self._display) as rest:
                async with listen_for_workers(
                    services, folder, settings, self._listen, self._tokens, note
                ) as where:
                    await run_until_stopped(services, partial(self._say, where), self._stopped)
                await rest(Ended.INTERRUPTED)
            services.log.write(Event.CRAWL_ENDED, how=Ended.INTERRUPTED)

    async def pause(self, why: str) -> bool:
        """Workers find nobody meanwhile, keep what they have fetched for a while, and ask again."""
        self._stopped = self._stopped or stop_event()
        places = (self._folder.path, self._folder.frontier, self._folder.archive)
        least = self._settings.archive.min_free
        return await wait_for_room(
            places, least, why, self._display, None, SystemClock(), self._folder.log, self._stopped
        )
