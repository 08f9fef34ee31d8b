"""Mutated journals, parts and indexes of an archive: it opens, goes on, and `verify` names what is wrong.

    python -m tests.fuzz.journals SECONDS SEED

A segment of some pages is left growing by a writer that was killed. Then a few bytes of one of its journals are
changed, as by a bad disk or by a worker that got something past us. Whatever they are: the archive opens, takes
another page and closes; all records are there; and where rows or index lines are not those of the records,
`verify` says so. Every 50th is verified whole; of the others what was set aside is only looked for.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from pyarrow.parquet import ParquetFile

from skitter.archive.facts import Facts
from skitter.archive.set_aside import FOLDER
from skitter.archive.store import Archive
from skitter.clock import SystemClock
from skitter.collection.collection import Collection
from skitter.collection.verify.archive import verify
from skitter.collection.verify.findings import Ledger
from skitter.model import Link, SegmentMark
from skitter.settings import ArchiveSettings
from tests.exchanges import exchange, stored_in
from tests.fuzz.mutation import Mutator, tell_progress

PAGES = 6
SETTINGS = ArchiveSettings(segment_size=1 << 20)
AFTER = "http://a.test/after"


class Left(NamedTuple):
    """What a killed writer left of a crawl, and what the frontier knows of it."""

    crawl: Path
    marks: list[SegmentMark]
    urls: list[str]


def leave_growing(crawl: Path, pages: int = PAGES) -> Left:
    """As a kill does: nothing is closed."""
    (crawl / "archive").mkdir(parents=True)
    (crawl / "crawl.toml").write_text("")
    archive = Archive.open(crawl / "archive", SETTINGS, SystemClock(), (), {}, in_child=False)
    urls = [f"http://a.test/{number}" for number in range(pages)]
    for url in urls:
        append(archive, url)
    marks = list(archive.marks())
    shutil.copytree(crawl, crawl.with_suffix(".left"))
    archive.close()
    return Left(crawl.with_suffix(".left"), marks, urls)


def append(archive: Archive, url: str) -> None:
    links = tuple((f"{url}/{number}", Link(f"{number}", "Next")) for number in range(3))
    facts = Facts(text=f"Words of {url}", title="A title", links=links)
    stored_in(archive, exchange(url, url.encode() * 9), facts=facts)


def damage(left: Left, mutator: Mutator) -> str:
    """Which file was changed."""
    archive = left.crawl / "archive"
    ends = (".rows.open", ".rows.open", ".rows.open", ".cdxj.open")
    (path,) = archive.glob(f"*{mutator.dice.choice(ends)}")
    path.write_bytes(mutator.of_same_length(path.read_bytes()))
    return path.name


def go_on(left: Left, *, verified: bool = True) -> None:
    """Raises when the damaged archive does not open, go on and say what it lacks."""
    folder = left.crawl / "archive"
    archive = Archive.open(folder, SETTINGS, SystemClock(), left.marks, {}, in_child=False)
    append(archive, AFTER)
    marks = {mark.segment: mark for mark in (*left.marks, *archive.marks())}
    archive.committed()
    archive.close()
    wanted = [*left.urls, AFTER]
    if not verified and (folder / FOLDER).exists():
        return
    if _told(folder) != Counter(wanted) or _indexed(folder) != Counter(wanted):
        ledger = Ledger(marks=tuple(marks.values()), least=len(wanted), most=len(wanted))
        report = verify(Collection.at(left.crawl), ledger)
        assert report.answers == len(wanted), f"{report.answers} of {len(wanted)} records are left"
        assert report.defects, "rows or lines are missing, and verify names no defect"


def _told(folder: Path) -> Counter[str]:
    """URLs of the pages table whose rows are where their records are; none if something was set aside."""
    if (folder / FOLDER).exists():
        return Counter()
    rows: list[dict[str, Any]] = []
    for part in (folder / "pages").glob("*.parquet"):
        with ParquetFile(part) as file:
            rows += file.read(["url", "warc_record_offset", "warc_filename"]).to_pylist()
    return Counter(row["url"] for row in rows)


def _indexed(folder: Path) -> Counter[str]:
    lines = (folder / "index.cdxj").read_bytes().split(b"\n")[:-1]
    return Counter(
        line.partition(b'"url": "')[2].partition(b'"')[0].decode("utf-8", "replace") for line in lines
    )


def main() -> int:
    seconds, seed = float(sys.argv[1]), int(sys.argv[2])
    mutator, done, until = Mutator(seed), 0, time.monotonic() + seconds
    changed: Counter[str] = Counter()
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        template = leave_growing(Path(folder) / "crawl")
        while time.monotonic() < until:
            shutil.copytree(template.crawl, Path(folder) / "tried")
            tried = template._replace(crawl=Path(folder) / "tried")
            changed[damage(tried, mutator).partition(".")[2]] += 1
            go_on(tried, verified=done % 50 == 0)
            shutil.rmtree(tried.crawl)
            done += 1
            tell_progress(done)
    print(f"{done:,} mutated journals ({', '.join(f'{n:,} {name}' for name, n in sorted(changed.items()))})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
