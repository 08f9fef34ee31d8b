"""What a crawl's folder holds when it is done, read by other means than it was written: the archive's records
by fastwarc, its segments by gzip, its index by offset, the frontier's rows straight from the store.

The kill trial and the end-to-end tests compare these with the web's own log. Never writes to the folder.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from pyarrow.parquet import ParquetFile

from bench._keys import key_of
from skitter.archive.schema import ITEMS, TABLES
from skitter.clock import SystemClock
from skitter.frontier.opening import open_rocks_frontier
from skitter.frontier.rows import Tally
from skitter.frontier.stores.rocks import RocksStore
from skitter.frontier.tables.layout import (
    decode_fetch,
    decode_host,
    decode_tally,
    decode_url,
    seconds,
)
from skitter.frontier.tables.memory_plan import MemoryPlan
from skitter.model import Host, SegmentMark, UrlState
from skitter.settings import FrontierSettings, Settings
from skitter.urls.canonical import host_id, robots_url

with warnings.catch_warnings():
    # fastwarc 1.1 warns of its own old names when it is imported.
    warnings.simplefilter("ignore")
    from fastwarc.warc import ArchiveIterator, WarcRecordType

_ANSWERS = WarcRecordType.response | WarcRecordType.revisit
_ALL = b"\xff" * 32
_MEMORY = MemoryPlan.of(FrontierSettings(memory=40 << 20))


class Record(NamedTuple):
    """A response or revisit record. `refers_to` is set on the latter."""

    url: str
    status: int
    segment: str
    offset: int
    id: str
    refers_to: str


class Fetch(NamedTuple):
    """One row of the frontier's ledger. `url` is empty for a robots.txt that was asked for on behalf of another
    host: only its record tells where that led."""

    url: str
    host: bytes
    sent_at: float
    result: str
    status: int
    record: tuple[str, int, int] | None


class Known(NamedTuple):
    """What the frontier holds: its ledger, its URLs by state, and where its own totals disagree with its rows."""

    fetches: list[Fetch]
    states: dict[str, str]
    disagreements: list[str]


def records(archive: Path) -> list[Record]:
    return [record for segment in sorted(archive.glob("*.warc.gz")) for record in _records_of(segment)]


def _records_of(segment: Path) -> Iterator[Record]:
    with segment.open("rb") as stream:
        for record in ArchiveIterator(stream, record_types=_ANSWERS, parse_http=True):
            headers = record.headers
            yield Record(
                url=headers["WARC-Target-URI"],
                status=int(record.http_headers.status_code or 0),
                segment=segment.name,
                offset=record.stream_pos,
                id=headers["WARC-Record-ID"],
                refers_to=headers.get("WARC-Refers-To") or "",
            )


def known(frontier: Path) -> Known:
    store = RocksStore(frontier, _MEMORY, read_only=True)
    try:
        return _known(store)
    finally:
        store.close()


def _known(store: RocksStore) -> Known:
    rows = {key: decode_url(raw) for key, raw in store.scan("urls", b"", _ALL)}
    names = {key: row.url for key, row in rows.items()}
    queued = 0
    for _, raw in store.scan("hosts", b"", _ALL):
        host = decode_host(raw)
        names[key_of(robots_url(Host(host.host)))] = robots_url(Host(host.host))
        queued += sum(host.queue.lengths)
    fetches = []
    for key, raw in store.scan("ledger", b"", _ALL):
        row = decode_fetch(raw)
        url = names.get(key[:16], "")
        fetches.append(Fetch(url, key[:8], seconds(key[16:]), row.result, row.status, row.record))
    states = {row.url: UrlState(row.state).name.lower() for row in rows.values()}
    tally = decode_tally(store.get("meta", b"tally") or b"")
    return Known(fetches, states, list(_disagreements(tally, states, queued, len(fetches))))


def _disagreements(tally: Tally, states: dict[str, str], queued: int, fetches: int) -> Iterator[str]:
    """Valid when no crawl runs: nothing is leased then, and so nothing is in progress."""
    counted = Counter(states.values())
    for state in UrlState:
        name = state.name.lower()
        if tally.urls.get(state, 0) != counted[name]:
            yield f"{name}: {tally.urls.get(state, 0)} by the totals, {counted[name]} by the rows"
    if queued != counted["queued"]:
        yield f"queued: {queued} by the hosts, {counted['queued']} by the rows"
    if tally.fetches != fetches:
        yield f"fetches: {tally.fetches} by the totals, {fetches} by the ledger"


def marks(frontier: Path) -> list[SegmentMark]:
    """What is committed of each segment, as the frontier's own view has it."""

    async def ask() -> list[SegmentMark]:
        opened = open_rocks_frontier(frontier, Settings(), SystemClock(), read_only=True)
        try:
            return await opened.marks()
        finally:
            await opened.close()

    return asyncio.run(ask())


