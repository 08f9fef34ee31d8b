"""From settings to what fetches and reads pages: the part of the wiring that a worker in another process needs.

Beside `wiring.py`, which has the rest. It imports no store and no service: a worker process that is no fork of
its crawl takes 0.2 s of CPU to start, before it asks for its first host.
"""

from __future__ import annotations

import contextlib
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from skitter.clock import Clock
from skitter.extras import need
from skitter.fetch.base import Fetcher
from skitter.fetch.curl import CurlFetcher
from skitter.fetch.guard import AddressGuard
from skitter.fetch.resolver import Resolver
from skitter.model import Host
from skitter.seeds import hosts_named
from skitter.settings import Settings
from skitter.worker.reading.pdf import PdfReader
from skitter.worker.step import Step

if TYPE_CHECKING:
    from skitter.identities.identity import Identity
    from skitter.identities.session import Sessions
    from skitter.worker.extractors import Extractors
    from skitter.worker.focusing import Focus

# With the default thresholds collections took 4 % of a crawl's CPU and freed next to nothing: a page's values
# hold no cycles. Fewer, later ones still catch what does.
GC_THRESHOLDS = (50_000, 20, 50)
# 512 files of RocksDB at most; segments, the log, DNS, standard streams.
_OTHER_DESCRIPTORS = 640


class FetchStack(msgspec.Struct, frozen=True, kw_only=True):
    """All that one process needs to fetch and read pages."""

    fetcher: Fetcher
    resolver: Resolver
    step: Step


@asynccontextmanager
async def open_fetch_stack(settings: Settings, clock: Clock) -> AsyncIterator[FetchStack]:
    async with contextlib.AsyncExitStack() as closing:
        resolver = Resolver(settings.fetch, clock)
        closing.push_async_callback(resolver.close)
        guard = AddressGuard(
            allow_private=settings.fetch.allow_private, allow_public=bool(settings.identity.contact)
        )
        fetcher = CurlFetcher(settings.fetch, settings.identity, resolver, guard, clock)
        closing.push_async_callback(fetcher.close)
        pdfs = PdfReader(settings.fetch)
        closing.push_async_callback(pdfs.close)
        extractors = await _open_extractors(settings, clock)
        if extractors is not None:
            closing.push_async_callback(extractors.close)
        sessions = _open_sessions(settings, fetcher, clock)
        focus = _open_focus(settings, extractors)
        step = Step(fetcher, clock, settings, pdfs, extractors=extractors, sessions=sessions, focus=focus)
        yield FetchStack(fetcher=fetcher, resolver=resolver, step=step)


async def _open_extractors(settings: Settings, clock: Clock) -> Extractors | None:
    """Of a crawl without users' code nothing of it is loaded."""
    if not (settings.plugins.with_ or settings.extract):
        return None
    from skitter.worker.extractors import Extractors

    return await Extractors.open(settings, clock)


def _open_focus(settings: Settings, extractors: Extractors | None) -> Focus | None:
    """Of a crawl without a topic nothing of it is loaded. Raises where the model cannot be read."""
    focus = settings.focus
    if not (focus.words or focus.model or (extractors is not None and extractors.scores_pages)):
        return None
    from skitter.focus.model_file import read_model
    from skitter.focus.topic import Topic
    from skitter.worker.focusing import Focus

    return Focus(Topic(focus.words, read_model(focus.model) if focus.model else None), focus)


def _open_sessions(settings: Settings, fetcher: Fetcher, clock: Clock) -> Sessions | None:
    """Of a crawl without identities nothing of them is loaded. Raises where a secret is missing."""
    if not settings.identities:
        return None
    from skitter.identities.session import Sessions

    return Sessions(open_identities(settings), fetcher, clock)


def open_identities(settings: Settings) -> dict[Host, Identity]:
    need("cryptography")
    from skitter.identities.identity import open_identity

    return {
        host: open_identity(name, host, told)
        for name, told in settings.identities.items()
        for host in hosts_named(name)
    }


def raise_descriptor_limit(settings: Settings) -> Settings:
    """A connection is a descriptor; the usual soft limit of 1,024 would end a broad crawl. Where the hard limit
    is too low as well, the settings come back with fewer connections: hosts must not be blamed for our lack."""
    wanted = settings.fetch.connections + _OTHER_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = hard if hard != resource.RLIM_INFINITY else wanted
    with contextlib.suppress(OSError, ValueError):
        if soft < limit:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            soft = limit
    room = max(16, soft - _OTHER_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or settings.fetch.connections <= room:
        return settings
    fetch = msgspec.structs.replace(settings.fetch, connections=room)
    return msgspec.structs.replace(settings, fetch=fetch)
