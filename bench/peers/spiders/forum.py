# The task `forum` as a Scrapy spider, as its documentation would write it.
# mypy: ignore-errors
# ruff: noqa: RUF012
import os

import scrapy


class Forum(scrapy.Spider):
    name = "forum"
    start_urls = ["http://forum.test/login"]
    allowed_domains = ["forum.test"]
    custom_settings = {"COOKIES_ENABLED": True, "REDIRECT_ENABLED": True}

    def parse(self, response):
        fields = {"user": "me", "password": os.environ["FORUM_PASSWORD"]}
        yield scrapy.FormRequest.from_response(
            response, formdata=fields, callback=self.page, dont_filter=True
        )

    def page(self, response):
        if not response.css("a.logout"):
            self.logger.error("not logged in: %s", response.url)
            return
        if "/t/" in response.url:
            yield {"title": response.css("title::text").get(), "author": response.css(".author::text").get()}
        yield from response.follow_all(css="a", callback=self.page)
