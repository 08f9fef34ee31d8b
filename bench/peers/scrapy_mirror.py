"""Scrapy mirrors one site: every page's body becomes a file, as in Scrapy's tutorial.

    python bench/peers/scrapy_mirror.py URL FOLDER PAGES lean|crawl-spider [goes-on]

Runs in the peers' environment. Settings for speed are those of Scrapy's documentation on broad crawls: no
cookies, no retries, no redirects, no log. As many requests at once as skitter is allowed. The lean form goes
beyond what is documented: every extension and middleware that the crawl can do without is off, and one XPath
finds the links. With `crawl-spider` it is the spider that Scrapy recommends for whole sites, which follows
what its LinkExtractor finds. With `goes-on` it has a JOBDIR, so that it can be started again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

SETTINGS = {
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
# Beyond the documentation's advice.
LEAN = {
    "EXTENSIONS": {
        "scrapy.extensions.logstats.LogStats": None,
        "scrapy.extensions.corestats.CoreStats": None,
        "scrapy.extensions.memusage.MemoryUsage": None,
        "scrapy.extensions.logcount.LogCount": None,
    },
    "DOWNLOADER_MIDDLEWARES": {
        "scrapy.downloadermiddlewares.stats.DownloaderStats": None,
        "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None,
        "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,
    },
    "SPIDER_MIDDLEWARES": {
        "scrapy.spidermiddlewares.referer.RefererMiddleware": None,
        "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
    },
}


class Folder:
    """Where pages are kept, each under its path."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._made: set[Path] = set()

    def keep(self, response: Any) -> bool:
        if "text/html" not in response.headers.get("Content-Type", b"").decode():
            return False
        path = self._folder / unquote(urlsplit(response.url).path)[1:]
        if path.parent not in self._made:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._made.add(path.parent)
        path.write_bytes(response.body)
        return True


class Lean(scrapy.Spider):  # type: ignore[misc]
    name = "lean"

    def __init__(self, url: str, folder: str, **_: Any) -> None:
        super().__init__()
        self.start_urls = [url]
        self._folder = Folder(folder)
        self._origin = url[: url.index("/", 8) + 1]

    def parse(self, response: Any, **_: Any) -> Iterator[Any]:
        if not self._folder.keep(response):
            return
        # 8.4 to 9.4 ms of CPU a page; 12.9 with a LinkExtractor, and no less with uvloop
        hrefs = response.xpath("//a/@href | //area/@href").getall()
        for target in {response.urljoin(href.partition("#")[0]) for href in hrefs}:
            if target.startswith(self._origin) and target.endswith(".html"):
                yield scrapy.Request(target)


class Recommended(CrawlSpider):  # type: ignore[misc]
    name = "recommended"
    # Without a filter, as documented. One for what ends in .html leaves out links with a fragment: 12.4 ms of CPU
    # a page then instead of 20.9, and three of 10,137 pages are never found.
    rules = (Rule(LinkExtractor(), callback="kept", follow=True),)

    def __init__(self, url: str, folder: str, **_: Any) -> None:
        super().__init__()
        self.start_urls = [url]
        self.allowed_domains = [urlsplit(url).hostname]
        self._folder = Folder(folder)

    def parse_start_url(self, response: Any, **_: Any) -> tuple[()]:
        return self.kept(response)

    def kept(self, response: Any) -> tuple[()]:
        self._folder.keep(response)
        return ()


def main() -> None:
    url, folder, pages, form, *more = sys.argv[1:]
    is_lean = form == "lean"
    settings: dict[str, Any] = {**SETTINGS, "CLOSESPIDER_PAGECOUNT": int(pages)}
    if more:
        settings["JOBDIR"] = f"{folder}.job"
    process = CrawlerProcess({**settings, **LEAN} if is_lean else settings)
    process.crawl(Lean if is_lean else Recommended, url=url, folder=folder)
    process.start()


if __name__ == "__main__":
    main()
