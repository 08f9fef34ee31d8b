"""Every product of a shop that is a single-page app:

skitter crawl https://shop.test/ --into shop --render auto --with examples/app_shop.py
"""

import skitter


@skitter.page("*/item/*", key="url")
def product(page):
    price = page.number(".price")
    if price is not None:  # the page as it was served is an empty shell: its scripts write the price
        yield {"@type": "Product", "url": page.url, "title": page.first("title"), "price": price}
