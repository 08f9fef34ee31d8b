"""One frontier out of many partitions: what concerns a host goes to the partition that has it, the rest to all.

It implements the contract (`frontier/base.py`), so that operators, the API and tests see one frontier. A batch of
outcomes is divided by partition, and each part is one act: what is of two partitions is never committed together.
Never decides anything about a URL.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from skitter.errors import UsageError
from skitter.frontier.base import (
    Admitted,
    DeadLetter,
    Explanation,
    Forgetting,
    Freshness,
    Horizon,
    HostExplanation,
    HostLedger,
    HostOutlook,
    HostStanding,
    HostView,
    LeaseView,
    Settled,
    Settlement,
    Settling,
    Stats,
    TrapView,
    Upcoming,
    UrlList,
    Witness,
)
from skitter.frontier.cluster import merging
from skitter.frontier.cluster.base import Part
from skitter.frontier.link_batches import urls_of
from skitter.model import (
    AnswerAt,
    Copy,
    Discovered,
    Host,
    HostLease,
    HostPolicy,
    LinkBatch,
    Outcome,
    RecordAt,
    RenderTask,
    SegmentMark,
    Token,
    UrlKey,
    UrlState,
    Verdict,
)
from skitter.plan.estimate import Estimate
from skitter.settings import Settings
from skitter.urls.canonical import host_of, normalise
from skitter.urls.partitions import part_of

T = TypeVar("T")


async def _nothing() -> None:
    """Nobody wants to hear of writes."""


class Router:
    """`parts` are all partitions by their numbers, from 0 on. `wrote` is awaited after each call that may have
    put something into an outbox."""

    def __init__(
        self, parts: Mapping[int, Part], wrote: Callable[[], Awaitable[None]] = _nothing, number: int = 0
    ) -> None:
        self._parts = parts
        self._number = number or len(parts)
        self._wrote = wrote
        self._turn = 0

    # -- by host, and of all

    def _part_of(self, host: Host) -> int:
        return part_of(host, self._number)

    def _of(self, host: Host) -> Part:
        return self._parts[self._part_of(host)]

    def _all(self) -> list[Part]:
        return [self._parts[number] for number in sorted(self._parts)]

    async def _each(self, call: Callable[[Part], Awaitable[T]]) -> list[T]:
        """Of every partition, in their order."""
        return list(await asyncio.gather(*map(call, self._all())))

    def _divided(self, hosts: Sequence[Host]) -> dict[int, list[int]]:
        """Places in the sequence, by partition."""
        places: dict[int, list[int]] = {}
        for place, host in enumerate(hosts):
            places.setdefault(self._part_of(host), []).append(place)
        return places

    def attend(self, witness: Witness) -> None:
        for part in self._all():
            part.attend(witness)

    # -- the path of a URL

    async def admit(self, discovered: Sequence[Discovered]) -> list[Verdict]:
        verdicts: dict[int, Verdict] = {}
        for number, places in self._divided([found.host for found in discovered]).items():
            told = await self._parts[number].admit([discovered[place] for place in places])
            verdicts.update(zip(places, told, strict=True))
        await self._wrote()
        return [verdicts[place] for place in range(len(discovered))]

    async def admit_listed(self, link_batches: Sequence[LinkBatch]) -> list[Admitted]:
        """By the partition that has the sitemap: it posts what is not its own."""
        admitted: list[Admitted] = []
        for link_batch in link_batches:
            part = await self._with(link_batch.parent) or self._of(host_of(urls_of(link_batch)[0]))
            admitted += await part.admit_listed([link_batch])
        await self._wrote()
        return admitted

    async def _with(self, key: UrlKey | None) -> Part | None:
        """The partition that knows a URL."""
        for part in self._all():
            if key is not None and await part.url_of(key) is not None:
                return part
        return None

    async def lease(
        self,
        worker: str,
        capacity: int,
        duration: float,
        *,
        most_tasks: int | None = None,
        staggered: bool = False,
    ) -> list[HostLease]:
        """From one partition after the other, beginning with another one each time."""
        leases: list[HostLease] = []
        numbers = sorted(self._parts)
        self._turn += 1
        for offset in range(len(numbers)):
            if len(leases) >= capacity:
                break
            part = self._parts[numbers[(self._turn + offset) % len(numbers)]]
            room = capacity - len(leases)
            leases += await part.lease(worker, room, duration, most_tasks=most_tasks, staggered=staggered)
        return leases

    @contextlib.asynccontextmanager
    async def settling(self, outcomes: Sequence[Outcome]) -> AsyncIterator[Settling]:
        """Partitions are opened in the order of their numbers, so no two batches wait for each other."""
        divided = self._divided([outcome.host for outcome in outcomes]) or {0: []}
        async with contextlib.AsyncExitStack() as acts:
            opened: dict[int, Settling] = {}
            for number in sorted(divided):
                some = [outcomes[place] for place in divided[number]]
                opened[number] = await acts.enter_async_context(self._parts[number].settling(some))
            yield _DividedSettling(divided, opened)
        await self._wrote()

    async def settle(
        self, outcomes: Sequence[Outcome], marks: Sequence[SegmentMark] = ()
    ) -> list[Settlement]:
        async with self.settling(outcomes) as settling:
            return await settling.commit(outcomes, marks)

    @property
    def renders_waiting(self) -> int:
        return sum(part.renders_waiting for part in self._all())

    async def lease_renders(self, worker: str, capacity: int, duration: float) -> list[RenderTask]:
        tasks: list[RenderTask] = []
        for part in self._all():
            if len(tasks) < capacity:
                tasks += await part.lease_renders(worker, capacity - len(tasks), duration)
        return tasks

    async def release_renders(self, leases: Sequence[tuple[UrlKey, Token]]) -> None:
        await self._each(lambda part: part.release_renders(leases))

    async def answers(self, urls: Sequence[str]) -> list[AnswerAt]:
        found: dict[int, AnswerAt] = {}
        for number, places in self._divided([host_of(url) for url in urls]).items():
            told = await self._parts[number].answers([urls[place] for place in places])
            found.update(zip(places, told, strict=True))
        return [found[place] for place in range(len(urls))]

    async def place_of_copy(self, digest: bytes) -> RecordAt | None:
        found = await self._each(lambda part: part.place_of_copy(digest))
        return next((place for place in found if place is not None), None)

    async def renew(self, leases: Sequence[tuple[Host, Token]], duration: float) -> list[float | None]:
        deadlines: dict[int, float | None] = {}
        for number, places in self._divided([host for host, _ in leases]).items():
            told = await self._parts[number].renew([leases[place] for place in places], duration)
            deadlines.update(zip(places, told, strict=True))
        return [deadlines[place] for place in range(len(leases))]

    async def release(self, leases: Sequence[tuple[Host, Token]]) -> None:
        for number, places in self._divided([host for host, _ in leases]).items():
            await self._parts[number].release([leases[place] for place in places])

    async def reap(self, now: float) -> int:
        return sum(await self._each(lambda part: part.reap(now)))

    async def promote(self, now: float) -> int:
        moved = sum(await self._each(lambda part: part.promote(now)))
        await self._wrote()
        return moved

    # -- the archive's part

    async def first_copies(self, digests: Sequence[bytes]) -> list[Copy | None]:
        found = await self._each(lambda part: part.first_copies(digests))
        return [
            next((copy for copy in copies if copy is not None), None) for copies in zip(*found, strict=True)
        ]

    async def remember_copies(self, copies: Sequence[tuple[bytes, Copy]]) -> int:
        return max(await self._each(lambda part: part.remember_copies(copies)))

    async def marks(self) -> list[SegmentMark]:
        found = await self._each(lambda part: part.marks())
        return merging.merge_marks(mark for marks in found for mark in marks)

    async def stored(self, segment: str) -> None:
        await self._each(lambda part: part.stored(segment))

    async def lost(self, segment: str) -> int:
        fetches = sum(await self._each(lambda part: part.lost(segment)))
        await self._wrote()
        return fetches

    async def lost_segments(self) -> list[str]:
        found = await self._each(lambda part: part.lost_segments())
        return sorted({segment for segments in found for segment in segments})

    # -- what comes next

    async def horizon(self) -> Horizon:
        posts = await self._each(lambda part: part.parts_with_posts())
        return merging.merge_horizons(
            await self._each(lambda part: part.horizon()), 0.0 if any(posts) else None
        )

    async def upcoming(self, *, limit: int) -> list[Upcoming]:
        found = await self._each(lambda part: part.upcoming(limit=limit))
        return sorted((one for some in found for one in some), key=lambda one: one.at)[:limit]

    async def seeds(self, *, limit: int) -> list[str]:
        found = await self._each(lambda part: part.seeds(limit=limit))
        return [url for urls in found for url in urls][:limit]

    async def stats(self) -> Stats:
        return merging.merge_stats(await self._each(lambda part: part.stats()))

    async def freshness(self) -> Freshness:
        return merging.merge_freshness(await self._each(lambda part: part.freshness()))

    async def estimate(self) -> Estimate:
        return merging.merge_estimates(await self._each(lambda part: part.estimate()))

    # -- one URL, one host

    async def explain(self, url: str) -> Explanation:
        fetch_url = normalise(url)
        if fetch_url is None:
            return await self._parts[min(self._parts)].explain(url)
        return await self._of(host_of(fetch_url)).explain(url)

    async def url_of(self, key: UrlKey) -> str | None:
        found = await self._each(lambda part: part.url_of(key))
        return next((url for url in found if url is not None), None)

    async def host(self, host: Host) -> HostView | None:
        return await self._of(host).host(host)

    async def robots_of(self, host: Host) -> bytes | None:
        return await self._of(host).robots_of(host)

    async def hosts(
        self, *, limit: int, standing: HostStanding | None = None, matching: str = ""
    ) -> list[HostView]:
        found = await self._each(lambda part: part.hosts(limit=limit, standing=standing, matching=matching))
        return merging.busiest((view for views in found for view in views), limit)

    async def explain_host(self, host: Host, *, fetches: int) -> HostExplanation | None:
        return await self._of(host).explain_host(host, fetches=fetches)

    async def ledger_of(self, host: Host, *, fetches: int) -> HostLedger | None:
        return await self._of(host).ledger_of(host, fetches=fetches)

    async def leases(self, *, limit: int) -> list[LeaseView]:
        found = await self._each(lambda part: part.leases(limit=limit))
        return sorted((one for some in found for one in some), key=lambda one: one.deadline)[:limit]

    async def outlook(self, *, limit: int) -> list[HostOutlook]:
        found = [one for some in await self._each(lambda part: part.outlook(limit=limit)) for one in some]
        leased = [one for one in found if one.is_leased]
        following = sorted((one for one in found if not one.is_leased), key=lambda one: one.next_start)
        return [*leased[:limit], *following[:limit]]

    async def urls(
        self,
        *,
        limit: int,
        state: UrlState | None = None,
        why: str = "",
        host: Host | None = None,
        after: str = "",
    ) -> UrlList:
        """One partition after the other: a place in the list begins with its partition."""
        if host is not None:
            return await self._of(host).urls(limit=limit, state=state, why=why, host=host, after=after)
        number, _, place = after.partition(".")
        start = int(number, 16) if number else 0
        found = await self._parts[start].urls(limit=limit, state=state, why=why, after=place)
        urls = list(found.urls)
        while not found.after and len(urls) < limit and start + 1 < self._number:
            start += 1
            found = await self._parts[start].urls(limit=limit - len(urls), state=state, why=why)
            urls += found.urls
        if found.after:
            return UrlList(urls=urls, after=f"{start:x}.{found.after}")
        return UrlList(urls=urls, after=f"{start + 1:x}." if start + 1 < self._number else "")

    async def anchors(self, *, limit: int) -> list[str]:
        found = await self._each(lambda part: part.anchors(limit=limit))
        return sorted(anchor for anchors in found for anchor in anchors)[:limit]

    async def dead_letters(self, *, limit: int, host: Host | None = None) -> list[DeadLetter]:
        if host is not None:
            return await self._of(host).dead_letters(limit=limit, host=host)
        found = await self._each(lambda part: part.dead_letters(limit=limit))
        return [letter for letters in found for letter in letters][:limit]

    # -- the operator's part

    async def requeue(self, *, host: Host | None = None, url: str | None = None) -> int:
        if (name := _host_named(host, url)) is not None:
            return await self._of(name).requeue(host=host, url=url)
        return 0 if url is not None else sum(await self._each(lambda part: part.requeue()))

    async def refresh(self, *, host: Host | None = None, url: str | None = None) -> int:
        if (name := _host_named(host, url)) is not None:
            return await self._of(name).refresh(host=host, url=url)
        return 0 if url is not None else sum(await self._each(lambda part: part.refresh()))

    async def retry(self, host: Host) -> int | None:
        return await self._of(host).retry(host)

    async def set_policy(self, host: Host, policy: HostPolicy) -> None:
        await self._of(host).set_policy(host, policy)

    async def signal(self, host: Host, useful: float, path: str = "") -> float | None:
        return await self._of(host).signal(host, useful, path)

    async def allow_private(self, allowed: bool) -> int:
        return sum(await self._each(lambda part: part.allow_private(allowed)))

    def change_settings(self, settings: Settings) -> None:
        for part in self._all():
            part.change_settings(settings)

    async def traps(self, *, limit: int) -> list[TrapView]:
        """Each partition numbers its own: here they are told apart by the rest."""
        found: list[TrapView] = []
        for number in sorted(self._parts):
            for view in await self._parts[number].traps(limit=limit):
                found.append(_renumbered(view, view.id * self._number + number))
        return sorted(found, key=lambda view: view.at, reverse=True)[:limit]

    async def undo_trap(self, number: int) -> int:
        own, part = divmod(number, self._number)
        return await self._parts[part].undo_trap(own)

    def forgetting(self, hosts: Sequence[Host], url: str = "") -> Forgetting:
        raise UsageError(
            "a cluster cannot forget a site: stop it, and run skitter forget on a single crawl's folder"
        )

    async def sync(self) -> None:
        await self._each(lambda part: part.sync())

    async def close(self) -> None:
        await self._each(lambda part: part.close())


class _DividedSettling:
    """The acts of the partitions that a batch concerns, opened together and committed one after the other."""

    def __init__(self, divided: Mapping[int, Sequence[int]], opened: Mapping[int, Settling]) -> None:
        self._divided = divided
        self._opened = opened
        judged: dict[int, Settled] = {}
        for number, places in divided.items():
            judged.update(zip(places, opened[number].verdicts, strict=True))
        self.verdicts = [judged[place] for place in range(len(judged))]

    async def commit(
        self, outcomes: Sequence[Outcome], marks: Sequence[SegmentMark] = ()
    ) -> list[Settlement]:
        settled: dict[int, Settlement] = {}
        for number, act in self._opened.items():
            places = self._divided[number]
            told = await act.commit([outcomes[place] for place in places], marks)
            settled.update(zip(places, told, strict=True))
        return [settled[place] for place in range(len(outcomes))]


def _host_named(host: Host | None, url: str | None) -> Host | None:
    if url is None:
        return host
    fetch_url = normalise(url)
    return None if fetch_url is None else host_of(fetch_url)


def _renumbered(view: TrapView, number: int) -> TrapView:
    return replace(view, id=number)
