"""A service on loopback over a real frontier, in a thread of its own, and a plain HTTP client for it."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from skitter.archive.store import Archive
from skitter.clock import Clock, SystemClock
from skitter.committer.committer import Committer
from skitter.committer.report import Report
from skitter.folder import CrawlFolder
from skitter.frontier.base import Frontier
from skitter.frontier.opening import open_rocks_frontier
from skitter.log import Log
from skitter.service.api_context import ApiContext
from skitter.service.http.access import Access
from skitter.service.http.route_table import ROUTES
from skitter.service.http.routes import Route
from skitter.service.http.server import serving
from skitter.settings import Settings
from skitter.telemetry import Telemetry

T = TypeVar("T")


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> str:
        """The slug of the problem this is; fails when it is none."""
        assert self.headers["content-type"] == "application/problem+json"
        told = self.json
        assert told["status"] == self.status
        assert told["detail"]
        return str(told["type"]).removeprefix("urn:skitter:problem:")


def asked(where: str, method: str, path: str, body: Any = None, *, token: str = "", **headers: str) -> Answer:
    """`body` is a dict for JSON, bytes, or parts of unannounced length; keyword names become header names."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if isinstance(body, dict):
        body = json.dumps(body).encode()
    if body is not None:
        sent.setdefault("content-type", "application/json")
    if token:
        sent["authorization"] = f"Bearer {token}"
    connection = http.client.HTTPConnection(urlsplit(where).netloc, timeout=30)
    try:
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        names = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, names, answer.read())
    finally:
        connection.close()


class Service:
    """A running service. `do` runs a coroutine in its loop: the context belongs to that thread."""

    def __init__(self, where: str, context: ApiContext, loop: asyncio.AbstractEventLoop) -> None:
        self.where = where
        self.context = context
        self._loop = loop

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    def call_soon(self, act: Callable[[], object]) -> None:
        """In its loop, which does nothing else meanwhile."""
        self._loop.call_soon_threadsafe(act)

    def call(self, method: str, path: str, body: Any = None, *, token: str = "", **headers: str) -> Answer:
        return asked(self.where, method, path, body, token=token, **headers)

    def get(self, path: str, **headers: str) -> Answer:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.call("POST", path, body, **headers)


@contextmanager
def open_committer(
    frontier: Frontier, folder: Path, settings: Settings, clock: Clock, telemetry: Telemetry | None = None
) -> Iterator[Committer]:
    """With an archive that nothing is written to: foreign workers keep their pages."""
    archive = Archive.open(folder / "archive", settings.archive, clock, (), {})
    log = Log(Path(os.devnull), clock)
    try:
        yield Committer(frontier, archive, clock, settings, Report(telemetry or Telemetry(clock.now()), log))
    finally:
        archive.close(durable=False)
        log.close()


@contextmanager
def running_service(
    folder: Path,
    settings: Settings | None = None,
    *,
    clock: Clock | None = None,
    tokens: Access | None = None,
    listen: str = "127.0.0.1:0",
    routes: Sequence[Route] = ROUTES,
) -> Iterator[Service]:
    settings = settings or Settings()
    started: asyncio.Future[Service]
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        ended = asyncio.Event()
        started = loop.create_future()

        async def run() -> None:
            time = clock or SystemClock()
            frontier = open_rocks_frontier(folder / "frontier", settings, time)
            try:
                telemetry = Telemetry(time.now())
                with open_committer(frontier, folder, settings, time, telemetry) as committer:
                    context = ApiContext(
                        frontier=frontier,
                        settings=settings,
                        folder=CrawlFolder(folder),
                        telemetry=telemetry,
                        clock=time,
                        committer=committer,
                    )
                    async with serving(context, listen, tokens or Access(), routes) as where:
                        started.set_result(Service(where, context, loop))
                        await ended.wait()
            except BaseException as error:
                if not started.done():
                    started.set_exception(error)
                    return
                raise
            finally:
                await frontier.close()

        thread = threading.Thread(target=runner.run, args=(run(),))
        ready = threading.Event()
        started.add_done_callback(lambda _: ready.set())
        thread.start()
        assert ready.wait(30)
        try:
            yield started.result()
        finally:
            loop.call_soon_threadsafe(ended.set)
            thread.join(30)
            assert not thread.is_alive()
