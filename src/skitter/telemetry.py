"""Every metric and every log event, once, and the counters behind the metrics.

Beside the path of a URL, never on it: a worker counts here what it did, the display and the service read
it. Nothing here reads the wall clock, blocks, grows with the crawl, or raises into it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

import msgspec

from skitter.model import FailureKind

STATUS_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx", "other")


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"


class Described(NamedTuple):
    """What a metric is; `labels` is the closed set of values of its label, empty when it has none."""

    kind: Kind
    unit: str
    help: str
    label: str = ""
    labels: tuple[str, ...] = ()


class Metric(StrEnum):
    PAGES = "skitter_pages_total"
    REQUISITES = "skitter_requisites_total"
    REQUESTS = "skitter_requests_total"
    BYTES = "skitter_received_bytes_total"
    RESPONSES = "skitter_responses_total"
    FAILURES = "skitter_failures_total"
    UNCHANGED = "skitter_not_modified_total"
    REDIRECTS = "skitter_redirects_total"
    TRUNCATED = "skitter_truncated_total"
    ROBOTS = "skitter_robots_read_total"
    DUPLICATES = "skitter_duplicate_bodies_total"
    NEAR_DUPLICATES = "skitter_near_duplicates_total"
    LINKS = "skitter_links_found_total"
    ADDED = "skitter_urls_added_total"
    ARCHIVED_BYTES = "skitter_archived_bytes_total"
    PARTS = "skitter_table_parts_total"
    STORED_SEGMENTS = "skitter_segments_stored_total"
    SPOOL = "skitter_spool_bytes"
    REUSED = "skitter_connections_reused_total"
    DNS_HITS = "skitter_dns_cache_hits_total"
    DNS_LOOKUPS = "skitter_dns_lookups_total"
    DNS_FAILURES = "skitter_dns_failures_total"
    DNS_MS = "skitter_dns_lookup_milliseconds_total"
    LOG_DROPPED = "skitter_log_lines_dropped_total"
    IN_FLIGHT = "skitter_requests_in_flight"
    LEASES = "skitter_leases_held"
    LONGEST_PULSE = "skitter_longest_pulse_milliseconds"


_COUNTER, _GAUGE = Kind.COUNTER, Kind.GAUGE
METRICS: dict[Metric, Described] = {
    Metric.PAGES: Described(_COUNTER, "pages", "Pages fetched and archived."),
    Metric.REQUISITES: Described(
        _COUNTER, "files", "What pages need to look as they do, fetched and archived (crawl.requisites)."
    ),
    Metric.REQUESTS: Described(
        _COUNTER, "requests", "Requests that got a response of any kind, robots.txt included."
    ),
    Metric.BYTES: Described(_COUNTER, "bytes", "Received, headers and bodies as they crossed the wire."),
    Metric.RESPONSES: Described(
        _COUNTER, "responses", "Responses by class of status.", "status", STATUS_CLASSES
    ),
    Metric.FAILURES: Described(
        _COUNTER, "requests", "Requests without a usable answer.", "kind", tuple(FailureKind)
    ),
    Metric.UNCHANGED: Described(_COUNTER, "responses", "Revisits answered with 304."),
    Metric.REDIRECTS: Described(_COUNTER, "responses", "Responses that pointed elsewhere."),
    Metric.TRUNCATED: Described(_COUNTER, "responses", "Bodies cut at the size limit."),
    Metric.ROBOTS: Described(_COUNTER, "responses", "robots.txt files answered, with rules or without."),
    Metric.DUPLICATES: Described(_COUNTER, "records", "Bodies already archived, kept as revisit records."),
    Metric.NEAR_DUPLICATES: Described(
        _COUNTER, "pages", "Pages settled whose text resembles that of another page."
    ),
    Metric.LINKS: Described(_COUNTER, "links", "Links found on pages, each page's own duplicates removed."),
    Metric.ADDED: Described(_COUNTER, "URLs", "URLs that were new and were queued."),
    Metric.ARCHIVED_BYTES: Described(_COUNTER, "bytes", "Written to the archive, compressed."),
    Metric.PARTS: Described(_COUNTER, "parts", "Times that rows became Parquet while the crawl ran."),
    Metric.STORED_SEGMENTS: Described(
        _COUNTER, "segments", "Uploaded to the object store, compared and committed."
    ),
    Metric.SPOOL: Described(_GAUGE, "bytes", "In the crawl's folder and not in its object store yet."),
    Metric.REUSED: Described(_COUNTER, "requests", "Requests over a connection that was already open."),
    Metric.DNS_HITS: Described(_COUNTER, "lookups", "Host names answered from the DNS cache."),
    Metric.DNS_LOOKUPS: Described(_COUNTER, "lookups", "Host names asked of a DNS server."),
    Metric.DNS_FAILURES: Described(_COUNTER, "lookups", "Host names that could not be resolved."),
    Metric.DNS_MS: Described(
        _COUNTER, "milliseconds", "Spent waiting for DNS servers; by lookup, the mean time of one."
    ),
    Metric.LOG_DROPPED: Described(_COUNTER, "lines", "Log lines that could not be written."),
    Metric.IN_FLIGHT: Described(_GAUGE, "requests", "Requests under way."),
    Metric.LEASES: Described(_GAUGE, "leases", "Hosts that are leased to a worker."),
    Metric.LONGEST_PULSE: Described(
        _GAUGE,
        "milliseconds",
        "The longest that one page, commit or pause of the process held up all others so far.",
    ),
}


class Event(StrEnum):
    """What the log tells; one JSON object a line, `time` and `event` first."""

    CRAWL_STARTED = "crawl_started"
    CRAWL_RESUMED = "crawl_resumed"
    CRAWL_DRAINING = "crawl_draining"
    CRAWL_PAUSED = "crawl_paused"
    CRAWL_GOES_ON = "crawl_goes_on"
    CRAWL_ENDED = "crawl_ended"
    FETCH_FAILED = "fetch_failed"
    PAGE_UNREAD = "page_unread"
    ROBOTS_UNREACHABLE = "robots_unreachable"
    URL_DEAD = "url_dead"
    HOST_GIVEN_UP = "host_given_up"
    LEASE_EXPIRED = "lease_expired"
    LOG_RESUMED = "log_resumed"
    UPLOAD_FAILED = "upload_failed"
    SEGMENTS_LOST = "segments_lost"
    BLOCKLIST_KEPT = "blocklist_kept"


EVENTS: dict[Event, str] = {
    Event.CRAWL_STARTED: "A new crawl begins: folder, seeds, version.",
    Event.CRAWL_RESUMED: "An earlier crawl goes on: folder, what it had.",
    Event.CRAWL_DRAINING: "No new requests; those in flight are being finished, and why.",
    Event.CRAWL_PAUSED: "There is no room on the disk, or too much waits for upload: why, bytes needed and free.",
    Event.CRAWL_GOES_ON: "There is room again.",
    Event.CRAWL_ENDED: "The crawl ended: how, and its figures.",
    Event.FETCH_FAILED: "A request had no usable answer: URL, kind, detail, attempt.",
    Event.PAGE_UNREAD: "A page is archived but could not be read (to its end), as a broken PDF: URL key, reason.",
    Event.ROBOTS_UNREACHABLE: "A robots.txt could not be had, so its host is not crawled for now.",
    Event.URL_DEAD: "A URL used up its attempts and waits for the operator.",
    Event.HOST_GIVEN_UP: "A host failed too often; what waits for it becomes dead letters: host, last failure.",
    Event.LEASE_EXPIRED: "A worker did not come back in time; its URLs are queued again.",
    Event.LOG_RESUMED: "The log can be written again: lines lost meanwhile.",
    Event.UPLOAD_FAILED: "The object store does not take what is uploaded, and why; it is tried again.",
    Event.BLOCKLIST_KEPT: "A changed blocklist cannot be read, and why; its last good reading stays in force.",
    Event.SEGMENTS_LOST: "Segments were gone before they were stored: how many, and requests to make again.",
}


def status_class(status: int) -> str:
    return STATUS_CLASSES[status // 100 - 1] if 100 <= status < 600 else "other"


class FrontierFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the frontier knows and telemetry does not count; `refusals` is by reason, of the whole crawl."""

    hosts_active: int = 0
    hosts_waiting: int = 0
    hosts_backing_off: int = 0
    hosts_total: int = 0
    queued: int = 0
    in_progress: int = 0
    waiting_retry: int = 0
    pages_in_all: int = 0
    unstored: int = 0
    denied: int = 0
    gone: int = 0
    dead: int = 0
    refusals: dict[str, int] = {}
    next_at: float | None = None


