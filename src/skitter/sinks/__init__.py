"""Committed rows of a crawl, sent on to somewhere else: what `skitter sink` runs (docs/sinks.md)."""
