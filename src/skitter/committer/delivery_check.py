"""Is a delivery possible at all? Asked of every one that comes from another process, before anything is decided.

Between the wire and the committer. Whether it counts is the frontier's decision; here is only asked whether a
worker of ours could have made it: kind against result, times, URLs with the keys and hosts that follow from them,
lengths, and its parcel. One that could not is refused alone, with a reason for its sender. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import ip_address
from math import isfinite

from skitter.archive.parcel_check import ParcelCheck
from skitter.archive.schema import ITEMS, choose_tables
from skitter.committer.work_source import Delivery
from skitter.frontier import link_batches
from skitter.model import (
    Discovered,
    Extracted,
    Failed,
    FaultKind,
    Fetched,
    Host,
    Link,
    LinkBatch,
    LinkColumns,
    NotModified,
    Outcome,
    Redirected,
    Rendered,
    Result,
    RobotsRead,
    TaskKind,
    UrlKey,
)
from skitter.robots.rules import MAX_BYTES as MAX_ROBOTS_BYTES
from skitter.settings import Settings
from skitter.urls.canonical import host_of, normalise
from skitter.urls.keys import Keys, form_key, host_part, robots_key
from skitter.urls.links import LinkReader

# Seconds. A worker translates its times into the server's, and may be off by what an answer took.
_AHEAD, _BEHIND = 60.0, 86_400.0
_LONGEST_TEXT, _LONGEST_ADDRESS = 20_000, 100
_LONGEST_NAME, _MOST_EXTRACTORS, _MOST_ITEMS = 200, 256, 1_000_000
_MOST_CPU = 3_600.0
_LONGEST_SESSION = 65_536
_LARGEST = 1 << 53
_DEEPEST = 1 << 31
_KEY, _DIGEST = 16, 32
_MOST_LINKS = 100_000
_MOST_URGENT = 255
_FAULT_KINDS = frozenset(FaultKind)
_FORMS = (TaskKind.FORM, TaskKind.SAFE_FORM)
_OF_ROBOTS = (RobotsRead, Redirected, Failed, NotModified)
_OF_URLS = (Fetched, Redirected, Failed, NotModified)
_RESULTS = {TaskKind.ROBOTS: _OF_ROBOTS, TaskKind.RENDER: (Rendered,)}


class DeliveryCheck:
    """Workers that a crawl started itself are believed that their records are records (`are_children`): to
    inflate them again would be a quarter of what a page costs the crawl's own process."""

    def __init__(self, settings: Settings, *, are_children: bool = False) -> None:
        self._keys = Keys(settings.keys)
        self._links = LinkReader(self._keys)
        has_items = bool(settings.plugins.with_ or settings.extract)
        tables = choose_tables(settings.archive.tables, (ITEMS,) if has_items else ())
        most = max(settings.fetch.max_body, settings.sitemaps.max_body)
        self._parcels = ParcelCheck(tables, most, inflates=not are_children)

    def fault(self, delivery: Delivery, now: float, since: float = 0.0) -> str:
        """What is wrong with it; empty when nothing is. Its lease was given no sooner than `since`."""
        return (
            _fault_of_outcome(delivery.outcome, now, since)
            or self._fault_of_result(delivery.outcome.result)
            or _fault_of_extracted(delivery.extracted)
            or self._fault_of_parcel(delivery)
        )

    def _fault_of_result(self, result: Result) -> str:
        if isinstance(result, Rendered):
            return self._fault_of_rendered(result)
        if isinstance(result, Redirected):
            return _too_long(result.location) or self._fault_of_target(result.target)
        return self._fault_of_page(result) if isinstance(result, Fetched) else _fault_of_other(result)

    def _fault_of_target(self, target: Discovered) -> str:
        is_right = (
            normalise(target.url) == target.url
            and target.host == host_of(target.url)
            and target.key in (self._key_of(target.url, target.form), robots_key(target.host))
            and 0 <= target.depth < _DEEPEST
            and 0 <= target.hops < _DEEPEST
            and 0 <= target.nesting < _DEEPEST
        )
        return "" if is_right else "the target of its redirect is no URL with its key and host"

    def _key_of(self, url: str, form: str) -> UrlKey:
        key = self._keys.key_of(url)
        return form_key(key, form) if form else key

    def _fault_of_page(self, page: Fetched) -> str:
        texts = (
            page.content_type,
            page.etag,
            page.last_modified,
            page.title,
            page.directives,
            page.note,
            page.canonical,
        )
        if not 100 <= page.status <= 999 or not 0 <= page.size < _LARGEST:
            return "its status or size is none"
        if len(page.digest) not in (0, _DIGEST) or page.record is not None or page.copy is not None:
            return "its digest or place is not for a worker to say"
        if page.score is not None and not 0 <= page.score <= 1:
            return "its score is none"
        if page.canonical and normalise(page.canonical) != page.canonical:
            return "its canonical URL is none"
        if not 0 <= page.already_sent < _LARGEST or len(page.already_sent_here) > _KEY * _MOST_LINKS:
            return "its count of links is none"
        return next(filter(None, map(_too_long, texts)), "") or self._fault_of_links(page)

    def _fault_of_rendered(self, page: Rendered) -> str:
        if len(page.digest) not in (0, _DIGEST) or page.record is not None:
            return "its digest or place is not for a worker to say"
        if not isfinite(page.seconds) or page.seconds > _MOST_CPU or not 0 <= page.size < _LARGEST:
            return "its time or size is none"
        counts = (page.text, page.plain_text, page.requests, page.lacking)
        if any(count >= _LARGEST for count in counts) or len(page.figures) > _LONGEST_TEXT:
            return "its counts are none"
        texts = map(_too_long, (page.ending, page.title, page.note))
        batches = (page.link_batches, page.awaited)
        return next(filter(None, texts), "") or next(filter(None, map(self._fault_of_batches, batches)), "")

    def _fault_of_links(self, page: Fetched) -> str:
        return self._fault_of_batches(page.link_batches)

    def _fault_of_batches(self, batches: tuple[LinkBatch, ...]) -> str:
        try:
            link_batches.check(batches)
        except ValueError as error:
            return f"its links are none: {error}"
        if sum(map(link_batches.size, batches)) > _MOST_LINKS:
            return "it has too many links"
        return next(filter(None, map(self._fault_of_batch, batches)), "")

    def _fault_of_batch(self, batch: LinkBatch) -> str:
        numbers = (batch.depth, batch.hops, batch.nesting, batch.priority or 0)
        if batch.kind is TaskKind.ROBOTS or not all(0 <= number < _DEEPEST for number in numbers):
            return "its links are of no kind or depth that links have"
        if batch.parent is not None and len(batch.parent) != _KEY:
            return "its links have no parent"
        if batch.columns is not None and not _are_possible(batch.columns):
            return "its links have dates or priorities that none have"
        urls = link_batches.urls_of(batch)
        if normalise(urls[0]) != urls[0]:
            return "a link is not normalised"
        base = urls[0]
        resolved = self._links.resolve(base, [Link(url) for url in urls])
        told = zip(urls, link_batches.keys_of(batch), resolved, strict=True)
        forms = batch.columns.form if batch.columns is not None else ()
        for (url, key, found), form in zip(told, forms or ("",) * len(urls), strict=True):
            if found is None or found[0] != url or key != (form_key(found[1], form) if form else found[1]):
                return "a link is not normalised, or its key is another's"
        return ""

    def _fault_of_parcel(self, delivery: Delivery) -> str:
        outcome, parcel = delivery.outcome, delivery.parcel
        if parcel is None:
            has_none = isinstance(outcome.result, Failed | Rendered)
            return "" if has_none else "an answer without its record"
        is_rendered = isinstance(outcome.result, Rendered)
        if fault := self._parcels.fault_of_rendered(parcel) if is_rendered else self._parcels.fault(parcel):
            return fault
        is_robots = outcome.kind is TaskKind.ROBOTS
        if host_of(parcel.url) != outcome.host:
            return "its record is of another host than its task"
        key = self._keys.key_of(parcel.url)
        # what was posted is in the key of a form, and not in its parcel
        is_of_task = (
            host_part(key) == host_part(outcome.key) if outcome.kind in _FORMS else key == outcome.key
        )
        if not is_robots and not is_of_task:
            return "its record is of another URL than its task"
        result = outcome.result
        if isinstance(result, Fetched | RobotsRead) and parcel.size and result.digest != parcel.digest:
            return "its digest is not that of its record"
        return ""


