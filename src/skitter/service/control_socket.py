"""The control socket: how commands reach the process that works in a crawl's folder.

Beside every crawl, served or not: `control.sock` in its folder answers the operators' routes of the API without a
token, to whoever may open it (its owner: mode 0600). It costs a descriptor until somebody calls; the framework
(0.2 s, 21 MB) is loaded then, in a thread. A socket that a killed process left behind is harmless: the folder's
lock says who works there. Never stops a crawl: on a disk that takes no sockets there is none.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from skitter.committer.worker_server import bind_unix
from skitter.errors import UsageError
from skitter.folder import CrawlFolder, socket_name
from skitter.service.api_context import ApiContext
from skitter.service.http.access import Access

_log = logging.getLogger(__name__)


@asynccontextmanager
async def control_socket(
    folder: CrawlFolder, context: Callable[[], ApiContext], note: Callable[[str], None]
) -> AsyncIterator[None]:
    """Until the block is left; calls that are under way then are answered. `context` is asked for when the first
    caller comes, `note` is told if there is no socket."""
    try:
        with socket_name(folder.control_socket) as name:
            bound = bind_unix(Path(name))
    except (UsageError, OSError) as error:
        note(f"commands cannot reach this crawl while it runs: {error}")
        yield
        return
    over = asyncio.Event()
    serving = asyncio.create_task(_serve_when_called(bound, context, over))
    try:
        yield
    finally:
        over.set()
        await asyncio.gather(serving, return_exceptions=True)
        bound.close()
        folder.control_socket.unlink(missing_ok=True)


async def _serve_when_called(
    bound: socket.socket, context: Callable[[], ApiContext], over: asyncio.Event
) -> None:
    if not await _is_called(bound, over):
        return
    try:
        # in a thread: hosts are asked meanwhile
        server = await asyncio.to_thread(importlib.import_module, "skitter.service.http.server")
        table = importlib.import_module("skitter.service.http.route_table")
        async with server.answering(context(), bound, Access(), table.OPERATORS_ROUTES):
            await over.wait()
    except Exception:
        # a crawl does not end because it cannot be talked to
        _log.exception("the control socket")


async def _is_called(bound: socket.socket, over: asyncio.Event) -> bool:
    """False when nobody called before the end."""
    loop = asyncio.get_running_loop()
    called: asyncio.Future[None] = loop.create_future()
    loop.add_reader(bound, _set, called)
    ending = asyncio.create_task(over.wait())
    try:
        await asyncio.wait((called, ending), return_when=asyncio.FIRST_COMPLETED)
        return called.done()
    finally:
        loop.remove_reader(bound)
        ending.cancel()


def _set(called: asyncio.Future[None]) -> None:
    if not called.done():
        called.set_result(None)
