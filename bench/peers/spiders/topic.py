# The task `topic` as a Scrapy spider, as its documentation would write it.
# mypy: ignore-errors
# ruff: noqa: RUF012
import re

import scrapy

WORDS = re.compile(r"\b(?:replication|standby)\b", re.IGNORECASE)


class Topic(scrapy.Spider):
    name = "topic"
    start_urls = ["http://docs.test/index.html"]
    allowed_domains = ["docs.test"]

    def parse(self, response):
        text = " ".join(response.xpath("//body//text()[not(parent::script)]").getall())
        score = min(1.0, 50 * len(WORDS.findall(text)) / max(1, len(text.split())))
        yield {"url": response.url, "score": score}
        for link in response.css("a[href]"):
            said = WORDS.search(f"{link.attrib['href']} {''.join(link.css('::text').getall())}")
            yield response.follow(link, priority=round(60 * max(score, 0.6 if said else 0)))
