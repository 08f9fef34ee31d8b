"""What does it cost to archive a page: digests, WARC records, index, metadata record, tables?

    python -m bench.archive --pages 3000

Real pages (Debian's openjdk-17-doc, or any folder of HTML files) are read once and then archived in several ways,
each in a fresh folder, with a commit every 50 pages; the figures are CPU time of the process a page, threads
included. warcio and fastwarc write the same exchanges beside it. One JSON object as the last line; exit code 1
when the whole takes more than the budget, 2 when there are no pages.
"""

from __future__ import annotations

import argparse
import gc
import io
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench._report import last_line, progress, table
from skitter.archive.digests import digests_of
from skitter.archive.facts import Answer, Facts, describe_answer
from skitter.archive.packing import Packer
from skitter.archive.schema import TABLES
from skitter.archive.store import Archive
from skitter.archive.tables.rows import pack_rows
from skitter.archive.warc import records as warc
from skitter.archive.warc.coding import GZIP, ZSTD
from skitter.archive.warc.metadata import metadata_block
from skitter.archive.warc.surt import surt
from skitter.clock import SystemClock
from skitter.fetch_stack import GC_THRESHOLDS
from skitter.model import Exchange
from skitter.parse.page import read_page
from skitter.settings import ArchiveSettings
from skitter.urls.links import LinkReader

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from fastwarc.stream_io import GZipStream
    from fastwarc.warc import WarcRecord
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from bench._keys import KEYS

DOCUMENTS = Path("/usr/share/doc/openjdk-17-doc/api")
BUDGET = 200.0
COMMIT = 50
REQUEST = b"GET / HTTP/1.1\r\nHost: docs.test\r\nUser-Agent: skitter (+mailto:crawl@example.org)\r\n\r\n"
HEAD = (
    b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nContent-Type: text/html\r\nContent-Length: %d\r\n"
    b'Last-Modified: Tue, 21 Oct 2025 00:00:00 GMT\r\nETag: "68f6d700-%x"\r\n\r\n'
)


class Given(NamedTuple):
    exchange: Exchange
    facts: Facts


