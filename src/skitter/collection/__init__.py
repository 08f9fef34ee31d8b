"""A crawl as its readers see it: find a page, query, verify, export. Never writes to what it reads."""
