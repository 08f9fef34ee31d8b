"""Hosts of one real server, crawled by the real frontier, fetcher and step, in a time that a test moves."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

import uvloop

from skitter.archive.store import Archive
from skitter.committer.committer import Committer
from skitter.committer.report import Report
from skitter.fetch.curl import CurlFetcher
from skitter.fetch.guard import AddressGuard
from skitter.fetch.resolver import Resolver
from skitter.frontier.engine.frontier import EngineFrontier
from skitter.frontier.opening import open_rocks_frontier
from skitter.log import Log
from skitter.model import Failed, FailureKind, Host
from skitter.robots.rules import Rules
from skitter.settings import CrawlSettings, FetchSettings, Settings
from skitter.telemetry import Telemetry
from skitter.testing.clock import FakeClock
from skitter.urls.canonical import host_id
from skitter.worker.reading.pdf import PdfReader
from skitter.worker.step import Step
from tests.frontier_kit import seed
from tests.raw_server import RawServer, serving

T = TypeVar("T")
Answers = Callable[[str, str], bytes | None]
"""What a host (with its port) says about a path; None leaves the client waiting."""

_TURN = 2.0


class Visit:
    """A crawl of a few URLs, a turn of every ready host at a time."""

    def __init__(self, server: RawServer, clock: FakeClock, frontier: EngineFrontier) -> None:
        self.clock = clock
        self.frontier = frontier
        self.failures: list[FailureKind] = []
        self._server = server

    def use(self, committer: Committer, step: Step) -> None:
        self._committer, self._step = committer, step

    async def go(self, *urls: str, turns: int = 12) -> None:
        """In all shorter than the first back-off of a host, which is a minute."""
        await self.frontier.admit([seed(url) for url in urls])
        for _ in range(turns):
            await self._turn()
            self.clock.advance(_TURN)

    async def _turn(self) -> None:
        for lease in await self.frontier.lease("w", 100, 60.0):
            for task in lease.tasks:
                delivery = await self._step.run(lease, task)
                result = delivery.outcome.result
                if isinstance(result, Failed):
                    self.failures.append(result.kind)
                await self._committer.settle([delivery])
            await self.frontier.release([(lease.host, lease.token)])

    def asked(self, host: str = "a.test") -> list[str]:
        """The paths that the server was asked for, in order."""
        named = b"\r\nHost: " + host.encode() + b"\r\n"
        return [one.raw.split(b" ", 2)[1].decode() for one in self._server.requests if named in one.raw]

    def rules(self, host: str = "http://a.test") -> Rules:
        """Those of the body that lies on disk."""
        return self.frontier._cache.rules(host_id(Host(host)))

    def pages(self, host: str = "a.test") -> set[str]:
        return {path for path in self.asked(host) if not path.endswith(".txt")}


def visiting(
    folder: Path, answers: Answers, visit: Callable[[Visit], Awaitable[T]], *, elsewhere: Sequence[str] = ()
) -> T:
    """Every name leads to one server, except as `elsewhere` (overrides of DNS) says."""

    def answer(connection: socket.socket, raw: bytes) -> bool:
        host = raw.partition(b"\r\nHost: ")[2].partition(b"\r\n")[0].decode()
        said = answers(host, raw.split(b" ", 2)[1].decode())
        if said is not None:
            connection.sendall(said)
        else:
            with contextlib.suppress(OSError):
                connection.recv(1)
        return False

    async def main() -> T:
        fetch = FetchSettings(
            resolve=(*elsewhere, f"*:80:127.0.0.1:{server.port}", f"*:8080:127.0.0.1:{server.port}"),
            first_byte_timeout=0.4,
            stall_timeout=0.4,
            verify_tls=False,
        )
        async with AsyncExitStack() as closing:
            clock = FakeClock()
            settings = Settings(crawl=CrawlSettings(scope="any"), fetch=fetch)
            frontier = open_rocks_frontier(folder / "frontier", settings, clock)
            closing.push_async_callback(frontier.close)
            archive = Archive.open(folder / "archive", settings.archive, clock, (), {}, in_child=False)
            closing.callback(archive.close)
            resolver = Resolver(fetch, clock)
            closing.push_async_callback(resolver.close)
            guard = AddressGuard(allow_private=True)
            fetcher = CurlFetcher(fetch, settings.identity, resolver, guard, clock)
            closing.push_async_callback(fetcher.close)
            one = Visit(server, clock, frontier)
            report = Report(Telemetry(clock.now()), Log(folder / "log", clock))
            committer = Committer(frontier, archive, clock, settings, report)
            one.use(committer, Step(fetcher, clock, settings, PdfReader(fetch)))
            return await visit(one)

    with serving(answer) as server, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())
