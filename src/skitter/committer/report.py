"""What the committer tells the outside of what was settled: counters for the display, lines for the log.

Beside the path, never on it. It sees the deliveries of every worker, so its figures are the crawl's.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from skitter.archive.packing import Parcel
from skitter.committer.work_source import Delivery
from skitter.frontier.base import Frontier, Settled, Settlement
from skitter.frontier.link_batches import count_links
from skitter.log import Log
from skitter.model import (
    Extracted,
    Failed,
    Fetched,
    Host,
    NotModified,
    Outcome,
    Redirected,
    Rendered,
    RobotsRead,
    TaskKind,
    UrlKey,
    UrlState,
)
from skitter.recent import LastFetch
from skitter.schedule.kinds import KINDS
from skitter.telemetry import Event, Metric, Telemetry
from skitter.urls.canonical import robots_url

_LONGEST_TOLD = 300


class Report:
    def __init__(self, telemetry: Telemetry, log: Log) -> None:
        self._telemetry = telemetry
        self._log = log

    def expired(self, leases: int) -> None:
        self._log.write(Event.LEASE_EXPIRED, leases=leases)

    def refused(self, worker: str, outcome: Outcome, why: str) -> None:
        self._telemetry.count(Metric.DELIVERIES_REFUSED)
        host = outcome.host[:_LONGEST_TOLD]
        self._log.write(Event.DELIVERY_REFUSED, worker=worker, host=host, key=outcome.key[:16].hex(), why=why)

    def lease_refused(self, worker: str, host: Host) -> None:
        self._telemetry.count(Metric.LEASES_REFUSED)
        self._log.write(Event.LEASE_REFUSED, worker=worker[:_LONGEST_TOLD], host=host[:_LONGEST_TOLD])

    def settled(
        self,
        deliveries: Sequence[Delivery],
        outcomes: Sequence[Outcome],
        settlements: Sequence[Settlement],
    ) -> None:
        added = archived = 0
        for delivery, outcome, settlement in zip(deliveries, outcomes, settlements, strict=True):
            if isinstance(outcome.result, Rendered):
                self._rendered(outcome, outcome.result, settlement)
            elif delivery.parcel is not None:
                self._heard(outcome, delivery.parcel, delivery.reused_connection)
            if settlement.settled is not Settled.STALE:
                self._count(outcome, settlement)
                if delivery.extracted:
                    self._extracted(outcome, delivery.extracted)
                added += settlement.added
                record = outcome.result.record
                archived += record.length if record is not None else 0
            self._tell(outcome, settlement)
        self._telemetry.count(Metric.ADDED, added)
        self._telemetry.count(Metric.ARCHIVED_BYTES, archived)

    def _heard(self, outcome: Outcome, parcel: Parcel, reused: bool) -> None:
        milliseconds = (outcome.ended_at - outcome.sent_at) * 1000
        self._telemetry.request(outcome.host, parcel.status, parcel.size, milliseconds, outcome.ended_at)
        if reused:
            self._telemetry.count(Metric.REUSED)

    def _rendered(self, outcome: Outcome, result: Rendered, settlement: Settlement) -> None:
        if settlement.settled is Settled.STALE or result.awaited:
            return
        if not result.size:
            self._log.write(
                Event.RENDERING_FAILED,
                **_named(outcome, settlement),
                ending=result.ending,
                reason=result.note,
            )

    def _count(self, outcome: Outcome, settlement: Settlement) -> None:
        count_settled(self._telemetry, outcome, settlement)
        result = outcome.result
        if isinstance(result, Rendered):
            return
        if isinstance(result, Failed):
            self._telemetry.failure(result.kind)
        self._telemetry.last.record(
            LastFetch(
                outcome.ended_at,
                outcome.key,
                outcome.host,
                outcome.kind is TaskKind.ROBOTS,
                304 if isinstance(result, NotModified) else result.status,
                0 if isinstance(result, NotModified) else result.size,
                outcome.ended_at - outcome.sent_at,
                result.kind if isinstance(result, Failed) else "",
                result.detail if isinstance(result, Failed) else "",
            )
        )

    def _extracted(self, outcome: Outcome, extracted: Sequence[Extracted]) -> None:
        for made in extracted:
            self._telemetry.extracted(made.extractor, made.items, made.fault)
            if made.fault:
                self._log.write(
                    Event.EXTRACTOR_FAILED,
                    extractor=made.extractor,
                    kind=made.fault,
                    reason=made.text,
                    host=outcome.host,
                    key=outcome.key.hex(),
                )

    def _tell(self, outcome: Outcome, settlement: Settlement) -> None:
        result = outcome.result
        if isinstance(result, Fetched) and result.note:
            self._log.write(Event.PAGE_UNREAD, **_named(outcome, settlement), reason=result.note)
        if not isinstance(result, Failed):
            return
        self._log.write(
            _failure_event(outcome, settlement),
            **_named(outcome, settlement),
            task=outcome.kind,
            kind=result.kind,
            detail=result.detail,
            status=result.status,
        )
        if settlement.gave_up:
            self._log.write(Event.HOST_GIVEN_UP, host=outcome.host, kind=result.kind, detail=result.detail)


def _named(outcome: Outcome, settlement: Settlement) -> dict[str, str]:
    """What a line is about. A stale outcome has no URL any more, but its key."""
    url = robots_url(outcome.host) if outcome.kind is TaskKind.ROBOTS else settlement.url
    return {"url": url, "host": outcome.host, "key": outcome.key.hex()}


class FetchShown(msgspec.Struct, frozen=True, kw_only=True):
    """One of the latest requests. `failure` is its kind; empty when it was answered."""

    at: float
    url: str
    host: str
    status: int
    size: int
    seconds: float
    failure: str
    detail: str


async def shown(fetch: LastFetch, frontier: Frontier) -> FetchShown:
    """With its URL, which is looked up only for who looks on."""
    if fetch.is_robots:
        url = robots_url(Host(fetch.host))
    else:
        url = await frontier.url_of(UrlKey(fetch.key)) or fetch.host
    return FetchShown(
        at=fetch.at,
        url=url,
        host=fetch.host,
        status=fetch.status,
        size=fetch.size,
        seconds=fetch.seconds,
        failure=fetch.failure,
        detail=fetch.detail,
    )


def _failure_event(outcome: Outcome, settlement: Settlement) -> Event:
    if outcome.kind is TaskKind.ROBOTS:
        return Event.ROBOTS_UNREACHABLE
    return Event.URL_DEAD if settlement.state is UrlState.DEAD_LETTER else Event.FETCH_FAILED


def count_settled(telemetry: Telemetry, outcome: Outcome, settlement: Settlement) -> None:
    """Counts one outcome that was not stale. Used for the crawl's display and for the service's metrics."""
    if settlement.near is not None:
        telemetry.count(Metric.NEAR_DUPLICATES)
    if settlement.again is not None:
        telemetry.count_labelled(Metric.LOOKED_AGAIN, settlement.again)
    match outcome.result:
        case Fetched() as fetched:
            _count_fetched(telemetry, outcome, fetched)
        case Redirected():
            telemetry.count(Metric.REDIRECTS)
        case NotModified():
            telemetry.count(Metric.UNCHANGED)
        case RobotsRead():
            telemetry.count(Metric.ROBOTS)
        case Rendered(awaited=()):
            telemetry.count(Metric.RENDERED)


def _count_fetched(telemetry: Telemetry, outcome: Outcome, fetched: Fetched) -> None:
    if fetched.truncated:
        telemetry.count(Metric.TRUNCATED)
    if not 200 <= fetched.status < 300:
        return
    if outcome.kind is TaskKind.REQUISITE:
        telemetry.count(Metric.REQUISITES)
    if not KINDS[outcome.kind].is_page:
        return
    telemetry.page(outcome.ended_at)
    telemetry.count(Metric.LINKS, count_links(fetched))
    if fetched.copy is None and fetched.size:
        telemetry.count(Metric.DUPLICATES)
