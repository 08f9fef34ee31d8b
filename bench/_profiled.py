"""`skitter` with a stopwatch on the stages of a page; a child of `bench.profile`.

    python -m bench._profiled FILE crawl http://...

Does what `python -m skitter crawl ...` does, and leaves what each stage took in FILE.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec

from bench._stopwatch import Stopwatch
from skitter.cli import main

_ROCKS = "skitter.frontier.rocks"
STAGES = {
    "libcurl and its callbacks": (
        "skitter.fetch.lanes:Lane.drive",
        "skitter.fetch.lanes:Lane.begin",
    ),
    "one request: set-up, limits, conclusion": ("skitter.fetch.curl:Fetcher.fetch",),
    "parse": ("skitter.worker.step:read_page",),
    "fingerprint": ("skitter.parse.fingerprint:simhash",),
    "links: resolve and hash": (
        "skitter.urls.links:LinkReader.resolve",
        "skitter.worker.meaning:discovered",
        "skitter.worker.step:told",
    ),
    "digests": ("skitter.worker.step:digests_of", "skitter.archive.warc:_digested"),
    "deflate": ("isal.isal_zlib:compress",),
    "archive: header blocks, index line": ("skitter.archive.packing:Packer.pack",),
    "archive: table rows": ("skitter.archive.packing:row_pieces",),
    "archive: place, write": (
        "skitter.archive.store:Archive.place",
        "skitter.archive.store:Archive.marks",
        "skitter.archive.store:Archive.committed",
    ),
    "frontier: lease": (f"{_ROCKS}.frontier:RocksFrontier.lease",),
    "frontier: settle": (f"{_ROCKS}.frontier:RocksFrontier.settle",),
    "frontier: links offered": (f"{_ROCKS}.settling:admit_links",),
    "frontier: near-duplicates": (f"{_ROCKS}.settling:remember",),
    "frontier: commit": (f"{_ROCKS}.store:Store.write",),
    "frontier: judge, known bodies, chores": (
        f"{_ROCKS}.frontier:RocksFrontier.judge",
        f"{_ROCKS}.frontier:RocksFrontier.first_copies",
        f"{_ROCKS}.frontier:RocksFrontier.promote",
        f"{_ROCKS}.frontier:RocksFrontier.reap",
        f"{_ROCKS}.frontier:RocksFrontier.renew",
    ),
    "worker: step, result": ("skitter.worker.step:Step.run",),
    "worker: pace, slots, loop": ("skitter.worker.loop:Loop._work", "skitter.worker.loop:Loop.run"),
    "desk: filing": ("skitter.desk.desk:Desk.settled",),
    "desk: report": ("skitter.desk.report:Report.settled",),
}
START = "start: interpreter, imports, opening"


class Profile(msgspec.Struct):
    """Seconds of CPU. `spent` is by stage, of the main thread."""

    spent: dict[str, float]
    calls: dict[str, int]
    process: float
    overhead: float


def run(report: Path, arguments: list[str]) -> int:
    began = time.thread_time()
    watch = Stopwatch()
    missing = []
    for stage, places in STAGES.items():
        for place in places:
            try:
                watch.time(place, stage)
            except AttributeError:
                missing.append(place)
    if missing:
        raise SystemExit(f"these are not there any more, see STAGES: {' '.join(missing)}")
    code = main(arguments)
    watch.enter("end")
    spent = {stage: nanoseconds / 1e9 for stage, nanoseconds in watch.spent.items()}
    spent[START] = began
    overhead = watch.overhead()
    process = time.process_time()
    report.write_bytes(msgspec.json.encode(Profile(spent, dict(watch.calls), process, overhead)))
    return code


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
