"""What the desk tells the outside of what was settled: counters for the display, lines for the log.

Beside the path, never on it. It sees the deliveries of every worker, so its figures are the crawl's.
"""

from __future__ import annotations

from collections.abc import Sequence

from skitter.archive.packing import Parcel
from skitter.desk.brain import Delivery
from skitter.frontier.base import Settled, Settlement
from skitter.frontier.bundles import count_links
from skitter.log import Log
from skitter.model import (
    Failed,
    Fetched,
    NotModified,
    Outcome,
    Redirected,
    RobotsRead,
    TaskKind,
    UrlState,
)
from skitter.telemetry import Event, Metric, Telemetry


class Report:
    def __init__(self, telemetry: Telemetry, log: Log) -> None:
        self._telemetry = telemetry
        self._log = log

    def expired(self, leases: int) -> None:
        self._log.write(Event.LEASE_EXPIRED, leases=leases)

    def settled(
        self,
        deliveries: Sequence[Delivery],
        outcomes: Sequence[Outcome],
        settlements: Sequence[Settlement],
    ) -> None:
        added = archived = 0
        for delivery, outcome, settlement in zip(deliveries, outcomes, settlements, strict=True):
            if delivery.parcel is not None:
                self._heard(outcome, delivery.parcel, delivery.reused_connection)
            if settlement.settled is not Settled.STALE:
                self._count(outcome, settlement)
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

    def _count(self, outcome: Outcome, settlement: Settlement) -> None:
        telemetry = self._telemetry
        if settlement.near is not None:
            telemetry.count(Metric.NEAR_DUPLICATES)
        match outcome.result:
            case Fetched() as fetched:
                self._count_fetched(outcome, fetched)
            case Redirected():
                telemetry.count(Metric.REDIRECTS)
            case NotModified():
                telemetry.count(Metric.UNCHANGED)
            case RobotsRead():
                telemetry.count(Metric.ROBOTS)
            case Failed(kind=kind):
                telemetry.failure(kind)

    def _count_fetched(self, outcome: Outcome, fetched: Fetched) -> None:
        telemetry = self._telemetry
        if outcome.requisite and 200 <= fetched.status < 300:
            telemetry.count(Metric.REQUISITES)
        elif 200 <= fetched.status < 300:
            telemetry.page(outcome.ended_at)
            telemetry.count(Metric.LINKS, count_links(fetched))
            if fetched.copy is None and fetched.size:
                telemetry.count(Metric.DUPLICATES)
        if fetched.truncated:
            telemetry.count(Metric.TRUNCATED)

    def _tell(self, outcome: Outcome, settlement: Settlement) -> None:
        result = outcome.result
        if isinstance(result, Fetched) and result.note:
            self._log.write(Event.PAGE_UNREAD, host=outcome.host, key=outcome.key.hex(), reason=result.note)
        if not isinstance(result, Failed):
            return
        self._log.write(
            _failure_event(outcome, settlement),
            host=outcome.host,
            key=outcome.key.hex(),
            task=outcome.kind,
            kind=result.kind,
            detail=result.detail,
            status=result.status,
        )
        if settlement.gave_up:
            self._log.write(Event.HOST_GIVEN_UP, host=outcome.host, kind=result.kind, detail=result.detail)


def _failure_event(outcome: Outcome, settlement: Settlement) -> Event:
    if outcome.kind is TaskKind.ROBOTS:
        return Event.ROBOTS_UNREACHABLE
    return Event.URL_DEAD if settlement.state is UrlState.DEAD_LETTER else Event.FETCH_FAILED
