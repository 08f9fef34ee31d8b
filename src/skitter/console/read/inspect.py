"""The commands that look into a crawl or steer it: stats, explain, hosts, dead, refresh, policy.

Each returns text for people or, with `as_json`, JSON for programs. Looking on works while a crawl runs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from skitter.clock import SystemClock
from skitter.console.display.table import table
from skitter.console.display.wording import plain, size
from skitter.console.steer.carry_out import carry_out
from skitter.errors import UsageError
from skitter.folder import CrawlFolder
from skitter.frontier.base import (
    Audited,
    DeadLetter,
    Explanation,
    FetchView,
    Freshness,
    Frontier,
    HostStanding,
    HostView,
    PolitenessLedger,
    RenderFigures,
    RevisitFigures,
    Stats,
)
from skitter.headline import Seen, headline_of, look
from skitter.model import HostPolicy, UrlKey
from skitter.seeds import hosts_named, https_form
from skitter.service.steering.hosts import PolicyAsked, policy_order
from skitter.service.steering.urls import (
    MOST_NAMED,
    RefreshAsked,
    RequeueAsked,
    refresh_order,
    requeue_order,
)
from skitter.settings import Settings
from skitter.urls.canonical import normalise
from skitter.wiring import open_frontier

_LABEL = 12
_KEY = re.compile(r"[0-9a-fA-F]{32}")
# Visits that are this much overdue (s) are told as late.
_LATE = 3_600.0


async def stats(folder: CrawlFolder, settings: Settings, *, as_json: bool) -> str:
    async with open_frontier(folder, settings, read_only=True) as frontier:
        found, hosts = await look(frontier)
    if as_json:
        return _json(found)
    seen = Seen(
        now=SystemClock().now(),
        stats=found,
        hosts=hosts,
        is_running=bool(folder.holder()),
        max_pages=settings.crawl.max_pages,
        folder=shlex.quote(str(folder.path)),
    )
    return "\n".join((headline_of(seen).sentence, *_stats_lines(found)))


async def freshness(folder: CrawlFolder, settings: Settings, *, as_json: bool) -> str:
    async with open_frontier(folder, settings, read_only=True) as frontier:
        found = await frontier.freshness()
    return _json(found) if as_json else "\n".join(_freshness_lines(found)).lstrip()


async def explain(folder: CrawlFolder, settings: Settings, asked: str, *, as_json: bool) -> str:
    """Of a URL, of a bare domain as seeds are written, or of what a key stands for, as logs print it."""
    async with open_frontier(folder, settings, read_only=True) as frontier:
        found = await _explain_key(frontier, asked) if _KEY.fullmatch(asked) else None
        for url in _urls_meant(asked) if found is None else ():
            found = await frontier.explain(url) if found is None or not found.known else found
    if found is None:
        raise UsageError(f"{asked!r} is not an http or https URL, nor a key of 32 hexadecimal digits")
    return _json(found) if as_json else "\n".join(_explanation_lines(found))


async def _explain_key(frontier: Frontier, key: str) -> Explanation:
    url = await frontier.url_of(UrlKey(bytes.fromhex(key)))
    if url is None:
        raise UsageError(
            f"no URL known to this crawl has the key {key} (robots.txt files are not among them)"
        )
    return await frontier.explain(url)


def _urls_meant(asked: str) -> list[str]:
    """Most likely first."""
    if "://" in asked:
        return [asked] if normalise(asked) else []
    https = https_form(asked)
    return [https, "http" + https.removeprefix("https")] if https else []


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
    if host:
        hosts_named(host)
    parts = [RequeueAsked(urls=part, host=host, all=not (urls or host)) for part in _parts(urls)]
    done = [await carry_out(folder, settings, requeue_order(asked)) for asked in parts]
    moved = sum(one.answer.requeued for one in done)
    if as_json:
        return _json({"requeued": moved})
    return f"{moved:,} dead letters are queued again: {done[-1].who_goes_on(folder)} fetches them"


async def refresh(
    folder: CrawlFolder,
    settings: Settings,
    *,
    host: str | None,
    urls: Sequence[str],
    where: str = "",
    as_json: bool,
) -> str:
    """Queue what has its final answer again. A URL that the crawl does not know is a mistake worth a word."""
    if bool(host) + bool(urls) + bool(where) > 1:
        raise UsageError("give --host, --where or URLs, not several of them")
    _check_urls(urls)
    if host:
        hosts_named(host)
    is_all = not (urls or host or where)
    parts = [RefreshAsked(urls=part, host=host, where=where, all=is_all) for part in _parts(urls)]
    done = [await carry_out(folder, settings, refresh_order(asked)) for asked in parts]
    left = [one for part in done for one in part.answer.not_refreshed]
    moved = sum(one.answer.refreshed for one in done)
    if unknown := [one.url for one in left if one.state == "unknown"]:
        raise UsageError(f"{unknown[0]} is not known to this crawl: give it to skitter crawl as a seed")
    if as_json:
        return _json({"refreshed": moved})
    if not moved:
        standing = ", ".join(f"{one.url} is {one.state.replace('_', ' ')}" for one in left)
        why = f": {standing}" if standing else ", all that was fetched is queued already"
        return f"nothing to look at again{why}"
    return f"{moved:,} URLs are queued again: {done[-1].who_goes_on(folder)} looks what changed"


def _parts(urls: Sequence[str]) -> list[tuple[str, ...]]:
    """As many as one order may name; a single part without any when there are none."""
    return [tuple(urls[start : start + MOST_NAMED]) for start in range(0, max(1, len(urls)), MOST_NAMED)]


def _check_urls(urls: Sequence[str]) -> None:
    for url in urls:
        if normalise(url) is None:
            raise UsageError(f"{url!r} is not an http or https URL")


async def policy(
    folder: CrawlFolder, settings: Settings, host: str, change: HostPolicy | None, *, as_json: bool
) -> str:
    """Set a host's policy; without a change, show it."""
    named = hosts_named(host)
    if change is None:
        async with open_frontier(folder, settings, read_only=True) as frontier:
            views = [await frontier.host(one) for one in named]
        found = {view.host: view.policy or HostPolicy() for view in views if view is not None}
    else:
        asked = PolicyAsked(**msgspec.structs.asdict(change))
        done = await carry_out(folder, settings, policy_order(host, asked))
        found = {one.host: one.policy for one in done.answer.hosts}
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
    if found.scored:
        share = found.on_topic / found.scored
        yield f"{found.on_topic:,} of {found.scored:,} pages are about the topic: a harvest of {share:.0%}"
    if found.unstored or found.lost:
        lost = f"; {found.lost:,} requests were lost with their segment" if found.lost else ""
        yield f"{found.stored:,} pages are safe in the object store, {found.unstored:,} wait for upload{lost}"
    if found.requisites:
        yield f"{found.requisites:,} files that pages need to look as they do"
    if found.sitemaps:
        yield f"{found.sitemaps:,} sitemaps and feeds"
    yield from _renderings(found.renderings)
    yield from _counts(f"URLs known: {known:,}", found.urls)
    yield from _counts(f"Hosts: {sum(found.hosts.values()):,}", found.hosts)
    yield from _counts("Queued by tier", {f"F{i}": n for i, n in enumerate(found.tiers)})
    yield from _counts("Answers by status", found.statuses)
    yield from _counts("Failures by kind", found.failures)
    yield from _counts("Refused because of", found.refusals)
    for name, region in found.regions.items():
        took = f"{region.mean_seconds * 1000:.3g} ms each"
        yield f"Region {plain(name)}: {region.requests:,} requests, {took}, {size(region.bytes)}"
    if found.revisits is not None:
        yield from _revisit_lines(found.revisits)
    yield from _politeness_lines(found.politeness)
    if found.next_at is not None:
        yield f"\nNext host or retry ready: {_when(found.next_at)}"


