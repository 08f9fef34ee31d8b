"""Every product of a shop: skitter crawl https://shop.test/ --into shop --with examples/shop.py"""

import skitter


@skitter.page("shop.test/products/*", key="url")
def product(page):
    image = page.attr("img.product", "src")
    yield {
        "@type": "Product",
        "url": page.url,
        "title": page.first("h1"),
        "price": page.number(".price"),
        "image": page.absolute(image),
    }
