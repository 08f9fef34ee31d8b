"""Sitemaps and feeds: their formats to lists of URLs with what is said of them."""