def exchanges(folder: Path, pages: int) -> list[Exchange]:
    files = sorted(folder.rglob("*.html"))
    found = []
    for number, path in enumerate(files[:: max(1, len(files) // pages)][:pages]):
        body = path.read_bytes()
        found.append(
            Exchange(
                url=f"http://docs.test/{path.relative_to(folder)}",
                request=REQUEST,
                head=HEAD % (len(body), number),
                status=200,
                headers=(("content-type", "text/html"), ("etag", f'"68f6d700-{number:x}"')),
                body=body,
                address="192.0.2.7",
                sent_at=1_767_323_045.25 + number,
                ended_at=1_767_323_045.30 + number,
            )
        )
    return found


def read(found: Sequence[Exchange], links: LinkReader) -> list[Given]:
    given = []
    for exchange in found:
        page = read_page(exchange.body, url=exchange.url, content_type="text/html", with_text=True)
        facts = Facts(
            media_type=page.media_type,
            charset=page.charset,
            title=page.title,
            text=page.text,
            links=links.targets(page.base, page.links),
        )
        given.append(Given(exchange, facts))
    return given


def archived(given: Sequence[Given], settings: ArchiveSettings) -> dict[str, int]:
    """Everything from append to the finished archive; returns the bytes that each kind of file takes."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Archive.open(Path(folder), settings, SystemClock(), (), {}, in_child=False)
        packer = Packer(settings)
        for number, (exchange, facts) in enumerate(given, 1):
            archive.place(packer.pack(exchange, digests_of(exchange), media_type="text/html", facts=facts))
            if number % COMMIT == 0:
                archive.marks()
                archive.committed()
        archive.marks()
        archive.committed()
        archive.close()
        kinds = {"WARC": "*.warc.*", "CDXJ": "index.cdxj", "pages": "pages/*", "links": "links/*"}
        kinds["text"] = "text/*"
        return {
            kind: sum(path.stat().st_size for path in Path(folder).glob(pattern))
            for kind, pattern in kinds.items()
        }


def by_warcio(given: Sequence[Given]) -> None:
    writer = WARCWriter(io.BytesIO(), gzip=True, warc_version="1.1")
    for exchange, _ in given:
        for kind, block in (("request", REQUEST), ("response", exchange.head + exchange.body)):
            head, _, body = block.partition(b"\r\n\r\n")
            first, *rest = head.decode().split("\r\n")
            fields = [tuple(line.split(": ", 1)) for line in rest]
            http = StatusAndHeaders(first.partition(" ")[2], fields, first.partition(" ")[0])
            writer.write_record(
                writer.create_warc_record(exchange.url, kind, payload=io.BytesIO(body), http_headers=http)
            )


def by_fastwarc(given: Sequence[Given]) -> None:
    stream: Any = GZipStream(io.BytesIO(), compression_level=1)  # type: ignore[no-untyped-call]
    for exchange, _ in given:
        for kind, block in (
            ("request", REQUEST),
            ("response", exchange.head + exchange.body),
        ):
            record = WarcRecord()
            record.init_headers()
            record.headers["WARC-Type"] = kind
            record.headers["WARC-Target-URI"] = exchange.url
            record.set_bytes_content(block)
            record.write(stream, checksum_data=True)
    stream.close()


def described(exchange: Exchange, facts: Facts) -> Answer:
    """As the packer makes it."""
    return describe_answer(
        exchange,
        facts,
        dict(exchange.headers),
        url=exchange.url,
        surt="test,docs)/",
        mime="text/html",
        digest="",
        micros=0,
        with_links=True,
        with_text=True,
    )


def stages(given: Sequence[Given]) -> dict[str, Callable[[], object]]:
    def each(work: Callable[[Exchange, Facts], object]) -> Callable[[], object]:
        return lambda: [work(exchange, facts) for exchange, facts in given]

    def bodies(packed: Callable[[bytes], bytes]) -> Callable[[], object]:
        return each(lambda e, _: packed(e.body))

    short, rows = GZIP.coder(1).short, pack_rows(TABLES)
    return {
        "SHA-256 of the body": each(lambda e, _: sha256(e.body).digest()),
        "both digests": each(lambda e, _: digests_of(e)),
        **{
            f"{coding.name} of the response (level {level})": bodies(coding.coder(level).page)
            for coding in (GZIP, ZSTD)
            for level in range(4)
        },
        "request record": each(lambda e, _: short(warc.request_record(e.request, "urn:x", ""))),
        "index key": each(lambda e, _: surt(e.url)),
        "table rows, with the digest of the text": each(lambda e, facts: rows(described(e, facts))),
        "metadata record with outlinks": each(
            lambda e, facts: short(
                warc.metadata_record("urn:x", "urn:y", "", metadata_block(e, facts, with_links=True))
            )
        ),
    }


RUNS = 5
WAYS = {
    "records and index": ArchiveSettings(tables=(), metadata=False),
    "+ metadata records": ArchiveSettings(tables=()),
    "+ table pages": ArchiveSettings(tables=("pages",)),
    "+ table text": ArchiveSettings(tables=("pages", "text")),
    "+ table links (all)": ArchiveSettings(),
    "all, with zstd": ArchiveSettings(compression="zstd"),
    "all but metadata": ArchiveSettings(metadata=False),
}


def cost(work: Callable[[], object], pages: int) -> float:
    """Microseconds of CPU a page, the median of five runs; one before them finds everything cold."""
    work()
    taken = []
    for _ in range(RUNS):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return median(taken) / pages * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.archive", description=__doc__)
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--folder", type=Path, default=DOCUMENTS)
    options = parser.parse_args()
    found = exchanges(options.folder, options.pages)
    if not found:
        print(f"no HTML files in {options.folder}: install openjdk-17-doc or give --folder", file=sys.stderr)
        return 2
    given = read(found, LinkReader(KEYS))
    import skitter.archive.tables.parquet_files  # noqa: F401  (once a process, not a cost of a page)

    gc.set_threshold(*GC_THRESHOLDS)  # as in a crawl

    rows: list[tuple[str, float]] = []
    works = {
        **stages(given),
        **{name: (lambda way=way: archived(given, way)) for name, way in WAYS.items()},  # type: ignore[misc]
        "fastwarc, records only": lambda: by_fastwarc(given),
        "warcio, records only": lambda: by_warcio(given),
    }
    for name, work in works.items():
        rows.append((name, round(cost(work, len(given)), 1)))
        progress(f"{name}: {rows[-1][1]} us a page")
    whole = dict(rows)["+ table links (all)"]
    sizes = archived(given, ArchiveSettings())
    sizes["WARC, with zstd"] = archived(given, WAYS["all, with zstd"])["WARC"]
    print(table([("stage", "us a page"), *rows]))
    print(table([("file", "bytes a page"), *((kind, size / len(given)) for kind, size in sizes.items())]))
    mean = sum(len(e.body) for e in found) / len(found)
    last_line({"pages": len(found), "bytes": round(mean), "us": dict(rows), "sizes": sizes})
    return int(whole > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