def _revisit_lines(found: RevisitFigures) -> Iterator[str]:
    dated = f"{found.watched:,} pages have a date for their next visit"
    yield f"\nKept fresh: {dated}, {found.queued:,} are queued for it"
    wasted = f", {found.visits - found.changed:,} without a change" if found.visits else ""
    yield f"  {found.visits:,} visits made again{wasted}; a visit costs {found.price:.3g} days of freshness"
    if found.late > _LATE:
        late = f"the first by {found.late / 3600:,.1f} h"
        yield f"  visits are late, {late}: the budget or politeness does not allow more"


def _band(error: float | None) -> str:
    """Three standard errors: the truth lies outside in three of a thousand hours."""
    return f"give or take {300 * error:.1f} points" if error is not None else ""


def _freshness_lines(found: Freshness) -> Iterator[str]:
    if found.expected is None or found.expected_plain is None:
        yield "\nNo page has been watched: crawl with --keep-fresh"
        return
    yield f"\nExpected to be current now, of {found.pages:,} pages"
    rows = [
        ("by importance", f"{found.expected:.1%}", _band(found.error)),
        ("plain", f"{found.expected_plain:.1%}", _band(found.error_plain)),
    ]
    rows += [
        (tier, f"{share:.1%}", _audit_words(found.audited_by_tier.get(tier)))
        for tier, share in found.by_tier.items()
    ]
    yield from (f"  {line}" for line in table(rows, right=(1,)))
    if found.age is not None:
        yield f"Last seen {found.age:.3g} days ago on average; {found.changes_a_day:,.3g} changes a day expected"
    if found.audited is not None and found.audit_error is not None:
        error = f"{100 * found.audit_error:.1f} points"
        yield f"Audited at {found.audits:,} random times: {found.audited:.1%} were, give or take {error}"
    yield "\nHosts where most is missing"
    hosts = [
        (each.host, f"{each.pages:,} pages", f"{each.expected:.1%}", _audit_words(each.audited))
        for each in found.hosts
    ]
    yield from (f"  {line}" for line in table(hosts, right=(1, 2)))


