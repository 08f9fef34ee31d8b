"""Follows nothing but lists and products; the pages of products first."""

import skitter


@skitter.links("shop.test/*")
def choose(page, links):
    wanted = [link for link in links if "/products/" in link.url or "/list" in link.url]
    return [link.at(80 if "/products/" in link.url else 40) for link in wanted if "sort=" not in link.url]