def _fault_of_outcome(outcome: Outcome, now: float, since: float) -> str:
    if not isinstance(outcome.result, _RESULTS.get(outcome.kind, _OF_URLS)):
        return "its result is not of its kind of task"
    times = (outcome.sent_at, outcome.ended_at)
    if not all(map(isfinite, times)) or not now - _BEHIND <= times[0] <= times[1] <= now + _AHEAD:
        return "its times are not those of a request that was just made"
    if outcome.sent_at < since - _AHEAD:
        return "it was sent before its lease was given"
    if len(outcome.host) > _LONGEST_TEXT or not _is_host(outcome.host):
        return "its host is none"
    if len(outcome.key) != _KEY or not 0 <= outcome.token < 1 << 63:
        return "its key or token is none"
    if not 0.0 <= outcome.cpu <= _MOST_CPU:
        return "its CPU time is none"
    if outcome.session is not None and len(outcome.session) > _LONGEST_SESSION:
        return "its session is too long"
    return (
        ""
        if len(outcome.address) < _LONGEST_ADDRESS and _is_address(outcome.address)
        else "its address is none"
    )


def _fault_of_extracted(extracted: Sequence[Extracted]) -> str:
    """They are counted by name and kind: names of any length and number would fill the memory."""
    is_right = len(extracted) <= _MOST_EXTRACTORS and all(
        len(one.extractor) <= _LONGEST_NAME
        and 0 <= one.items <= _MOST_ITEMS
        and (not one.fault or one.fault in _FAULT_KINDS)
        and len(one.text) <= _LONGEST_TEXT
        for one in extracted
    )
    return "" if is_right else "what extractors made of it is not what they can make"


