# The task `only_products` as a Scrapy spider, as its documentation would write it.
# mypy: ignore-errors
# ruff: noqa: RUF012
from hashlib import sha256
from pathlib import Path

import scrapy


class OnlyProducts(scrapy.Spider):
    name = "only_products"
    start_urls = ["http://shop.test/"]
    allowed_domains = ["shop.test"]

    def parse(self, response):
        if "/products/" in response.url:
            folder = Path(self.settings["KEPT"])
            folder.mkdir(exist_ok=True)
            (folder / sha256(response.url.encode()).hexdigest()).write_bytes(response.body)
            yield {"url": response.url}
        elif response.url.endswith("/") or "/list" in response.url:
            yield from response.follow_all(css="a")
