# The task `home_pages` as a Scrapy spider, as its documentation would write it.
# mypy: ignore-errors
# ruff: noqa: SIM115
import json

import scrapy

KINDS = ("Organization", "LocalBusiness", "Corporation")


class HomePages(scrapy.Spider):
    name = "home_pages"

    async def start(self):
        for line in open(self.settings["SEEDS"]):
            yield scrapy.Request(line.strip())

    def parse(self, response):
        for text in response.xpath('//script[@type="application/ld+json"]/text()').getall():
            try:
                said = json.loads(text)
            except ValueError:
                continue
            things = said if isinstance(said, list) else said.get("@graph", [said])
            for thing in things:
                if thing.get("@type") in KINDS:
                    fields = {name: thing.get(name) for name in ("name", "email", "telephone")}
                    yield {"url": response.url, **fields}
