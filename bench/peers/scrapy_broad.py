"""Scrapy crawls many hosts politely: one request at a time to each, a delay between two, links of the same host.

    python bench/peers/scrapy_broad.py SEEDS DELAY CONCURRENT HTTP_PORT HTTPS_PORT

Runs in the peers' environment until it is interrupted. Settings are those of Scrapy's documentation on broad
crawls, with as many concurrent requests as proved best (a request that waits for its host's delay counts as one).
Nothing is stored.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import scrapy
import twisted.web.client
from scrapy.crawler import CrawlerProcess
from twisted.internet.endpoints import HostnameEndpoint

SETTINGS = {
    "ROBOTSTXT_OBEY": True,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    "RANDOMIZE_DOWNLOAD_DELAY": False,
    "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
    "REACTOR_THREADPOOL_MAXSIZE": 20,
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "REDIRECT_ENABLED": False,
    "DOWNLOAD_TIMEOUT": 15,
    "HTTPPROXY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_ENABLED": False,
    # breadth first, as the documentation says for memory
    "DEPTH_PRIORITY": 1,
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
}


class Broad(scrapy.Spider):  # type: ignore[misc]
    name = "broad"

    def __init__(self, seeds: str, **_: Any) -> None:
        super().__init__()
        self.start_urls = Path(seeds).read_text().split()

    def parse(self, response: Any, **_: Any) -> Iterator[Any]:
        origin = response.url[: response.url.index("/", 8) + 1]
        hrefs = response.xpath("//a/@href | //area/@href").getall()
        for target in {response.urljoin(href.partition("#")[0]) for href in hrefs}:
            if target.startswith(origin):
                yield scrapy.Request(target)


def find_all_hosts_here(ports: dict[int, int]) -> None:
    """Every name is on loopback, on the port that stands for its own; Host and SNI stay as they are."""

    def endpoint(reactor: Any, host: bytes, port: int, **options: Any) -> Any:
        return HostnameEndpoint(reactor, b"127.0.0.1", ports[port], **options)

    twisted.web.client.HostnameEndpoint = endpoint


def main() -> None:
    seeds, delay, concurrent, http, https = sys.argv[1:]
    find_all_hosts_here({80: int(http), 443: int(https)})
    own = {"DOWNLOAD_DELAY": float(delay), "CONCURRENT_REQUESTS": int(concurrent)}
    process = CrawlerProcess({**SETTINGS, **own})
    process.crawl(Broad, seeds=seeds)
    process.start()


if __name__ == "__main__":
    main()