def archive_faults(archive: Path, found: list[Record], *, merged: bool = True) -> list[str]:
    """Debris, segments that gzip cannot read, index lines that lead elsewhere, revisits of nothing."""
    faults = [f"left behind: {path.name}" for path in sorted(archive.iterdir()) if _is_debris(path)]
    segments = sorted(archive.glob("*.warc.gz"))
    for segment in segments:
        tested = subprocess.run(["gzip", "-t", str(segment)], capture_output=True, text=True, check=False)
        if tested.returncode:
            faults.append(f"gzip -t: {tested.stderr.strip()}")
    ids = {record.id for record in found if not record.refers_to}
    faults += [
        f"{r.url} revisits {r.refers_to}, not here" for r in found if r.refers_to and r.refers_to not in ids
    ]
    if segments:
        faults += _index_faults(archive, found, merged)
        faults += _table_faults(archive, found)
    return faults


def _is_debris(path: Path) -> bool:
    tables = {table.name for table in (*TABLES, ITEMS)}
    return not path.name.endswith((".warc.gz", ".cdxj")) and path.name not in tables


def _table_faults(archive: Path, found: list[Record]) -> Iterator[str]:
    """Each record has one row in `pages`; `links` and `text` tell of nothing else, and of nothing twice."""
    there = {(record.segment, record.offset): record.url for record in found}
    pages = _rows(archive, "pages", ["url", "fetch_time", "warc_filename", "warc_record_offset"])
    places = Counter((row["warc_filename"], row["warc_record_offset"]) for row in pages)
    yield from (f"pages: {count} rows for {place}" for place, count in places.items() if count > 1)
    yield from (f"pages: no row for {there[place]} at {place}" for place in there.keys() - places.keys())
    for row in pages:
        if there.get((row["warc_filename"], row["warc_record_offset"])) != row["url"]:
            yield f"pages: a row for {row['url']} where no record of it is"
    fetches = {(row["url"], row["fetch_time"]) for row in pages}
    for table in ("links", "text"):
        told = Counter(
            (row["url"], row["fetch_time"]) for row in _rows(archive, table, ["url", "fetch_time"])
        )
        for fetch, count in told.items():
            if count > 1 or fetch not in fetches:
                yield f"{table}: {count} rows for {fetch}, {'' if fetch in fetches else 'not '}in pages"


def _rows(archive: Path, table: str, columns: list[str]) -> list[dict[str, Any]]:
    parts = sorted((archive / table).glob("*"))
    return [row for part in parts for row in ParquetFile(part).read(columns).to_pylist()]


def _index_faults(archive: Path, found: list[Record], has_merged: bool) -> Iterator[str]:
    """Each record has one line, each line one record, in the merged index (if any) and in the segments' own."""
    there = {(record.segment, record.offset): record.url for record in found}
    merged = _index_lines(archive / "index.cdxj")
    apart = [
        line
        for index in sorted(archive.glob("*.cdxj"))
        if index.name != "index.cdxj"
        for line in _index_lines(index)
    ]
    merged = merged if has_merged else apart
    for name, lines in (("index.cdxj", merged), ("the segments' indexes", apart)):
        places = Counter((line["filename"], int(line["offset"])) for line in lines)
        for place in places.keys() - there.keys():
            yield f"{name}: a line for {place}, where no record is"
        for place in there.keys() - places.keys():
            yield f"{name}: no line for {there[place]} at {place}"
        yield from (f"{name}: {count} lines for {place}" for place, count in places.items() if count > 1)
    for line in merged:
        yield from _line_faults(archive, line)


def _index_lines(index: Path) -> list[dict[str, Any]]:
    if not index.is_file():
        return []
    return [json.loads(line.split(" ", 2)[2]) for line in index.read_text("utf-8").splitlines()]


def _line_faults(archive: Path, line: dict[str, Any]) -> Iterator[str]:
    """Offset and length must name one whole gzip member that holds the record the line speaks of."""
    path = archive / str(line["filename"])
    if not path.is_file():
        yield f"index.cdxj: {line['filename']} is not there"
        return
    with path.open("rb") as stream:
        stream.seek(int(line["offset"]))
        member = stream.read(int(line["length"]))
    inflater = zlib.decompressobj(31)
    try:
        text = inflater.decompress(member)
    except zlib.error as error:
        yield f"{line['url']}: {error}"
        return
    if not inflater.eof or inflater.unused_data:
        yield f"{line['url']}: its index line does not name exactly one gzip member"
    held = [record.headers["WARC-Target-URI"] for record in ArchiveIterator(BytesIO(text), parse_http=False)]
    if held != [line["url"]]:
        yield f"{line['url']}: its index line leads to {held}"


def ident_of(url: str) -> bytes:
    """How the ledger names the host of a URL."""
    return host_id(url[: url.index("/", 8)])