def _audit_words(found: Audited | None) -> str:
    if found is None:
        return ""
    return f"audited {found.audits:,} times: {found.fresh:.1%}, give or take {100 * found.error:.1f} points"


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


def _renderings(found: RenderFigures | None) -> Iterator[str]:
    if found is None:
        return
    waits = found.queued + found.leased + found.awaiting
    yield (
        f"{found.done:,} pages rendered: {found.changed:,} brought more, {found.gained:,} URLs in all; "
        f"{found.skipped:,} passed over, {found.failed:,} failed, {waits:,} to come"
    )


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
    for number, words in enumerate(found.rendering):
        yield _line("rendering" if number == 0 else "", words)
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
    rows = [("url", "failed as", "status", "what was said", "attempts", "last")]
    rows += [
        (
            letter.url,
            letter.kind.replace("_", " "),
            str(letter.status or "none"),
            letter.detail or "nothing",
            f"{letter.attempts}",
            _when(letter.at) if letter.at else "never asked",
        )
        for letter in found
    ]
    yield from table(rows, right=(4,))
    name = shlex.quote(str(folder.path))
    yield f"\nMore of one: skitter explain URL --in {name}"
    yield f"Try them again: skitter dead {name} --requeue"


def _policy_words(found: HostPolicy) -> str:
    words = []
    if found.delay is not None:
        words.append(f"delay {found.delay:g} s")
    if found.parallel is not None:
        words.append(f"{found.parallel} requests in parallel")
    if found.budget is not None:
        words.append(f"budget {found.budget:,} pages" if found.budget else "no budget limit")
    if found.max_age is not None:
        words.append(f"copies at most {found.max_age:g} s old" if found.max_age else "never visited again")
    if found.verify_tls is not None:
        words.append("certificate checked" if found.verify_tls else "certificate not checked")
    if found.daily_requests is not None:
        words.append(f"{found.daily_requests:,} requests a day" if found.daily_requests else "any load a day")
    if found.daily_bytes is not None:
        words.append(f"{found.daily_bytes:,} bytes a day" if found.daily_bytes else "any bytes a day")
    if found.quiet_hours or found.time_zone:
        hours = f"quiet {found.quiet_hours} by the clock of " if found.quiet_hours else "days of "
        words.append(hours + (found.time_zone or "UTC"))
    if found.region:
        words.append(f"asked from {plain(found.region)}")
    if found.weight:
        words.append(f"weight {found.weight:+g}")
    if found.ignore_walls:
        words.append("its pages are pages, whatever they look like")
    if found.render is not None:
        words.append(f"rendered: {found.render}")
    if found.blocked:
        words.append("blocked")
    return ", ".join(words) or "no policy: the crawl's settings hold"
