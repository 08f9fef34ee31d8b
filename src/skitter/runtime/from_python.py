"""A crawl as something to iterate over: `async for page in skitter.crawl(...)`, or a plain `for`.

Above the wiring, beside the commands. Each page comes once, after its commit: what was seen is in the archive.
While 256 pages wait to be taken no more hosts are leased. Leaving the loop stops the crawl as Ctrl-C does:
what is in flight ends, and the next crawl into the folder goes on. One worker, in a thread with an event loop of
its own: whoever iterates may cancel, end or block his own loop, and the folder is closed all the same.
Prints nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar, Self

from skitter.archive.packing import Parcel
from skitter.archive.warc.coding import CODINGS
from skitter.collection.members import inflate
from skitter.collection.record import Record, parse_record
from skitter.committer.committer import Committer
from skitter.committer.render_source import RenderSource
from skitter.committer.work_source import Delivery, Standing, commits_of, nobody
from skitter.errors import SkitterError, UsageError
from skitter.extend.page import Page
from skitter.fetch_stack import raise_descriptor_limit
from skitter.folder import CrawlFolder
from skitter.frontier.base import Settled, Settlement
from skitter.model import Fetched, Host, HostLease, Outcome, TaskKind, Token, UrlKey
from skitter.runtime.lifecycle import (
    admit_seeds,
    check_settings,
    own_folder,
    require_browser,
    within_installed,
)
from skitter.seeds import read_seeds
from skitter.settings import Settings
from skitter.settings.load import Flag, load
from skitter.urls.keys import Keys
from skitter.wiring import open_crawl
from skitter.worker.loop import Loop

MOST_WAITING = 256
_HOSTS_AT_ONCE = 32
_log = logging.getLogger("skitter.crawl")


class Pages:
    """What `skitter.crawl` returns. Nothing happens before the first page is asked for."""

    def __init__(self, folder: CrawlFolder, settings: Settings, seeds: Sequence[str]) -> None:
        self._folder = folder
        self._settings = settings
        self._seeds = seeds

    def __aiter__(self) -> AsyncIterator[Page]:
        return _AsyncPages(_Running(self._folder, self._settings, self._seeds))

    def __iter__(self) -> Iterator[Page]:
        """The crawl goes on while a page is looked at."""
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop()
            raise UsageError("an event loop runs here, as in a notebook: write async for, not for")
        return self._iterate()

    def _iterate(self) -> Iterator[Page]:
        running = _Running(self._folder, self._settings, self._seeds)
        try:
            while running.wait():
                while running.pages:
                    yield running.pages.popleft()
            running.ended.result()
        finally:
            running.stop()
            running.thread.join()


class _AsyncPages:
    """Stops the crawl as soon as it is dropped; its generator, which the event loop closes a moment later, waits
    for the end."""

    def __init__(self, running: _Running) -> None:
        self._running = running
        self._pages = _taken(running)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Page:
        return await anext(self._pages)

    def __del__(self) -> None:
        self._running.stop()


async def _taken(running: _Running) -> AsyncIterator[Page]:
    try:
        while await asyncio.to_thread(running.wait):
            while running.pages:
                yield running.pages.popleft()
        running.ended.result()
    finally:
        running.stop()
        try:
            await asyncio.to_thread(running.thread.join)
        finally:
            # Cancelled meanwhile, as by asyncio.run when its function returned: its loop ends here anyway.
            running.thread.join()


def crawl(
    seeds: Sequence[str], into: Path | str, given: Mapping[str, Any], config: Path | str | None
) -> Pages:
    """`given` are settings by their names, such as `politeness.delay`."""
    folder = CrawlFolder.for_crawling(Path(into))
    flags = {
        name: Flag(value, f"skitter.crawl({name})") for name, value in given.items() if value is not None
    }
    for name in flags:
        if "." not in name:
            raise UsageError(f"{name!r} is no setting: write its section too, such as politeness.delay")
    loaded = load(
        crawl_file=None if folder.is_new else folder.settings_file,
        config_file=None if config is None else Path(config),
        flags=flags,
    )
    if folder.is_new and not seeds:
        raise UsageError(f"{folder.path} holds no crawl yet: give at least one seed URL")
    return Pages(folder, loaded.settings, seeds)


class _Running:
    """A crawl in its thread. `pages` are those that wait to be taken, by any thread."""

    _by_folder: ClassVar[dict[Path, _Running]] = {}

    def __init__(self, folder: CrawlFolder, settings: Settings, seeds: Sequence[str]) -> None:
        self.pages: deque[Page] = deque()
        self.ended: Future[None] = Future()
        self._news = threading.Condition()
        self._stopped = False
        self._drain: Callable[[], object] | None = None
        before = self._by_folder.get(folder.path)
        self._by_folder[folder.path] = self
        self.thread = threading.Thread(
            target=self._main, args=(folder, settings, seeds, before), name="skitter-crawl", daemon=True
        )
        self.thread.start()

    def wait(self) -> bool:
        """Until a page waits, or none will come."""
        with self._news:
            self._news.wait_for(lambda: self.pages or self.ended.done() or self._stopped)
        return bool(self.pages)

    def add(self, page: Page) -> None:
        with self._news:
            self.pages.append(page)
            self._news.notify_all()

    def stop(self) -> None:
        with self._news:
            self._stopped = True
            self._news.notify_all()
            if self._drain is not None:
                self._drain()

    @classmethod
    def stop_all(cls) -> None:
        for running in tuple(cls._by_folder.values()):
            running.stop()
            running.thread.join()

    def _main(
        self, folder: CrawlFolder, settings: Settings, seeds: Sequence[str], before: _Running | None
    ) -> None:
        if before is not None and before._stopped:
            before.thread.join()
        try:
            asyncio.run(self._crawl(folder, settings, seeds))
        except BaseException as error:
            if self._stopped:
                _log.warning("a crawl that was left did not end well", exc_info=error)
            self.ended.set_exception(error)
        else:
            self.ended.set_result(None)
        finally:
            if self._by_folder.get(folder.path) is self:
                del self._by_folder[folder.path]
            with self._news:
                self._news.notify_all()

    async def _crawl(self, folder: CrawlFolder, settings: Settings, seeds: Sequence[str]) -> None:
        found = read_seeds([*seeds, *settings.seeds], (), Keys(settings.keys))
        settings = await check_settings(settings, found)
        require_browser(settings)
        with own_folder(folder, settings):
            settings = within_installed(raise_descriptor_limit(settings))
            async with open_crawl(folder, settings) as opened:
                await admit_seeds(opened, found, lambda note: None)
                tap = _Tap(opened.committer, settings, self)
                loop = Loop(tap, opened.stack.step, opened.clock, settings, horizon=opened.committer.horizon)
                if self._may_drain(loop):
                    await loop.run()
                    self._drain = None
                    opened.committer.complain_of_room()

    def _may_drain(self, loop: Loop) -> bool:
        """From now on `stop` ends this loop; not, if it was called before."""
        event_loop = asyncio.get_running_loop()
        with self._news:
            if not self._stopped:
                self._drain = lambda: event_loop.call_soon_threadsafe(loop.drain)
            return not self._stopped


# Of an iterator that is still there when Python ends nobody else closes the folder. By `atexit` it would be too
# late: no thread pool works there any more.
threading._register_atexit(_Running.stop_all)  # type: ignore[attr-defined]


class _Tap:
    """A `WorkSource` that is the committer, and hands on the pages that it commits."""

    def __init__(self, committer: Committer, settings: Settings, running: _Running) -> None:
        self._committer = committer
        self._running = running
        self._coding = CODINGS[settings.archive.compression]
        self._uncommitted = 0
        self._leased: dict[Token, dict[UrlKey, int]] = {}

    @property
    def standing(self) -> Standing:
        """Paused while enough pages wait."""
        is_full = len(self._running.pages) >= MOST_WAITING
        said = self._committer.standing
        return Standing.PAUSED if is_full and said is Standing.OPEN else said

    @property
    def uncommitted(self) -> int:
        return self._uncommitted

    @property
    def renders(self) -> RenderSource:
        return self._committer.renders

    async def lease(self, worker: str, capacity: int, duration: float) -> list[HostLease]:
        """No more pages than may wait, with those that are on their way; always one, so that none is waited
        for in vain."""
        under_way = sum(map(len, self._leased.values()))
        room = max(1, MOST_WAITING - len(self._running.pages) - under_way)
        most_tasks = max(1, room // _HOSTS_AT_ONCE)
        hosts = max(1, min(capacity, room // most_tasks))
        leases = await self._committer.lease(worker, hosts, duration, most_tasks=most_tasks)
        for lease in leases:
            self._leased[lease.token] = {task.key: task.depth for task in lease.tasks}
        return leases

    async def settle(self, deliveries: Sequence[Delivery], committed: Callable[[], None] = nobody) -> None:
        self._uncommitted += len(deliveries)
        for part in commits_of(deliveries):
            settlements = await self._committer.commit_batch(part)
            self._uncommitted -= len(part)
            for delivery, settlement in zip(part, settlements, strict=True):
                self._take(delivery, settlement)
            committed()

    def _take(self, delivery: Delivery, settlement: Settlement) -> None:
        result, parcel = delivery.outcome.result, delivery.parcel
        depth = self._depth(delivery.outcome)
        is_page = (
            delivery.outcome.kind is TaskKind.PAGE and isinstance(result, Fetched) and result.status == 200
        )
        if is_page and parcel is not None and settlement.settled is not Settled.STALE:
            self._running.add(self._page(parcel, depth))

    def _depth(self, outcome: Outcome) -> int:
        """Of its task, which is under way no longer."""
        tasks = self._leased.get(outcome.token, {})
        depth = tasks.pop(outcome.key, 0)
        if not tasks:
            self._leased.pop(outcome.token, None)
        return depth

    def _page(self, parcel: Parcel, depth: int) -> Page:
        """From its record: the same bytes that are in the archive."""
        content = inflate(parcel.answer, self._coding)
        record = parse_record(content) if isinstance(content, bytes) else content
        if not isinstance(record, Record):
            raise SkitterError(f"the record of {parcel.url} cannot be read: {record}")
        return Page(
            parcel.url,
            record.decoded(),
            status=parcel.status,
            headers=record.headers(),
            fetched_at=parcel.sent_at,
            depth=depth,
        )

    async def renew(self, leases: Sequence[tuple[Host, Token]], duration: float) -> list[float | None] | None:
        return await self._committer.renew(leases, duration)

    async def release(self, leases: Sequence[tuple[Host, Token]]) -> None:
        for _, token in leases:
            self._leased.pop(token, None)
        await self._committer.release(leases)

    async def beat(self, as_of: float | None = None) -> None:
        await self._committer.beat(as_of)
