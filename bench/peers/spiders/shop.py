# The task `shop` as a Scrapy spider, as its documentation would write it.
# mypy: ignore-errors
# ruff: noqa: RUF012
import scrapy


class Shop(scrapy.Spider):
    name = "shop"
    start_urls = ["http://shop.test/"]
    allowed_domains = ["shop.test"]

    def parse(self, response):
        if "/products/" in response.url:
            yield {
                "url": response.url,
                "title": response.css("h1::text").get(),
                "price": float(response.css(".price::text").re_first(r"[\d,]+").replace(",", ".")),
                "image": response.urljoin(response.css("img.product::attr(src)").get()),
            }
        yield from response.follow_all(css="a")
