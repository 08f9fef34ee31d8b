"""A mirror that is killed with `kill -9` halfway and started again by the same command: what is missing then?

Judged by what was stored and by nginx's own log, never by what a crawler says. A crawler that begins anew loses
no page, and asks for all of them again: both figures stand side by side.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench._crawls import family, start
from bench._mirrors import Crawler, Site
from bench._nginx import read_access_log

_LOOK = 0.005
_LONGEST = 240.0


class Loss(msgspec.Struct, kw_only=True):
    """`killed_at` are the pages that were asked for when it was killed; `missing` what was never stored;
    `stored_twice` what is in its output more than once; `asked_again` all requests for a page that had been asked
    for before."""

    reachable: int
    killed_at: int
    missing: int
    stored_twice: int
    asked_again: int
    code: int | None

    def row(self, name: str) -> tuple[object, ...]:
        ended = "did not end" if self.code is None else str(self.code)
        return (name, self.killed_at, self.missing, self.stored_twice, self.asked_again, ended)


HEADING = (
    "killed and started again",
    "pages asked for at the kill",
    "missing",
    "stored twice",
    "asked again",
    "exit code",
)


def killed_once(crawler: Crawler, site: Site, folder: Path, log: Path, wanted: set[str]) -> Loss:
    begin = log.stat().st_size if log.exists() else 0
    _run(crawler, site, folder, until=lambda: len(asked(log, begin, wanted)) >= len(wanted) // 2)
    killed_at = len(asked(log, begin, wanted))
    code = _run(crawler, site, folder, until=lambda: False)
    stored = crawler.stored(folder)
    requests = asked(log, begin, wanted)
    return Loss(
        reachable=len(wanted),
        killed_at=killed_at,
        missing=len(wanted - set(stored)),
        stored_twice=sum(count > 1 for count in stored.values()),
        asked_again=sum(requests.values()) - len(requests),
        code=code,
    )


def asked(log: Path, begin: int, wanted: set[str]) -> Counter[str]:
    """How often each of the wanted pages was asked for since the log had that size."""
    return Counter(row.path for row in read_access_log(log, begin) if row.path in wanted)


def _run(crawler: Crawler, site: Site, folder: Path, until: Callable[[], bool]) -> int | None:
    """Its exit code; None when it was killed, by `until` or because it took too long."""
    child = start(crawler.command(site, folder), environ=crawler.environ(site))
    deadline = time.monotonic() + _LONGEST
    while child.poll() is None and time.monotonic() < deadline and not until():
        time.sleep(_LOOK)
    code = child.poll()
    if code is None:
        for pid in tuple(family(child.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        child.wait()
    return code
