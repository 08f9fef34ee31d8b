"""Generated sitemaps of 50,000 URLs, and what reading an index of them takes: a process that imports little else.

    python -m bench._sitemap_files 500

Under `bench.sitemaps`. Files are made one at a time and in parts, so that making them takes no memory.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import zlib

from bench._report import progress
from skitter.parse.sitemaps.sitemap import Format, SitemapReader, pieces_of

URLS = 50_000
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<{} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'


def file_of(origin: str, number: int, urls: int = URLS) -> bytes:
    """A sitemap in gzip as a shop has them: URL, date, frequency and priority."""
    stream, day = zlib.compressobj(1, wbits=31), f"2026-{1 + number % 9:02d}"
    parts = [stream.compress(_HEAD.format("urlset").encode())]
    for start in range(0, urls, 1000):
        entries = [
            f"<url>\n  <loc>{origin}/catalog/section-{item % 97}/item-{number}-{item}.html</loc>\n"
            f"  <lastmod>{day}-{1 + item % 28:02d}T10:{item % 60:02d}:11+00:00</lastmod>\n"
            f"  <changefreq>weekly</changefreq>\n  <priority>0.{item % 10}</priority>\n</url>\n"
            for item in range(start, min(start + 1000, urls))
        ]
        parts.append(stream.compress("".join(entries).encode()))
    return b"".join([*parts, stream.compress(b"</urlset>\n"), stream.flush()])


def index_of(origin: str, files: int) -> bytes:
    entries = "".join(
        f"<sitemap><loc>{origin}/maps/{number}.xml.gz</loc></sitemap>\n" for number in range(files)
    )
    return (_HEAD.format("sitemapindex") + entries + "</sitemapindex>\n").encode()


def parse(files: int) -> dict[str, object]:
    """In a process of its own: its peak is the result."""
    origin, found, cpu, inflated = "https://shop.test", 0, 0.0, 0
    index = SitemapReader()
    names = [entry for piece in pieces_of(index_of(origin, files)) for entry in index.feed(piece)]
    names += index.close()
    assert index.format is Format.INDEX
    for number in range(len(names)):
        body = file_of(origin, number)
        began = time.process_time()
        reader = SitemapReader()
        for piece in pieces_of(body):
            inflated += len(piece)
            found += len(reader.feed(piece))
        found += len(reader.close())
        cpu += time.process_time() - began
        if number % 20 == 19:
            progress(f"{number + 1} files, {found:,} URLs, {cpu:.0f} s")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"files": len(names), "urls": found, "gigabytes": inflated / 1e9, "cpu_s": cpu, "rss_mb": most}


if __name__ == "__main__":
    print(json.dumps(parse(int(sys.argv[1]))))
