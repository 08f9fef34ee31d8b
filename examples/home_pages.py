"""Who is behind many home pages: skitter crawl domains.txt --into homes --max-depth 0 --with home_pages.py"""

import skitter


@skitter.page(key="url")
def organisation(page):
    for thing in page.data:
        if thing.get("@type") in ("Organization", "LocalBusiness", "Corporation"):
            fields = {name: thing.get(name) for name in ("name", "email", "telephone")}
            yield {"@type": "Organisation", "url": page.url, **fields}
