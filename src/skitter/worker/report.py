"""What the worker tells the outside of what it did: counters for the display, lines for the log.

Beside the path, never on it.
"""

from __future__ import annotations

from collections.abc import Sequence

from skitter.frontier.base import Settlement
from skitter.log import Log
from skitter.model import (
    Exchange,
    Failed,
    Fetched,
    HostLease,
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
        self.waiting_until: float | None = None

    def waiting(self, until: float) -> None:
        """Nothing can be asked now; the next host or retry is ready at `until`."""
        self.waiting_until = until

    def fetched(self, lease: HostLease, outcome: Outcome, exchange: Exchange | None) -> None:
        self.waiting_until = None
        telemetry = self._telemetry
        if exchange is not None:
            self._heard(lease, outcome, exchange)
        if (record := outcome.result.record) is not None:
            telemetry.count(Metric.ARCHIVED_BYTES, record.length)
        match outcome.result:
            case Fetched(status=status, truncated=truncated, copy=copy, links=links):
                if outcome.requisite and 200 <= status < 300:
                    telemetry.count(Metric.REQUISITES)
                elif 200 <= status < 300:
                    telemetry.page(outcome.ended_at)
                    telemetry.count(Metric.LINKS, len(links))
                    if copy is None and exchange is not None and exchange.body:
                        telemetry.count(Metric.DUPLICATES)
                if truncated:
                    telemetry.count(Metric.TRUNCATED)
            case Redirected():
                telemetry.count(Metric.REDIRECTS)
            case NotModified():
                telemetry.count(Metric.UNCHANGED)
            case RobotsRead():
                telemetry.count(Metric.ROBOTS)
            case Failed(kind=kind):
                telemetry.failure(kind)

    def _heard(self, lease: HostLease, outcome: Outcome, exchange: Exchange) -> None:
        milliseconds = (outcome.ended_at - outcome.sent_at) * 1000
        self._telemetry.request(
            lease.host, exchange.status, len(exchange.body), milliseconds, outcome.ended_at
        )
        if exchange.reused_connection:
            self._telemetry.count(Metric.REUSED)

    def holding(self, leases: int) -> None:
        self._telemetry.gauge(Metric.LEASES, leases)

    def pulse(self, seconds: float) -> None:
        milliseconds = round(seconds * 1000)
        if milliseconds > self._telemetry.value(Metric.LONGEST_PULSE):
            self._telemetry.gauge(Metric.LONGEST_PULSE, milliseconds)

    def expired(self, leases: int) -> None:
        self._log.write(Event.LEASE_EXPIRED, leases=leases)

    def settled(self, outcomes: Sequence[Outcome], settlements: Sequence[Settlement]) -> None:
        for outcome, settlement in zip(outcomes, settlements, strict=True):
            self._telemetry.count(Metric.ADDED, settlement.added)
            if settlement.near is not None:
                self._telemetry.count(Metric.NEAR_DUPLICATES)
            result = outcome.result
            if isinstance(result, Fetched) and result.note:
                self._log.write(
                    Event.PAGE_UNREAD, host=outcome.host, key=outcome.key.hex(), reason=result.note
                )
            if isinstance(result, Failed):
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
                    self._log.write(
                        Event.HOST_GIVEN_UP, host=outcome.host, kind=result.kind, detail=result.detail
                    )


def _failure_event(outcome: Outcome, settlement: Settlement) -> Event:
    if outcome.kind is TaskKind.ROBOTS:
        return Event.ROBOTS_UNREACHABLE
    return Event.URL_DEAD if settlement.state is UrlState.DEAD_LETTER else Event.FETCH_FAILED
