"""What an operator asks for URLs: seeds to begin with, dead letters to try again, pages to look at again."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from skitter.errors import NoContact
from skitter.model import Discovered, VerdictKind
from skitter.schedule.priority import SEED_PRIORITY
from skitter.seeds import require_contact, seed_of
from skitter.service.http.problem import Problem, Trouble
from skitter.service.steering.hosts import HostName, named
from skitter.service.steering.order import Order, Steered

MOST_SEEDS = 10_000
MOST_NAMED = 1_000
_NAMED = {"high": 95, "normal": SEED_PRIORITY, "low": 30}
_SHOWN = 500

Url = Annotated[str, Meta(min_length=1, max_length=8192)]


# -- seeds


class Seeds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`priority` from 0 to 100, higher is more urgent (95 high, 80 normal, 30 low); links have 65 and less."""

    urls: Annotated[tuple[str, ...], Meta(min_length=1, max_length=MOST_SEEDS)]
    priority: Annotated[int, Meta(ge=0, le=100)] | Literal["high", "normal", "low"] = "normal"


class RefusedSeed(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    reason: str


class SeedsTaken(msgspec.Struct, frozen=True, kw_only=True):
    accepted: int
    duplicates_skipped: int
    refused: tuple[RefusedSeed, ...]


async def seed(crawl: Steered, asked: Seeds) -> SeedsTaken:
    priority = asked.priority
    urgency = _NAMED[priority] if isinstance(priority, str) else priority
    refused: list[RefusedSeed] = []
    found: list[Discovered] = []
    for text in asked.urls:
        one = _discovered(crawl, text, urgency)
        if isinstance(one, Discovered):
            found.append(one)
        else:
            refused.append(one)
    verdicts = await crawl.frontier.admit(found)
    refused += [
        RefusedSeed(url=one.url, reason=f"{verdict.reason}: {verdict.rule}")
        for one, verdict in zip(found, verdicts, strict=True)
        if verdict.kind is VerdictKind.REFUSED
    ]
    return SeedsTaken(
        accepted=sum(verdict.kind is VerdictKind.ADDED for verdict in verdicts),
        duplicates_skipped=sum(verdict.kind is VerdictKind.KNOWN for verdict in verdicts),
        refused=tuple(refused),
    )


def _discovered(crawl: Steered, text: str, priority: int) -> Discovered | RefusedSeed:
    found = seed_of(text, crawl.keys, priority)
    if found is None:
        return RefusedSeed(url=text[:_SHOWN], reason="not an http or https URL, nor a domain")
    try:
        require_contact(crawl.settings, (found,))
    except NoContact as error:
        return RefusedSeed(url=found.url[:_SHOWN], reason=str(error))
    return found


def seeds_order(asked: Seeds) -> Order[SeedsTaken]:
    return Order(
        method="POST",
        path="/v1/seeds",
        body=asked,
        answer=SeedsTaken,
        act=lambda crawl: seed(crawl, asked),
    )


# -- dead letters


class RequeueAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One URL, several, a host's, or (`all`) every dead letter. The narrowest given counts; of nothing,
    nothing."""

    url: Url | None = None
    urls: Annotated[tuple[Url, ...], Meta(max_length=MOST_NAMED)] = ()
    host: HostName | None = None
    all: bool = False


class Requeued(msgspec.Struct, frozen=True, kw_only=True):
    requeued: int


async def requeue(crawl: Steered, asked: RequeueAsked) -> Requeued:
    urls = (*((asked.url,) if asked.url is not None else ()), *asked.urls)
    if urls:
        return Requeued(requeued=sum([await crawl.frontier.requeue(url=url) for url in urls]))
    if asked.host is not None:
        return Requeued(requeued=sum([await crawl.frontier.requeue(host=one) for one in named(asked.host)]))
    return Requeued(requeued=await crawl.frontier.requeue() if asked.all else 0)


def requeue_order(asked: RequeueAsked) -> Order[Requeued]:
    return Order(
        method="POST",
        path="/v1/dead-letters/requeue",
        body=asked,
        answer=Requeued,
        act=lambda crawl: requeue(crawl, asked),
    )


# -- what is looked at again


class RefreshAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`urls`, those of a `host`, the archived pages that `where` names (SQL, such as `status = 404`), or (`all`)
    everything that has its final answer. The narrowest given counts; of nothing, nothing."""

    urls: Annotated[tuple[Url, ...], Meta(max_length=MOST_NAMED)] = ()
    host: HostName | None = None
    where: Annotated[str, Meta(max_length=10_000)] = ""
    all: bool = False


class NotRefreshed(msgspec.Struct, frozen=True, kw_only=True):
    """`state` is what `explain` says of the URL; unknown when the crawl does not know it."""

    url: str
    state: str


class Refreshed(msgspec.Struct, frozen=True, kw_only=True):
    """`refreshed` URLs are queued again; of those that were named, `not_refreshed` are the others."""

    refreshed: int
    not_refreshed: tuple[NotRefreshed, ...] = ()


async def refresh(crawl: Steered, asked: RefreshAsked) -> Refreshed:
    if asked.urls:
        return await _refresh_named(crawl, asked.urls)
    if asked.host is not None:
        return Refreshed(refreshed=sum([await crawl.frontier.refresh(host=one) for one in named(asked.host)]))
    if asked.where.strip():
        chosen = await _pages_where(crawl.folder, asked.where)
        return Refreshed(refreshed=sum([await crawl.frontier.refresh(url=url) for url in chosen]))
    return Refreshed(refreshed=await crawl.frontier.refresh() if asked.all else 0)


async def _refresh_named(crawl: Steered, urls: tuple[str, ...]) -> Refreshed:
    """A URL that the crawl does not know is a mistake worth a word: then nothing is queued."""
    states = {url: (await crawl.frontier.explain(url)).state for url in dict.fromkeys(urls)}
    unknown = [NotRefreshed(url=url, state=state) for url, state in states.items() if state == "unknown"]
    if unknown:
        return Refreshed(refreshed=0, not_refreshed=tuple(unknown))
    moved = {url: await crawl.frontier.refresh(url=url) for url in states}
    left = [NotRefreshed(url=url, state=states[url]) for url, count in moved.items() if not count]
    return Refreshed(refreshed=sum(moved.values()), not_refreshed=tuple(left))


async def _pages_where(folder: Path, where: str) -> list[str]:
    """Asked of a process of its own: the library that reads the tables takes 110 MB, and a crawl has none to
    spare."""
    sql = f"select distinct url from pages where (\n{where}\n)"
    asking = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "skitter", "query", str(folder), sql, "--json", stdout=PIPE, stderr=PIPE
    )
    rows, complaint = await asking.communicate()
    if asking.returncode:
        why = complaint.decode("utf-8", "replace").strip().removeprefix("skitter: ")
        raise Problem(Trouble.BAD_CONDITION, f"where: {why[:_SHOWN]}")
    return [msgspec.json.decode(line)["url"] for line in rows.splitlines() if line.strip()]


def refresh_order(asked: RefreshAsked) -> Order[Refreshed]:
    return Order(
        method="POST",
        path="/v1/refresh",
        body=asked,
        answer=Refreshed,
        act=lambda crawl: refresh(crawl, asked),
    )
