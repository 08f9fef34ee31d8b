"""`skitter serve`: opens a crawl's folder as `crawl` does and serves it to workers and operators.

Fetches nothing itself. A stop signal closes it: what was delivered is committed; what workers still hold is
delivered to the next server, or fetched again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from skitter import __version__
from skitter.console.display.display import Display
from skitter.console.run.rule_changes import tell_rule_changes
from skitter.console.run.uploading import uploading
from skitter.errors import UsageError
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
from skitter.service.http.access import UNIX, Access, check_listen
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
        async with open_services(folder, settings) as services:
            services.log.write(Event.CRAWL_RESUMED, folder=str(folder.path), version=__version__)
            tell_rule_changes(services, str(folder.path), display)
            await bring_back_private(services, settings, display.note)
            await admit_seeds(services, seeds, display.note)
            async with uploading(services, display) as rest:
                async with listen_for_workers(
                    services, folder, settings, listen, tokens, display.note
                ) as where:
                    await run_until_stopped(services, partial(say, where))
                await rest(Ended.INTERRUPTED)
            services.log.write(Event.CRAWL_ENDED, how=Ended.INTERRUPTED)
    return 0
