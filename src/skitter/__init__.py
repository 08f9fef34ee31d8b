"""skitter: a web crawler that is fast globally and polite locally."""

__version__ = "0.1.0"
