"""Runs one of the spiders in `spiders/`: python bench/peers/scrapy_task.py SPIDER OUT.jsonl PORT [PAGES] [SEEDS]

In the peers' environment. Every name is on loopback. As many requests at once as skitter is allowed, no retries,
no log, as Scrapy's documentation has it for speed; items go to a file of JSON lines.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess

sys.path.insert(0, str(Path(__file__).parent))

from scrapy_broad import find_all_hosts_here  # type: ignore[import-not-found]

SETTINGS: dict[str, Any] = {
    "ROBOTSTXT_OBEY": True,
    "CONCURRENT_REQUESTS": 16,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "DOWNLOAD_DELAY": 0,
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "REDIRECT_ENABLED": False,
    "HTTPPROXY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_ENABLED": False,
}


def main() -> None:
    name, out, port, *more = sys.argv[1:]
    find_all_hosts_here({80: int(port)})
    module = importlib.import_module(f"spiders.{name}")
    spider = next(
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, scrapy.Spider) and each is not scrapy.Spider
    )
    own: dict[str, Any] = {"FEEDS": {out: {"format": "jsonlines"}}, "KEPT": out + ".kept"}
    if more and int(more[0]):
        own["CLOSESPIDER_PAGECOUNT"] = int(more[0])
    if len(more) > 1:
        own |= {"SEEDS": more[1], "CONCURRENT_REQUESTS": 256, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    process = CrawlerProcess({**SETTINGS, **own})
    process.crawl(spider)
    process.start()


if __name__ == "__main__":
    main()
