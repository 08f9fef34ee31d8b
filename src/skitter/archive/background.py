"""One bounded piece of work at a time beside the crawl: parts to write, segments to finish.

A thread of the archive's own, begun with the first work: what it runs compresses, sorts and waits for the
disk, and must not hold up the hosts. What it has done is taken note of by `poll`, in the caller's thread; so is
its failure.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class Background:
    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._work: Future[None] | None = None
        self._then: Callable[[], None] | None = None

    @property
    def is_busy(self) -> bool:
        return self._work is not None

    def start(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        """`then` is called by the `poll` or `wait` that finds the work done; not if it failed."""
        assert self._work is None
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="archive")
        self._work, self._then = self._pool.submit(work), then

    def poll(self) -> None:
        if self._work is not None and self._work.done():
            self.wait()

    def wait(self) -> None:
        """Raises what the work raised."""
        if self._work is None or self._then is None:
            return
        work, then, self._work, self._then = self._work, self._then, None, None
        work.result()
        then()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
