"""The commands that look into a crawl or steer it: stats, explain, hosts, dead, refresh, policy.

Each returns text for people or, with `as_json`, JSON for programs. Looking on works while a crawl runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from skitter.console.table import table
from skitter.console.wording import plain, size
from skitter.errors import UsageError
from skitter.folder import CrawlFolder
from skitter.frontier.base import (
    DeadLetter,
    Explanation,
    FetchView,
    HostStanding,
    HostView,
    PolitenessLedger,
    Stats,
)
from skitter.model import HostPolicy
from skitter.seeds import hosts_named
from skitter.settings import Settings
from skitter.urls.canonical import normalise
from skitter.wiring import open_frontier

_LABEL = 12


async def stats(folder: CrawlFolder, settings: Settings, *, as_json: bool) -> str:
    async with open_frontier(folder, settings, read_only=True) as frontier:
        found = await frontier.stats()
    return _json(found) if as_json else "\n".join(_stats_lines(found))


async def explain(folder: CrawlFolder, settings: Settings, url: str, *, as_json: bool) -> str:
    if normalise(url) is None:
        raise UsageError(f"{url!r} is not an http or https URL")
    async with open_frontier(folder, settings, read_only=True) as frontier:
        found = await frontier.explain(url)
    return _json(found) if as_json else "\n".join(_explanation_lines(found))


async def hosts(
    folder: CrawlFolder, settings: Settings, *, limit: int, standing: str | None, as_json: bool
) -> str:
    async with open_frontier(folder, settings, read_only=True) as frontier:
        found = await frontier.hosts(limit=limit, standing=HostStanding(standing) if standing else None)
    return _json(found) if as_json else "\n".join(_host_lines(found))


async def dead(
    folder: CrawlFolder, settings: Settings, *, host: str | None, limit: int, as_json: bool
) -> str:
    named = hosts_named(host) if host else [None]
    async with open_frontier(folder, settings, read_only=True) as frontier:
        found = [letter for one in named for letter in await frontier.dead_letters(limit=limit, host=one)]
    return _json(found) if as_json else "\n".join(_dead_lines(found, folder))


async def requeue(
    folder: CrawlFolder, settings: Settings, *, host: str | None, urls: Sequence[str], as_json: bool
) -> str:
    _check_urls(urls)
    async with open_frontier(folder, settings, read_only=False) as frontier:
        if urls:
            moved = sum([await frontier.requeue(url=url) for url in urls])
        elif host:
            moved = sum([await frontier.requeue(host=one) for one in hosts_named(host)])
        else:
            moved = await frontier.requeue()
    if as_json:
        return _json({"requeued": moved})
    return f"{moved:,} dead letters are queued again: skitter crawl --into {folder.path} fetches them"


async def refresh(
    folder: CrawlFolder, settings: Settings, *, host: str | None, urls: Sequence[str], as_json: bool
) -> str:
    """Queue what has its final answer again. A URL that the crawl does not know is a mistake worth a word."""
    if host and urls:
        raise UsageError("give --host or URLs, not both")
    _check_urls(urls)
    async with open_frontier(folder, settings, read_only=False) as frontier:
        states = {url: (await frontier.explain(url)).state for url in urls}
        if unknown := [url for url, state in states.items() if state == "unknown"]:
            raise UsageError(f"{unknown[0]} is not known to this crawl: give it to skitter crawl as a seed")
        if urls:
            moved = sum([await frontier.refresh(url=url) for url in states])
        elif host:
            moved = sum([await frontier.refresh(host=one) for one in hosts_named(host)])
        else:
            moved = await frontier.refresh()
    return _json({"refreshed": moved}) if as_json else _refreshed_words(moved, states, folder)


def _refreshed_words(moved: int, states: dict[str, str], folder: CrawlFolder) -> str:
    if not moved:
        standing = ", ".join(f"{url} is {state.replace('_', ' ')}" for url, state in states.items())
        why = f": {standing}" if standing else ", all that was fetched is queued already"
        return f"nothing to look at again{why}"
    return f"{moved:,} URLs are queued again: skitter crawl --into {folder.path} looks what changed"


def _check_urls(urls: Sequence[str]) -> None:
    for url in urls:
        if normalise(url) is None:
            raise UsageError(f"{url!r} is not an http or https URL")


async def policy(
    folder: CrawlFolder, settings: Settings, host: str, change: HostPolicy | None, *, as_json: bool
) -> str:
    """Set a host's policy; without a change, show it."""
    named = hosts_named(host)
    if change is not None:
        async with open_frontier(folder, settings, read_only=False) as frontier:
            for one in named:
                await frontier.set_policy(one, change)
    async with open_frontier(folder, settings, read_only=True) as frontier:
        known = await frontier.hosts(limit=1 << 30)
    found = {view.host: view.policy or HostPolicy() for view in known if view.host in named}
    if as_json:
        return _json(found)
    if not found:
        return f"{host} is not known to this crawl yet and has no policy"
    return "\n".join(f"{name}: {_policy_words(each)}" for name, each in found.items())


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


# -- stats