class Phase(StrEnum):
    CRAWLING = "crawling"
    DRAINING = "draining"
    WAITING = "waiting"
    PAUSED = "paused"
    DONE = "done"


class Ended(StrEnum):
    """How a run of the worker's loop came to its end."""

    COMPLETE = "complete"
    LIMIT = "limit"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The crawl at one moment, for whoever shows it. Counts of pages, requests and bytes are of this run;
    those of the frontier are of the whole crawl. `next_at` is when the next host is ready."""

    at: float
    phase: Phase = Phase.CRAWLING
    elapsed: float = 0.0
    pages: int = 0
    requisites: int = 0
    requests: int = 0
    bytes: int = 0
    rate_now: float = 0.0
    rate_mean: float = 0.0
    in_flight: int = 0
    hosts_active: int = 0
    hosts_waiting: int = 0
    hosts_backing_off: int = 0
    hosts_total: int = 0
    queued: int = 0
    in_progress: int = 0
    waiting_retry: int = 0
    pages_in_all: int = 0
    unstored: int = 0
    denied: int = 0
    refused: int = 0
    gone: int = 0
    dead: int = 0
    refusals: dict[str, int] = {}
    errors: dict[str, int] = {}
    statuses: dict[str, int] = {}
    slowest: list[tuple[str, float]] = []
    max_pages: int = 0
    next_at: float | None = None
    dns_hits: int = 0
    dns_lookups: int = 0
    dns_ms: int = 0
    reused: int = 0
    duplicates: int = 0
    archived_bytes: int = 0
    log_dropped: int = 0
    longest_pulse_ms: int = 0


class Rate:
    """Events a second over the last `WINDOW` seconds, in slots of a quarter of a second."""

    WINDOW = 10.0
    SLOTS_A_SECOND = 4

    def __init__(self, started: float) -> None:
        self._started = started
        self._slots: deque[list[int]] = deque(maxlen=int(self.WINDOW * self.SLOTS_A_SECOND))

    def add(self, now: float, amount: int = 1) -> None:
        slot = int(now * self.SLOTS_A_SECOND)
        if self._slots and slot <= self._slots[-1][0]:
            self._slots[-1][1] += amount
        else:
            self._slots.append([slot, amount])

    def at(self, now: float) -> float:
        oldest = int((now - self.WINDOW) * self.SLOTS_A_SECOND)
        counted = sum(count for slot, count in self._slots if slot > oldest)
        # Under a second of history would turn the first page into a rate of thousands.
        return counted / min(self.WINDOW, max(1.0, now - self._started))


class SlowHosts:
    """Smoothed response times of at most `KEPT` hosts, the slowest of those heard of lately."""

    KEPT = 512
    SHOWN = 5
    FORGOTTEN_AFTER = 300.0
    NEW_WEIGHT = 0.3

    def __init__(self) -> None:
        self._hosts: dict[str, tuple[float, float]] = {}

    def heard(self, host: str, ms: float, now: float) -> None:
        known = self._hosts.get(host)
        if known is not None:
            ms = known[0] + self.NEW_WEIGHT * (ms - known[0])
        elif len(self._hosts) >= self.KEPT:
            self._hosts = dict(self._slowest(self.KEPT // 2, now))
        self._hosts[host] = (ms, now)

    def shown(self, now: float) -> list[tuple[str, float]]:
        return [(host, ms) for host, (ms, _) in self._slowest(self.SHOWN, now)]

    def _slowest(self, most: int, now: float) -> list[tuple[str, tuple[float, float]]]:
        fresh = (item for item in self._hosts.items() if now - item[1][1] < self.FORGOTTEN_AFTER)
        return heapq.nlargest(most, fresh, key=lambda item: item[1])


class Telemetry:
    """The counters of one process. A page costs 2.6 us in all (`request` and `page`, 2,000 hosts in turn)."""

    def __init__(self, started: float, max_pages: int = 0) -> None:
        self.started = started
        self._max_pages = max_pages
        self._values = {metric: 0 for metric, about in METRICS.items() if not about.label}
        self._labelled = {
            metric: dict.fromkeys(about.labels, 0) for metric, about in METRICS.items() if about.label
        }
        self._rate = Rate(started)
        self._slow = SlowHosts()

    def count(self, metric: Metric, n: int = 1) -> None:
        self._values[metric] += n

    def count_labelled(self, metric: Metric, label: str, n: int = 1) -> None:
        """A label outside of the metric's closed set is a bug, and raises `KeyError`."""
        counts = self._labelled[metric]
        counts[label] = counts[label] + n

    def gauge(self, metric: Metric, value: int) -> None:
        self._values[metric] = value

    def request(self, host: str, status: int, size: int, ms: float, now: float) -> None:
        """A request ended with a response of any kind, in `ms` from start to end."""
        self._values[Metric.REQUESTS] += 1
        self._values[Metric.BYTES] += size
        self._labelled[Metric.RESPONSES][status_class(status)] += 1
        self._slow.heard(host, ms, now)

    def page(self, now: float) -> None:
        self._values[Metric.PAGES] += 1
        self._rate.add(now)

    def failure(self, kind: FailureKind) -> None:
        self._labelled[Metric.FAILURES][kind] += 1

    def value(self, metric: Metric) -> int:
        return self._values[metric]

    def labelled(self, metric: Metric) -> dict[str, int]:
        """The label's values that occurred, the most frequent first."""
        found = [(str(label), count) for label, count in self._labelled[metric].items() if count]
        return dict(sorted(found, key=lambda item: -item[1]))

    def samples(self) -> Iterator[tuple[Metric, str, int]]:
        """Every metric with its label's value (or an empty one) and its own: what an exporter writes."""
        for metric, value in self._values.items():
            yield metric, "", value
        for metric, counts in self._labelled.items():
            for label, value in counts.items():
                yield metric, str(label), value

    def snapshot(
        self, now: float, figures: FrontierFigures | None = None, phase: Phase = Phase.CRAWLING
    ) -> Snapshot:
        known = msgspec.structs.asdict(figures or FrontierFigures())
        elapsed = max(0.0, now - self.started)
        pages = self.value(Metric.PAGES)
        return Snapshot(
            **known,
            at=now,
            phase=phase,
            elapsed=elapsed,
            pages=pages,
            requisites=self.value(Metric.REQUISITES),
            requests=self.value(Metric.REQUESTS),
            bytes=self.value(Metric.BYTES),
            rate_now=self._rate.at(now),
            rate_mean=pages / elapsed if elapsed > 0 else 0.0,
            in_flight=self.value(Metric.IN_FLIGHT),
            refused=sum(known["refusals"].values()),
            errors=self.labelled(Metric.FAILURES),
            statuses={label: n for label, n in self._labelled[Metric.RESPONSES].items() if n},
            slowest=self._slow.shown(now),
            max_pages=self._max_pages,
            dns_hits=self.value(Metric.DNS_HITS),
            dns_lookups=self.value(Metric.DNS_LOOKUPS),
            dns_ms=self.value(Metric.DNS_MS),
            reused=self.value(Metric.REUSED),
            duplicates=self.value(Metric.DUPLICATES),
            archived_bytes=self.value(Metric.ARCHIVED_BYTES),
            log_dropped=self.value(Metric.LOG_DROPPED),
            longest_pulse_ms=self.value(Metric.LONGEST_PULSE),
        )
