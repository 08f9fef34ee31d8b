"""Every metric and every log event, once, and the counters behind the metrics.

Beside the path of a URL, never on it: a worker counts here what it did, the display and the service read
it. Nothing here reads the wall clock, blocks, grows with the crawl, or raises into it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

import msgspec

from skitter.model import FailureKind, FaultKind, Refusal, UrlState
from skitter.recent import Histogram, LastFetches, Rate, SlowHosts
from skitter.snapshot import Ended as Ended
from skitter.snapshot import FrontierFigures as FrontierFigures
from skitter.snapshot import Phase as Phase
from skitter.snapshot import Snapshot as Snapshot

STATUS_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx", "other")
TIERS = ("F0", "F1", "F2", "F3")
STANDINGS = ("idle", "waiting", "active", "backing_off", "blocked", "given_up")
LOOKED_AGAIN = ("changed", "unchanged", "gone", "redirected", "failed")
FRESHNESS = ("importance", "plain", *TIERS)
STATES = tuple(state.name.lower() for state in UrlState)
REASONS = (*Refusal, *FailureKind, "other")
# Seconds: a host nearby, one across an ocean, a slow one, and the time-outs of `fetch` as they are by default.
LATENCY_BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0)


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Described(NamedTuple):
    """A metric's description. `labels` is the closed set of values of its label. `of_crawl`: the frontier keeps
    the counter, which therefore survives a restart. `scale` converts the counted unit to the exported one."""

    kind: Kind
    unit: str
    help: str
    label: str = ""
    labels: tuple[str, ...] = ()
    of_crawl: bool = False
    scale: float = 1


class Metric(StrEnum):
    PAGES = "skitter_pages_total"
    REQUISITES = "skitter_requisites_total"
    RENDERED = "skitter_rendered_pages_total"
    REQUESTS = "skitter_requests_total"
    BYTES = "skitter_received_bytes_total"
    RESPONSES = "skitter_responses_total"
    FAILURES = "skitter_failures_total"
    UNCHANGED = "skitter_not_modified_total"
    LOOKED_AGAIN = "skitter_looked_again_total"
    REDIRECTS = "skitter_redirects_total"
    TRUNCATED = "skitter_truncated_total"
    ROBOTS = "skitter_robots_read_total"
    DUPLICATES = "skitter_duplicate_bodies_total"
    NEAR_DUPLICATES = "skitter_near_duplicates_total"
    LINKS = "skitter_links_found_total"
    ADDED = "skitter_urls_added_total"
    ARCHIVED_BYTES = "skitter_archived_bytes_total"
    ITEMS = "skitter_items_total"
    ITEM_FAULTS = "skitter_item_faults_total"
    SCORED = "skitter_scored_pages_total"
    ON_TOPIC = "skitter_on_topic_pages_total"
    PARTS = "skitter_table_parts_total"
    STORED_SEGMENTS = "skitter_segments_stored_total"
    SPOOL = "skitter_spool_bytes"
    REUSED = "skitter_connections_reused_total"
    DNS_HITS = "skitter_dns_cache_hits_total"
    DNS_LOOKUPS = "skitter_dns_lookups_total"
    DNS_FAILURES = "skitter_dns_failures_total"
    DNS_MS = "skitter_dns_lookup_seconds_total"
    LOG_DROPPED = "skitter_log_lines_dropped_total"
    IN_FLIGHT = "skitter_requests_in_flight"
    LEASES = "skitter_leases_held"
    LONGEST_PULSE = "skitter_longest_pulse_seconds"
    LATENCY = "skitter_fetch_seconds"
    FETCHES = "skitter_fetches_total"
    ROBOTS_FETCHES = "skitter_robots_fetches_total"
    RETRIES = "skitter_retries_total"
    GAPS = "skitter_politeness_gaps_total"
    VIOLATIONS = "skitter_politeness_violations_total"
    LEASES_EXPIRED = "skitter_leases_expired_total"
    STALE = "skitter_stale_outcomes_total"
    DELIVERIES_REFUSED = "skitter_deliveries_refused_total"
    LEASES_REFUSED = "skitter_leases_refused_total"
    LOST = "skitter_fetches_lost_total"
    HELD = "skitter_pages_held"
    UNSTORED = "skitter_pages_unstored"
    URLS = "skitter_urls"
    REFUSED = "skitter_urls_refused"
    QUEUED = "skitter_queued_urls"
    HOSTS = "skitter_hosts"
    RENDERINGS = "skitter_renderings"
    RENDER_SECONDS = "skitter_rendering_seconds_total"
    RENDER_GAINED = "skitter_rendering_gained_urls_total"
    REVISITS = "skitter_revisits_total"
    WATCHED = "skitter_pages_watched"
    REVISITS_QUEUED = "skitter_revisits_queued"
    REVISITS_LATE = "skitter_revisits_late_seconds"
    REVISIT_PRICE = "skitter_revisit_price_seconds"
    REVISIT_BUDGET = "skitter_revisit_budget_per_second"
    FRESHNESS = "skitter_freshness_ratio"
    AUDITED = "skitter_audited_freshness_ratio"
    AUDIT_ERROR = "skitter_audited_freshness_error_ratio"
    COPY_AGE = "skitter_copy_age_seconds"
    FILTER_BYTES = "skitter_seen_filter_bytes"
    FILTER_FILL = "skitter_seen_filter_fill_ratio"
    FILTER_TRUSTED = "skitter_seen_filter_trusted_ratio"
    FILTER_MISTAKEN = "skitter_seen_filter_false_positive_ratio"
    WORKERS = "skitter_workers_live"
    SILENCE = "skitter_worker_silence_seconds"
    UNSYNCED_BYTES = "skitter_unsynced_bytes"
    UNSYNCED_SECONDS = "skitter_unsynced_seconds"
    DISK_FREE = "skitter_disk_free_bytes"
    PAUSED = "skitter_paused"
    CPU = "process_cpu_seconds_total"
    RSS = "process_resident_memory_bytes"
    DESCRIPTORS = "process_open_fds"
    STARTED = "process_start_time_seconds"


_COUNTER, _GAUGE = Kind.COUNTER, Kind.GAUGE
METRICS: dict[Metric, Described] = {
    Metric.PAGES: Described(_COUNTER, "pages", "Pages fetched and archived."),
    Metric.REQUISITES: Described(
        _COUNTER, "files", "What pages need to look as they do, fetched and archived (crawl.requisites)."
    ),
    Metric.RENDERED: Described(_COUNTER, "pages", "Pages whose rendering in a browser ended (crawl.render)."),
    Metric.REQUESTS: Described(
        _COUNTER, "requests", "Requests that got a response of any kind, robots.txt included.", of_crawl=True
    ),
    Metric.BYTES: Described(_COUNTER, "bytes", "Bodies received, as they crossed the wire.", of_crawl=True),
    Metric.RESPONSES: Described(
        _COUNTER, "responses", "Responses by class of status.", "status", STATUS_CLASSES, of_crawl=True
    ),
    Metric.FAILURES: Described(
        _COUNTER, "requests", "Requests without a usable answer.", "kind", tuple(FailureKind), of_crawl=True
    ),
    Metric.UNCHANGED: Described(_COUNTER, "responses", "Revisits answered with 304."),
    Metric.LOOKED_AGAIN: Described(
        _COUNTER,
        "requests",
        "For URLs that had an answer before, by what it showed.",
        "outcome",
        LOOKED_AGAIN,
    ),
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
    Metric.ITEMS: Described(
        _COUNTER, "items", "Made of pages by extractors (docs/plugins.md), and committed."
    ),
    Metric.ITEM_FAULTS: Described(
        _COUNTER,
        "pages",
        "Of which an extractor made nothing, because of a fault; once for each.",
        "kind",
        tuple(FaultKind),
    ),
    Metric.SCORED: Described(
        _COUNTER, "pages", "Judged by the topic of a focused crawl (docs/focus.md).", of_crawl=True
    ),
    Metric.ON_TOPIC: Described(
        _COUNTER, "pages", "Of them, about the topic; by scored pages, the harvest rate.", of_crawl=True
    ),
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
        _COUNTER, "seconds", "Spent waiting for DNS servers; by lookup, the mean time of one.", scale=0.001
    ),
    Metric.LOG_DROPPED: Described(_COUNTER, "lines", "Log lines that could not be written."),
    Metric.IN_FLIGHT: Described(_GAUGE, "requests", "Requests under way."),
    Metric.LEASES: Described(_GAUGE, "leases", "Hosts that are leased to a worker."),
    Metric.LONGEST_PULSE: Described(
        _GAUGE,
        "seconds",
        "The longest that one page, commit or pause of the process held up all others so far.",
        scale=0.001,
    ),
    Metric.LATENCY: Described(
        Kind.HISTOGRAM, "seconds", "From the end of a request to that of its response."
    ),
    Metric.FETCHES: Described(
        _COUNTER, "requests", "Requests settled, answered or not, robots.txt included.", of_crawl=True
    ),
    Metric.ROBOTS_FETCHES: Described(_COUNTER, "requests", "Of them, for a robots.txt.", of_crawl=True),
    Metric.RETRIES: Described(
        _COUNTER, "requests", "Failures after which the URL is tried again.", "kind", tuple(FailureKind)
    ),
    Metric.GAPS: Described(
        _COUNTER, "gaps", "Times between two requests to a host that were compared.", of_crawl=True
    ),
    Metric.VIOLATIONS: Described(
        _COUNTER, "gaps", "Of them, shorter than the host was promised. Must stay 0.", of_crawl=True
    ),
    Metric.LEASES_EXPIRED: Described(
        _COUNTER, "leases", "Workers that did not come back in time.", of_crawl=True
    ),
    Metric.STALE: Described(_COUNTER, "requests", "Outcomes that came too late to count.", of_crawl=True),
    Metric.DELIVERIES_REFUSED: Described(
        _COUNTER, "deliveries", "Deliveries of workers that no worker of ours could have made."
    ),
    Metric.LEASES_REFUSED: Described(
        _COUNTER, "leases", "Leases of others that a worker tried to settle, renew or release."
    ),
    Metric.LOST: Described(
        _COUNTER, "requests", "Whose records were gone before they were stored.", of_crawl=True
    ),
    Metric.HELD: Described(_GAUGE, "pages", "URLs whose last answer was a page, which is in the archive."),
    Metric.UNSTORED: Described(_GAUGE, "pages", "Of them, those that wait for upload to the object store."),
    Metric.URLS: Described(_GAUGE, "URLs", "Known, by state.", "state", STATES),
    Metric.REFUSED: Described(_GAUGE, "URLs", "Refused, by reason.", "reason", REASONS),
    Metric.QUEUED: Described(_GAUGE, "URLs", "Queued and not leased, by tier.", "tier", TIERS),
    Metric.HOSTS: Described(_GAUGE, "hosts", "Known, by standing.", "standing", STANDINGS),
    Metric.RENDERINGS: Described(
        _GAUGE,
        "pages",
        "To be rendered and rendered, by where they stand (docs/rendering.md).",
        "state",
        ("queued", "leased", "awaiting", "done", "skipped", "failed"),
    ),
    Metric.RENDER_SECONDS: Described(
        _COUNTER, "seconds", "That pages took in browsers, without their waits for answers.", of_crawl=True
    ),
    Metric.RENDER_GAINED: Described(
        _COUNTER, "URLs", "That nobody knew before a page was rendered.", of_crawl=True
    ),
    Metric.REVISITS: Described(
        _COUNTER,
        "visits",
        "Visits of pages that we had a copy of, by what they found.",
        "found",
        ("changed", "unchanged"),
        of_crawl=True,
    ),
    Metric.WATCHED: Described(_GAUGE, "pages", "With a date for their next visit (revisit.keep_fresh)."),
    Metric.REVISITS_QUEUED: Described(_GAUGE, "URLs", "Queued for another visit and not leased."),
    Metric.REVISITS_LATE: Described(_GAUGE, "seconds", "For which the first overdue visit has been so."),
    Metric.REVISIT_PRICE: Described(
        _GAUGE, "seconds", "Of freshness that a visit must be worth now; follows the budget."
    ),
    Metric.REVISIT_BUDGET: Described(_GAUGE, "visits/s", "Visits of known pages that there may be."),
    Metric.FRESHNESS: Described(
        _GAUGE,
        "ratio",
        "Of the watched pages that are expected to be current now; 0 while none is watched.",
        "by",
        FRESHNESS,
    ),
    Metric.AUDITED: Described(
        _GAUGE, "ratio", "The same by importance, as visits at random times found it; 0 before the first."
    ),
    Metric.AUDIT_ERROR: Described(_GAUGE, "ratio", "The standard error of that."),
    Metric.COPY_AGE: Described(_GAUGE, "seconds", "Since watched pages were last seen, on average."),
    Metric.FILTER_BYTES: Described(_GAUGE, "bytes", "RAM of the seen filter."),
    Metric.FILTER_FILL: Described(_GAUGE, "ratio", "Keys in the seen filter, of those it is made for."),
    Metric.FILTER_TRUSTED: Described(
        _GAUGE, "ratio", "Of the seen filter that answers; the rest asks the store."
    ),
    Metric.FILTER_MISTAKEN: Described(
        _GAUGE, "ratio", "New URLs that the seen filter thought known: each costs a read, and no URL."
    ),
    Metric.WORKERS: Described(_GAUGE, "workers", "That asked for work in the last minute."),
    Metric.SILENCE: Described(
        _GAUGE, "seconds", "Since the longest silent worker was heard of; 0 when all were in the last minute."
    ),
    Metric.UNSYNCED_BYTES: Described(_GAUGE, "bytes", "Of the archive that a power loss would take."),
    Metric.UNSYNCED_SECONDS: Described(_GAUGE, "seconds", "Since the oldest of them was written."),
    Metric.DISK_FREE: Described(_GAUGE, "bytes", "Free on the disk of the crawl's folder."),
    Metric.PAUSED: Described(_GAUGE, "bool", "1 while the operator holds the crawl."),
    Metric.CPU: Described(_COUNTER, "seconds", "CPU of the service's process."),
    Metric.RSS: Described(_GAUGE, "bytes", "RAM of the service's process."),
    Metric.DESCRIPTORS: Described(_GAUGE, "files", "Open in the service's process."),
    Metric.STARTED: Described(_GAUGE, "seconds", "When the service's process began, since the epoch."),
}


class Event(StrEnum):
    """The events of the log: one JSON object a line, `time`, `level` and `event` first."""

    CRAWL_STARTED = "crawl_started"
    CRAWL_RESUMED = "crawl_resumed"
    CRAWL_DRAINING = "crawl_draining"
    CRAWL_PAUSED = "crawl_paused"
    CRAWL_GOES_ON = "crawl_goes_on"
    CRAWL_ENDED = "crawl_ended"
    CRAWL_WAITS = "crawl_waits"
    FRONTIER_LOG = "frontier_log"
    COMMAND_FAILED = "command_failed"
    FETCH_FAILED = "fetch_failed"
    PAGE_UNREAD = "page_unread"
    EXTRACTOR_FAILED = "extractor_failed"
    RENDERING_FAILED = "rendering_failed"
    ROBOTS_UNREACHABLE = "robots_unreachable"
    URL_DEAD = "url_dead"
    HOST_GIVEN_UP = "host_given_up"
    LEASE_EXPIRED = "lease_expired"
    LOG_RESUMED = "log_resumed"
    UPLOAD_FAILED = "upload_failed"
    SEGMENTS_LOST = "segments_lost"
    BLOCKLIST_KEPT = "blocklist_kept"
    SERVER_JOINED = "server_joined"
    RULES_CHANGED = "rules_changed"
    URLS_CAME_BACK = "urls_came_back"
    SERVER_AWAY = "server_away"
    SERVER_DOUBTED = "server_doubted"
    SERVER_BACK = "server_back"
    DELIVERIES_DROPPED = "deliveries_dropped"
    DELIVERY_REFUSED = "delivery_refused"
    LEASE_REFUSED = "lease_refused"
    WORKERS_STARTED = "workers_started"
    WORKER_ENDED = "worker_ended"


EVENTS: dict[Event, str] = {
    Event.CRAWL_STARTED: "A new crawl begins: folder, seeds, version.",
    Event.CRAWL_RESUMED: "An earlier crawl goes on: folder, what it had.",
    Event.CRAWL_DRAINING: "No new requests; those in flight are being finished, and why.",
    Event.CRAWL_PAUSED: "There is no room on the disk, or too much waits for upload: why, bytes needed and free.",
    Event.CRAWL_GOES_ON: "There is room again.",
    Event.CRAWL_ENDED: "The crawl ended: how, and its figures.",
    Event.CRAWL_WAITS: "Nothing can be asked for a while: until when, and which hosts are asked then.",
    Event.FRONTIER_LOG: "The frontier's log is away, so nothing is committed, and why; or it answers again.",
    Event.COMMAND_FAILED: "With --log-json, why a command ended: message, exit code.",
    Event.FETCH_FAILED: "A request had no usable answer: URL, host, key, kind, detail, status.",
    Event.PAGE_UNREAD: "A page is archived but could not be read (to its end), as a broken PDF: URL, reason.",
    Event.EXTRACTOR_FAILED: "An extractor made nothing of a page: extractor, kind of fault, reason, URL key.",
    Event.RENDERING_FAILED: "Nothing came of a page's rendering: URL, ending, reason.",
    Event.ROBOTS_UNREACHABLE: "A robots.txt could not be had, so its host is not crawled for now.",
    Event.URL_DEAD: "A URL used up its attempts and waits for the operator.",
    Event.HOST_GIVEN_UP: "A host failed too often; what waits for it becomes dead letters: host, last failure.",
    Event.LEASE_EXPIRED: "A worker did not come back in time; its URLs are queued again.",
    Event.LOG_RESUMED: "The log can be written again: lines lost meanwhile.",
    Event.UPLOAD_FAILED: "The object store does not take what is uploaded, and why; it is tried again.",
    Event.BLOCKLIST_KEPT: "A changed blocklist cannot be read, and why; its last good reading stays in force.",
    Event.RULES_CHANGED: "Settings differ from the last run's: refused URLs that are judged again, by reason.",
    Event.URLS_CAME_BACK: "Refused URLs went back to their queues, as the rule changed: reason, how many.",
    Event.SEGMENTS_LOST: "Segments were gone before they were stored: how many, and requests to make again.",
    Event.SERVER_JOINED: "A worker was taken on by its server: worker, server.",
    Event.SERVER_DOUBTED: "A worker does not take over a setting of its server, or reaches it unencrypted: why.",
    Event.SERVER_AWAY: "A worker's server does not answer, and why: no requests are made until it does.",
    Event.SERVER_BACK: "The server answers again: what waits to be delivered.",
    Event.DELIVERY_REFUSED: "A worker delivered what no worker of ours could have made: who, and what is wrong.",
    Event.LEASE_REFUSED: "A worker tried to settle, renew or release a lease that it was never given: who, host.",
    Event.DELIVERIES_DROPPED: "Fetched, but the server was away too long or would not have it: how many, why.",
    Event.WORKERS_STARTED: "The crawl's own process was busy all the time: so many others take over.",
    Event.WORKER_ENDED: "A worker process of the crawl ended without being asked to: its exit code.",
}


class Level(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


# Warnings cost pages or time and mend themselves; errors wait for somebody. All other events are information.
LEVELS: dict[Event, Level] = {
    **dict.fromkeys(
        (
            Event.CRAWL_PAUSED,
            Event.FETCH_FAILED,
            Event.PAGE_UNREAD,
            Event.ROBOTS_UNREACHABLE,
            Event.LEASE_EXPIRED,
            Event.LOG_RESUMED,
            Event.UPLOAD_FAILED,
            Event.FRONTIER_LOG,
            Event.SEGMENTS_LOST,
            Event.BLOCKLIST_KEPT,
            Event.SERVER_AWAY,
            Event.SERVER_DOUBTED,
            Event.DELIVERIES_DROPPED,
            Event.WORKER_ENDED,
        ),
        Level.WARNING,
    ),
    **dict.fromkeys((Event.COMMAND_FAILED, Event.URL_DEAD, Event.HOST_GIVEN_UP), Level.ERROR),
}


def status_class(status: int) -> str:
    return STATUS_CLASSES[status // 100 - 1] if 100 <= status < 600 else "other"


class Telemetry:
    """The counters of one process."""

    def __init__(self, started: float, max_pages: int = 0, concurrency: int = 0) -> None:
        """`concurrency` is how many requests may be in flight; 0 where nobody here knows."""
        self.started = started
        self.concurrency = concurrency
        self.max_pages = max_pages
        self._values = {
            metric: 0
            for metric, about in METRICS.items()
            if not about.label and about.kind is not Kind.HISTOGRAM
        }
        self._labelled = {
            metric: dict.fromkeys(about.labels, 0) for metric, about in METRICS.items() if about.label
        }
        self._rate = Rate(started)
        self._slow = SlowHosts()
        self.last = LastFetches()
        self.latency = Histogram(LATENCY_BOUNDS)
        self._extractors: dict[str, list[int]] = {}

    def extracted(self, extractor: str, items: int, fault: str) -> None:
        """What an extractor made of one page: items, or a fault of some kind."""
        self._values[Metric.ITEMS] += items
        counts = self._extractors.setdefault(extractor, [0, 0])
        counts[0] += items
        if fault:
            counts[1] += 1
            self._labelled[Metric.ITEM_FAULTS][fault] += 1

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
        self.latency.observe(ms / 1000)
        self._slow.record(host, ms, now)

    def page(self, now: float) -> None:
        self._values[Metric.PAGES] += 1
        self._rate.add(now)

    def failure(self, kind: FailureKind) -> None:
        self._labelled[Metric.FAILURES][kind] += 1

    def rate(self, now: float) -> float:
        """Pages a second, lately."""
        return self._rate.at(now)

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
            rendered=self.value(Metric.RENDERED),
            requests=self.value(Metric.REQUESTS),
            bytes=self.value(Metric.BYTES),
            rate_now=self._rate.at(now),
            rate_mean=pages / elapsed if elapsed > 0 else 0.0,
            in_flight=self.value(Metric.IN_FLIGHT),
            refused=sum(known["refusals"].values()),
            errors=self.labelled(Metric.FAILURES),
            statuses={label: n for label, n in self._labelled[Metric.RESPONSES].items() if n},
            slowest=self._slow.shown(now),
            max_pages=self.max_pages,
            extractors={name: (items, faults) for name, (items, faults) in self._extractors.items()},
            dns_hits=self.value(Metric.DNS_HITS),
            dns_lookups=self.value(Metric.DNS_LOOKUPS),
            dns_ms=self.value(Metric.DNS_MS),
            reused=self.value(Metric.REUSED),
            duplicates=self.value(Metric.DUPLICATES),
            looked_again=self.labelled(Metric.LOOKED_AGAIN),
            archived_bytes=self.value(Metric.ARCHIVED_BYTES),
            log_dropped=self.value(Metric.LOG_DROPPED),
            longest_pulse_ms=self.value(Metric.LONGEST_PULSE),
        )
