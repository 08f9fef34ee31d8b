"""A crawl as a loop over pages: python examples/notebook.py https://shop.test/ FOLDER SETTINGS.toml"""

import sys

import skitter

prices = {}
for page in skitter.crawl(sys.argv[1], into=sys.argv[2], max_pages=200, config=sys.argv[3]):
    if page.number(".price"):
        prices[page.first("h1")] = page.number(".price")

print(f"{len(prices)} products, the cheapest {min(prices, key=prices.get)}")