@lru_cache(maxsize=4096)
def _is_host(host: Host) -> bool:
    url = normalise(f"{host}/")
    return url is not None and host_of(url) == host


@lru_cache(maxsize=4096)
def _is_address(text: str) -> bool:
    try:
        return not text or bool(ip_address(text))
    except ValueError:
        return False


def _fault_of_other(result: NotModified | RobotsRead | Failed) -> str:
    if result.record is not None:
        return "its place is not for a worker to say"
    if isinstance(result, NotModified):
        return ""
    if not 0 <= result.status <= 999 or not 0 <= result.size < _LARGEST:
        return "its status or size is none"
    if isinstance(result, Failed):
        wait = result.retry_after
        return _too_long(result.detail) or (
            "" if wait is None or _is_wait(wait) else "its Retry-After is none"
        )
    if (
        len(result.body) > MAX_ROBOTS_BYTES + 1
        or len(result.digest) not in (0, _DIGEST)
        or result.copy is not None
    ):
        return "its robots.txt is too long, or has no digest"
    return _too_long(result.etag) or _too_long(result.last_modified)


def _are_possible(columns: LinkColumns) -> bool:
    dates = all(isfinite(at) for at in columns.lastmod if at is not None)
    return dates and all(0 <= one <= _MOST_URGENT for one in columns.priority if one is not None)


def _is_wait(seconds: float) -> bool:
    return isfinite(seconds) and 0 <= seconds < _LARGEST


def _too_long(text: str) -> str:
    return "" if len(text) <= _LONGEST_TEXT else "one of its texts is too long"
