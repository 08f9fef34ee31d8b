"""A web of single-page apps and of static pages, on loopback: to try a crawl that renders."""
