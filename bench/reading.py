"""How fast an archive is read: a count by host and status over a million rows of `pages`, and verifying and
exporting real pages. `python -m bench.reading` prints the figures; process starts are included.

The rows are made, the pages are the HTML files of a folder (Debian's openjdk-17-doc by default).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pyarrow
from pyarrow import parquet

from skitter.archive.digests import digests_of
from skitter.archive.packing import Packer
from skitter.archive.store import Archive
from skitter.clock import SystemClock
from skitter.model import Exchange
from skitter.settings import ArchiveSettings

_QUERY = "select host, status, count(*) n from pages group by all order by n desc limit 10"
_PART = 5000
_DOCS = Path("/usr/share/doc/openjdk-17-doc/api")


def make_rows(archive: Path, rows: int, hosts: int = 2000) -> None:
    """Parts of the size that a crawl writes."""
    (archive / "pages").mkdir(parents=True)
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    for start in range(0, rows, _PART):
        numbers = range(start, min(rows, start + _PART))
        names = [f"www{n * 7919 % hosts}.example.org" for n in numbers]
        urls = [f"https://{name}/section/{n}.html" for name, n in zip(names, numbers, strict=True)]
        table = pyarrow.table(
            {
                "url": urls,
                "url_host_name": names,
                "fetch_time": pyarrow.array(
                    [begun + timedelta(milliseconds=n) for n in numbers], pyarrow.timestamp("us", "UTC")
                ),
                "fetch_status": pyarrow.array(
                    [404 if n % 17 == 0 else 301 if n % 23 == 0 else 200 for n in numbers], pyarrow.int16()
                ),
                "title": [f"Page number {n} of the collection" for n in numbers],
                "content_digest": [f"sha256:{sha256(url.encode()).hexdigest()}" for url in urls],
                "warc_filename": ["skitter-20260101000000-00000.warc.gz"] * len(urls),
                "warc_record_offset": pyarrow.array([n * 9000 for n in numbers], pyarrow.int64()),
            }
        )
        parquet.write_table(table, archive / "pages" / f"part-{start:09d}.parquet", compression="zstd")


def make_pages(folder: Path, docs: Path, most: int) -> int:
    folder.mkdir()
    (folder / "crawl.toml").write_text("")
    archive = Archive.open(folder / "archive", ArchiveSettings(), SystemClock(), (), {}, in_child=False)
    packer = Packer(ArchiveSettings())
    files = sorted(docs.rglob("*.html"))[:most]
    for number, file in enumerate(files):
        body = file.read_bytes()
        url = f"https://docs.example.org/{file.relative_to(docs)}"
        exchange = Exchange(
            url=url,
            request=b"GET / HTTP/1.1\r\nHost: docs.example.org\r\n\r\n",
            head=b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n",
            status=200,
            headers=(("content-type", "text/html; charset=utf-8"),),
            body=body,
            sent_at=1.7e9 + number,
        )
        archive.place(packer.pack(exchange, digests_of(exchange), media_type="text/html"))
    archive.marks()
    archive.committed()
    archive.close()
    return len(files)


def seconds_of(*arguments: object, times: int = 5) -> float:
    """The median of some runs, so that the first one's cold files do not count."""
    taken = []
    for _ in range(times):
        begun = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "skitter", *map(str, arguments)], check=True, capture_output=True
        )
        taken.append(time.monotonic() - begun)
    return sorted(taken)[len(taken) // 2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.reading", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--docs", type=Path, default=_DOCS, help="a folder of HTML files")
    parser.add_argument("--pages", type=int, default=10_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        make_rows(work / "rows" / "archive", arguments.rows)
        taken = seconds_of("query", work / "rows", _QUERY)
        print(f"query: {arguments.rows:,} rows by host and status in {taken:.2f} s")
        if not arguments.docs.is_dir():
            print(f"{arguments.docs} is not there: no pages to verify and export")
            return 0
        pages = make_pages(work / "pages", arguments.docs, arguments.pages)
        size = sum(file.stat().st_size for file in (work / "pages" / "archive").glob("*.warc.gz"))
        taken = seconds_of("verify", work / "pages", times=1)
        print(f"verify: {pages:,} pages, {size / taken / 1e6:.0f} MB/s of compressed WARC ({taken:.1f} s)")
        for form in ("wacz", "jsonl", "markdown", "files", "cdxj", "parquet"):
            taken = seconds_of("export", work / "pages", "--to", form, work / form, times=1)
            print(f"export to {form}: {pages / taken:,.0f} pages/s ({taken:.1f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
