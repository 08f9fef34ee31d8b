"""A real fetcher with its resolver and guard, patient for a second or two."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import uvloop

from skitter.clock import SystemClock
from skitter.fetch.curl import CurlFetcher
from skitter.fetch.guard import AddressGuard
from skitter.fetch.resolver import Resolver
from skitter.model import Exchange, Failed
from skitter.settings import FetchSettings, IdentitySettings

T = TypeVar("T")
SHORT = FetchSettings(connect_timeout=1.0, first_byte_timeout=1.0, stall_timeout=1.0, total_timeout=5.0)


@asynccontextmanager
async def fetching(
    limits: FetchSettings = SHORT, *, allow_private: bool = True
) -> AsyncIterator[CurlFetcher]:
    clock = SystemClock()
    resolver = Resolver(limits, clock)
    guard = AddressGuard(allow_private=allow_private)
    fetcher = CurlFetcher(limits, IdentitySettings(contact="me@example.org"), resolver, guard, clock)
    try:
        yield fetcher
    finally:
        await fetcher.close()
        await resolver.close()


def run(
    use: Callable[[CurlFetcher], Awaitable[T]], limits: FetchSettings = SHORT, *, allow_private: bool = True
) -> T:
    async def main() -> T:
        async with fetching(limits, allow_private=allow_private) as fetcher:
            return await use(fetcher)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def fetch(url: str, limits: FetchSettings = SHORT, *, allow_private: bool = True) -> Exchange | Failed:
    return run(lambda fetcher: fetcher.fetch(url), limits, allow_private=allow_private)


def exchange(url: str, limits: FetchSettings = SHORT, *, allow_private: bool = True) -> Exchange:
    found = fetch(url, limits, allow_private=allow_private)
    assert isinstance(found, Exchange), found
    return found


def failure(url: str, limits: FetchSettings = SHORT, *, allow_private: bool = True) -> Failed:
    found = fetch(url, limits, allow_private=allow_private)
    assert isinstance(found, Failed), found
    return found
