"""The process that runs users' code: pages in, what extractors made of them out.

`process.py` starts it beside a worker. It may loop, crash, fill its memory or print: it holds nothing that
matters, and its life is no longer than its parent's. Standard output of users' code is not the protocol's:
that has descriptors of its own. `SIGALRM` ends a function that takes too long; one that does not let itself be
ended is killed by the parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import mmap
import os
import resource
import select
import signal
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO

from skitter.errors import SkitterError
from skitter.extend.calling import TooLate, call_extractors
from skitter.extend.extractor import Extractor
from skitter.extend.loading import load_extractors
from skitter.extend.messages import LENGTH, Started, decode_page, decode_start, encode, framed

_AGAIN = 0.05
_AT_ONCE = 1 << 16
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38


class Alarm:
    """Ends what runs within `limit()` when its seconds are over, and again every 50 ms while it goes on. Armed
    only within: an alarm that comes too late for its function must not hit another."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_armed = False
        signal.signal(signal.SIGALRM, self._ring)

    def _ring(self, number: int, frame: Any) -> None:
        if self._is_armed:
            raise TooLate

    @contextlib.contextmanager
    def limit(self) -> Iterator[None]:
        self._is_armed = True
        signal.setitimer(signal.ITIMER_REAL, self._seconds, _AGAIN)
        try:
            yield
        finally:
            self._is_armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)


class Requests:
    """Messages from a descriptor. `has_more` says whether another one waits, or part of one."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._waiting = bytearray()

    def next(self) -> bytes:
        """Empty at the end."""
        if not self._fill(LENGTH):
            return b""
        end = LENGTH + int.from_bytes(self._waiting[:LENGTH], "big")
        if not self._fill(end):
            return b""
        message = bytes(self._waiting[LENGTH:end])
        del self._waiting[:end]
        return message

    def _fill(self, size: int) -> bool:
        while len(self._waiting) < size:
            piece = os.read(self._descriptor, _AT_ONCE)
            if not piece:
                return False
            self._waiting += piece
        return True

    @property
    def has_more(self) -> bool:
        return bool(self._waiting) or bool(select.select([self._descriptor], [], [], 0)[0])


def serve(requests: Requests, replies: BinaryIO, place: mmap.mmap, seconds: float) -> None:
    start = decode_start(requests.next())
    try:
        extractors = load_extractors(start.names, start.rules)
        started = Started([each.described for each in extractors])
    except SkitterError as error:
        extractors, started = [], Started(error=str(error))
    replies.write(framed(encode(started)))
    replies.flush()
    # what was loaded stays: it need not be looked at again and again
    gc.collect()
    gc.freeze()
    _answer_all(requests, replies, place, extractors, Alarm(seconds))


def _answer_all(
    requests: Requests, replies: BinaryIO, place: mmap.mmap, extractors: list[Extractor], alarm: Alarm
) -> None:
    """Replies are sent when no more pages wait: the parent need not wake up for each."""
    page_number = 0
    while message := requests.next():
        page_number += 1
        asked = decode_page(message)
        del message
        note = partial(_note, place, page_number)
        result = call_extractors(asked.page(), extractors, asked.numbers, alarm.limit, note)
        replies.write(framed(encode(result)))
        if not requests.has_more:
            replies.flush()


def _note(place: mmap.mmap, page_number: int, extractor: int) -> None:
    place[:] = page_number.to_bytes(8, "big") + extractor.to_bytes(8, "big")


def confine(memory: int, parent: int) -> None:
    """Bounded, dead as soon as the parent is, and never more than its user."""
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.getppid() != parent:  # it died before the lines above
        sys.exit(0)


def main() -> None:
    memory, parent, shared, seconds = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    confine(memory, parent)
    requests, replies = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)
    place = mmap.mmap(shared, 0)
    with os.fdopen(replies, "wb", _AT_ONCE) as told:
        serve(Requests(requests), told, place, seconds)


if __name__ == "__main__":
    main()
