"""Crawlee (Python) mirrors one site: every page's body becomes a file.

    python bench/peers/crawlee_mirror.py URL FOLDER PAGES [goes-on]

Runs in the peers' environment. The crawler with the fastest parser (Parsel, on lxml), storage in memory, no logs,
no sessions, and a fixed number of requests at once, so that no autoscaling has to find it first. With `goes-on`
the storage is on disk and kept, so that it can be started again.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from crawlee import ConcurrencySettings
from crawlee.configuration import Configuration
from crawlee.crawlers import ParselCrawler
from crawlee.http_clients import ImpitHttpClient
from crawlee.statistics import Statistics
from crawlee.storage_clients import FileSystemStorageClient, MemoryStorageClient

AT_ONCE = 16


async def mirror(url: str, folder: Path, pages: int, *, goes_on: bool) -> None:
    crawler = ParselCrawler(
        # it must not wait because others, or we, keep the processor busy
        configuration=Configuration(
            max_used_cpu_ratio=1.0,
            max_event_loop_delay=timedelta(minutes=1),
            storage_dir=f"{folder}.storage",
            purge_on_start=not goes_on,
        ),
        storage_client=FileSystemStorageClient() if goes_on else MemoryStorageClient(),
        http_client=ImpitHttpClient(verify=not url.startswith("https:")),
        concurrency_settings=ConcurrencySettings(
            min_concurrency=AT_ONCE, desired_concurrency=AT_ONCE, max_concurrency=AT_ONCE
        ),
        use_session_pool=False,
        retry_on_blocked=False,
        max_request_retries=0,
        max_requests_per_crawl=pages or None,
        respect_robots_txt_file=True,
        configure_logging=False,
        statistics=Statistics.with_default_state(
            log_interval=timedelta(hours=1), statistics_log_format="inline"
        ),
    )

    async def store(context: Any) -> None:
        if "text/html" not in context.http_response.headers.get("content-type", ""):
            return
        path = folder / unquote(urlsplit(context.request.url).path)[1:]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(await context.http_response.read())
        await context.enqueue_links(strategy="same-hostname")

    crawler.router.default_handler(store)
    await crawler.run([url])


def main() -> None:
    logging.disable(logging.CRITICAL)
    url, folder, pages, *more = sys.argv[1:]
    asyncio.run(mirror(url, Path(folder), int(pages), goes_on=bool(more)))


if __name__ == "__main__":
    main()
