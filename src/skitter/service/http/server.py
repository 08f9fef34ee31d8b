"""The HTTP server inside a running event loop: TCP or a unix socket, until its block is left.

Signals are the caller's affair, and so is the context. Leaving the block answers what was asked already and
closes the sockets, no more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn

from skitter.committer.worker_server import bind_unix
from skitter.errors import SkitterError, UsageError
from skitter.service.api_context import ApiContext
from skitter.service.http.access import UNIX, Access, check_listen
from skitter.service.http.app import application
from skitter.service.http.connections import guarded
from skitter.service.http.door import SECONDS_IDLE, Door
from skitter.service.http.route_table import ROUTES
from skitter.service.http.routes import Route
from skitter.service.metrics.history import recording

_BACKLOG = 512
_LONGEST_FAREWELL = 5
# A connection is a descriptor, and the fetcher needs them too; who comes later is answered 503.
_MOST_CONNECTIONS = 1_000


@asynccontextmanager
async def serving(
    context: ApiContext, listen: str, tokens: Access, routes: Sequence[Route] = ROUTES
) -> AsyncIterator[str]:
    """Serves at `listen` (`HOST:PORT`, port 0 for a free one, or `unix:PATH`) and yields where that is, as a
    client writes it: `http://127.0.0.1:8600` or `unix:/path`."""
    bound, where = _bind(listen, tokens)
    try:
        async with answering(context, bound, tokens, routes), recording(context):
            yield where
    finally:
        bound.close()
        if listen.startswith(UNIX):
            Path(listen.removeprefix(UNIX)).unlink(missing_ok=True)


@asynccontextmanager
async def answering(
    context: ApiContext, bound: socket.socket, tokens: Access, routes: Sequence[Route]
) -> AsyncIterator[None]:
    """Answers whoever connects to this socket, which listens already."""
    door = Door(tokens)
    server = _Server(_config(context, tokens, routes, door))
    running = asyncio.create_task(server.serve(sockets=[bound]))
    try:
        await server.ready(running)
        yield
    finally:
        server.should_exit = True
        door.close()
        await asyncio.gather(running, return_exceptions=True)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        """Whoever runs the loop has its own idea of Ctrl-C."""
        yield

    async def ready(self, running: asyncio.Task[None]) -> None:
        while not self.started:
            if running.done():
                running.result()
                raise SkitterError("the HTTP server ended before it began: see the log")
            await asyncio.sleep(0)


def _config(context: ApiContext, tokens: Access, routes: Sequence[Route], door: Door) -> uvicorn.Config:
    # Not warnings: that a client sent what is no HTTP is not worth a line each.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    return uvicorn.Config(
        application(context, tokens, routes),
        http=guarded(door),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=SECONDS_IDLE,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_LONGEST_FAREWELL,
    )


def _bind(listen: str, tokens: Access) -> tuple[socket.socket, str]:
    place = check_listen(listen, tokens)
    if place is None:
        path = Path(listen.removeprefix(UNIX)).absolute()
        return bind_unix(path), f"{UNIX}{path}"
    name, port = place
    try:
        bound = socket.create_server(
            (name, port), family=socket.AF_INET6 if ":" in name else socket.AF_INET, backlog=_BACKLOG
        )
    except OSError as error:
        raise UsageError(
            f"cannot listen on {listen} ({error.strerror}): is another server there? Choose another with --listen"
        ) from error
    # Accepted sockets inherit it. asyncio sets it only on sockets that name their protocol; without it a small
    # answer waited 44 ms for the client's delayed acknowledgement.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    bound.setblocking(False)
    shown = f"[{name}]" if ":" in name else name
    return bound, f"http://{shown}:{bound.getsockname()[1]}"
