"""A crawl that runs listens: to commands on its control socket, and to a browser if a dashboard was asked for.

What `skitter crawl` and `skitter serve` have in common there. The API's context is made when it is first needed:
until then nobody counts for it, and a plain crawl pays nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache

from skitter.committer.delivery_check import DeliveryCheck
from skitter.committer.lease_seals import LeaseSeals
from skitter.committer.worker_registry import WorkerRegistry
from skitter.folder import CrawlFolder
from skitter.runtime.pool import WorkerPool
from skitter.service.api_context import ApiContext
from skitter.service.control_socket import control_socket
from skitter.service.http.access import Access
from skitter.service.tickets import service_key
from skitter.settings import Settings
from skitter.wiring import CrawlServices, api_context, serve_http


@asynccontextmanager
async def listen_for_operators(
    services: CrawlServices,
    pool: WorkerPool,
    folder: CrawlFolder,
    settings: Settings,
    dashboard: str,
    tokens: Access,
    note: Callable[[str], None],
) -> AsyncIterator[None]:
    """For a crawl with workers of its own. `dashboard` is where it is served, if at all; `note` is told."""

    @cache
    def context() -> ApiContext:
        return api_context(
            services, folder, settings, takers=pool.takers, measure=lambda: pool.measure(services.telemetry)
        )

    async with AsyncExitStack() as open_parts:
        if dashboard:
            serving = serve_http(context(), dashboard, tokens, with_workers=False)
            where = await open_parts.enter_async_context(serving)
            note(f"dashboard: {where}/")
        await open_parts.enter_async_context(control_socket(folder, context, note))
        yield


@asynccontextmanager
async def listen_for_workers(
    services: CrawlServices,
    folder: CrawlFolder,
    settings: Settings,
    listen: str,
    tokens: Access,
    note: Callable[[str], None],
) -> AsyncIterator[str]:
    """For a server, which has no workers of its own: yields where they and operators find it."""
    seals = LeaseSeals(service_key(folder.path))
    registry = WorkerRegistry(services.committer, services.clock, DeliveryCheck(settings), seals=seals)
    context = api_context(services, folder, settings, registry=registry)
    async with (
        serve_http(context, listen, tokens) as where,
        control_socket(folder, lambda: context, note),
    ):
        yield where