def _stats_lines(found: Stats) -> Iterator[str]:
    known = sum(found.urls.values())
    robots = f"{found.robots_fetches:,} of them for robots.txt"
    yield f"{found.pages:,} pages from {found.fetches:,} requests ({robots}), {size(found.bytes)}"
    if found.near_duplicates:
        verb = "page resembles" if found.near_duplicates == 1 else "pages resemble"
        yield f"{found.near_duplicates:,} {verb} another one"
    if found.unstored or found.lost:
        lost = f"; {found.lost:,} requests were lost with their segment" if found.lost else ""
        yield f"{found.stored:,} pages are safe in the object store, {found.unstored:,} wait for upload{lost}"
    if found.requisites:
        yield f"{found.requisites:,} files that pages need to look as they do"
    yield from _counts(f"URLs known: {known:,}", found.urls)
    yield from _counts(f"Hosts: {sum(found.hosts.values()):,}", found.hosts)
    yield from _counts("Queued by tier", {f"F{i}": n for i, n in enumerate(found.tiers)})
    yield from _counts("Answers by status", found.statuses)
    yield from _counts("Failures by kind", found.failures)
    yield from _counts("Refused because of", found.refusals)
    yield from _politeness_lines(found.politeness)
    if found.next_at is not None:
        yield f"\nNext host or retry ready: {_when(found.next_at)}"


def _politeness_lines(found: PolitenessLedger) -> Iterator[str]:
    if found.smallest_gap is None:
        return
    yield f"\nPoliteness: {found.violations:,} violations in {found.gaps:,} gaps between two requests to a host"
    yield f"  smallest gap {found.smallest_gap:.4f} s where {found.required:g} s was required ({found.host})"


def _counts(title: str, counts: dict[str, int]) -> Iterator[str]:
    shown = [(name.replace("_", " "), f"{n:,}") for name, n in counts.items() if n]
    if shown:
        yield f"\n{title}"
        yield from (f"  {line}" for line in table(shown, right=(1,)))


# -- explain


def _explanation_lines(found: Explanation) -> Iterator[str]:
    yield plain(found.url or found.asked, 4096)
    yield _line("state", found.state + (f": {found.reason}" if found.reason else ""))
    if found.known:
        yield from _story_lines(found)
    yield _line("robots", found.robots)
    yield _line("host", found.host)
    yield _line("key", found.key + (f", of {found.form}" if found.form not in ("", found.asked) else ""))
    for number, fetch in enumerate(found.fetches):
        yield _line("fetched" if number == 0 else "", _fetch_words(fetch))
    if found.known and not found.fetches:
        yield _line("fetched", "not yet")


def _story_lines(found: Explanation) -> Iterator[str]:
    yield _line("found", found.found)
    for number, page in enumerate(found.trail):
        yield _line("on" if number == 0 else "which is on", page)
    if found.admitted:
        yield _line("admitted", found.admitted)
    yield _line("priority", f"{found.priority}, tier {found.tier}, depth {found.depth}")
    if found.waits:
        yield _line("waits", found.waits)
    if found.next_at is not None:
        yield _line("next", f"not before {_when(found.next_at)}")
    if found.title:
        yield _line("title", found.title)
    if found.content_type:
        yield _line("type", found.content_type)
    if found.canonical:
        says = f"alias of {found.alias_of}" if found.alias_of else f"counts for itself: {found.alias_why}"
        yield _line("canonical", f"{found.canonical} ({says})")
    yield from _likeness_lines(found)


def _likeness_lines(found: Explanation) -> Iterator[str]:
    if found.distance is not None:
        bits = "the same text" if found.distance == 0 else f"{found.distance} of 64 bits differ"
        yield _line("resembles", f"{found.resembles} ({bits})")
    if found.resembling:
        yield _line("resembled", f"by {found.resembling:,} page{'s' * (found.resembling > 1)}")


def _line(label: str, text: str) -> str:
    return f"  {label:<{_LABEL}}{plain(text, 4096)}"


def _fetch_words(fetch: FetchView) -> str:
    parts = [_when(fetch.at), fetch.result + (f" {fetch.status}" if fetch.status else "")]
    parts.append(f"{size(fetch.size)} in {fetch.seconds * 1000:.0f} ms")
    if fetch.address:
        parts.append(f"from {fetch.address}")
    parts += [text for text in (fetch.detail, fetch.record) if text]
    return ", ".join(parts)


# -- hosts, dead letters, policies


def _host_lines(found: Sequence[HostView]) -> Iterator[str]:
    if not found:
        yield "no such hosts"
        return
    rows = [
        (
            "host",
            "standing",
            "fetched",
            "queued",
            "failed",
            "denied",
            "received",
            "ms",
            "delay",
            "because",
            "robots",
        )
    ]
    rows += [
        (
            view.host,
            view.standing.replace("_", " "),
            f"{view.fetched:,}",
            f"{view.queued:,}",
            f"{view.failed:,}",
            f"{view.denied:,}",
            size(view.bytes),
            f"{view.response_ms:.0f}",
            f"{view.delay:g} s",
            view.delay_why,
            view.robots,
        )
        for view in found
    ]
    yield from table(rows, right=(2, 3, 4, 5, 6, 7, 8))


def _dead_lines(found: Sequence[DeadLetter], folder: CrawlFolder) -> Iterator[str]:
    if not found:
        yield "no dead letters"
        return
    rows = [
        (letter.url, letter.kind, letter.detail, f"{letter.attempts} attempts", _when(letter.at))
        for letter in found
    ]
    yield from table(rows)
    yield f"\nTry them again: skitter dead {folder.path} --requeue"


def _policy_words(found: HostPolicy) -> str:
    words = []
    if found.delay is not None:
        words.append(f"delay {found.delay:g} s")
    if found.parallel is not None:
        words.append(f"{found.parallel} requests in parallel")
    if found.budget is not None:
        words.append(f"budget {found.budget:,} pages" if found.budget else "no budget limit")
    if found.verify_tls is not None:
        words.append("certificate checked" if found.verify_tls else "certificate not checked")
    if found.blocked:
        words.append("blocked")
    return ", ".join(words) or "no policy: the crawl's settings hold"
