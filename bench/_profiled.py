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

_ENGINE = "skitter.frontier.engine"
STAGES = {
    "libcurl and its callbacks": (
        "skitter.fetch.curl_pools:CurlPool.drive",
        "skitter.fetch.curl_pools:CurlPool.begin",
    ),
    "one request: set-up, limits, conclusion": ("skitter.fetch.curl:CurlFetcher.fetch",),
    "parse": ("skitter.worker.reading.page_reader:read_page",),
    "fingerprint": ("skitter.parse.fingerprints.fingerprint:simhash",),
    "links: resolve and hash": (
        "skitter.urls.links:LinkReader.resolve",
        "skitter.worker.results:discover_resolved",
        "skitter.worker.step:list_targets",
    ),
    "digests": ("skitter.worker.step:digests_of", "skitter.archive.warc.records:_digested"),
    "deflate": ("isal.igzip_lib:compress",),
    "archive: header blocks, index line": ("skitter.archive.packing:Packer.pack",),
    "archive: table rows": ("skitter.archive.packing:describe_answer",),
    "archive: place, write": (
        "skitter.archive.store:Archive.place",
        "skitter.archive.store:Archive.marks",
        "skitter.archive.store:Archive.committed",
    ),
    "frontier: lease": (f"{_ENGINE}.frontier:EngineFrontier.lease",),
    "frontier: settle": (f"{_ENGINE}.frontier:EngineFrontier._settle",),
    "frontier: links offered": (f"{_ENGINE}.settling:admit_links",),
    "frontier: near-duplicates": (f"{_ENGINE}.settling:remember",),
    "frontier: commit": ("skitter.frontier.stores.rocks:RocksStore.commit",),
    "frontier: judge, known bodies, chores": (
        f"{_ENGINE}.frontier:judge",
        f"{_ENGINE}.frontier:EngineFrontier.first_copies",
        f"{_ENGINE}.frontier:EngineFrontier.promote",
        f"{_ENGINE}.frontier:EngineFrontier.reap",
        f"{_ENGINE}.frontier:EngineFrontier.renew",
    ),
    "worker: step, result": ("skitter.worker.step:Step.run",),
    "worker: pace, permits, loop": ("skitter.worker.loop:Loop._work", "skitter.worker.loop:Loop.run"),
    "committer: filing": ("skitter.committer.committer:Committer.commit_batch",),
    "committer: report": ("skitter.committer.report:Report.settled",),
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
