"""A real fetcher with its resolver and guard, patient for a second or two."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from skitter.clock import SystemClock
from skitter.fetch.curl import Fetcher
from skitter.fetch.guard import AddressGuard
from skitter.fetch.resolver import Resolver
from skitter.settings import FetchSettings, IdentitySettings

SHORT = FetchSettings(connect_timeout=1.0, first_byte_timeout=1.0, stall_timeout=1.0, total_timeout=5.0)


@asynccontextmanager
async def fetching(
    limits: FetchSettings = SHORT, *, allow_private: bool = True, contact: str = "me@example.org"
) -> AsyncIterator[Fetcher]:
    clock = SystemClock()
    resolver = Resolver(limits, clock)
    guard = AddressGuard(allow_private=allow_private)
    fetcher = Fetcher(limits, IdentitySettings(contact=contact), resolver, guard, clock)
    try:
        yield fetcher
    finally:
        await fetcher.close()
        await resolver.close()
