"""The state of a crawl at one moment, for displays, and the ways in which a crawl ends.

Values only; `telemetry` makes them from its counters and the frontier's figures.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class FrontierFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures that only the frontier has; `refusals` is by reason, for the whole crawl. `came_back` are refused
    URLs that went back to a queue in this run, by the reason that no longer holds. `verdicts` on traps are in
    force, and `refusing` of them refuse a URL or more. `over_defaults` are refusals by limits that nobody chose,
    by reason. `unrendered` pages should have been rendered and could not be.
    Of a focused crawl `scored` pages were judged, and `on_topic` of them are about it."""

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
    came_back: dict[str, int] = {}
    verdicts: int = 0
    refusing: int = 0
    unrendered: int = 0
    over_defaults: dict[str, int] = {}
    scored: int = 0
    on_topic: int = 0
    next_at: float | None = None


class Phase(StrEnum):
    CRAWLING = "crawling"
    DRAINING = "draining"
    WAITING = "waiting"
    PAUSED = "paused"
    DONE = "done"


class Ended(StrEnum):
    """How a run of the worker's loop ended."""

    COMPLETE = "complete"
    NO_SEED = "no_seed_fetched"
    """Nothing is left to do, and nothing could be done."""
    LIMIT = "limit"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The crawl at one moment. Counts of pages, requests and bytes are of this run; those of the frontier are
    of the whole crawl. `next_at` is when the next host is ready. `extractors` are those of users, each with its
    items and its faults."""

    at: float
    phase: Phase = Phase.CRAWLING
    elapsed: float = 0.0
    pages: int = 0
    requisites: int = 0
    rendered: int = 0
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
    came_back: dict[str, int] = {}
    verdicts: int = 0
    refusing: int = 0
    unrendered: int = 0
    over_defaults: dict[str, int] = {}
    scored: int = 0
    on_topic: int = 0
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
    looked_again: dict[str, int] = {}
    archived_bytes: int = 0
    log_dropped: int = 0
    longest_pulse_ms: int = 0
    headline: str = ""
    """How the crawl does, in a sentence (`headline.py`)."""
    last: list[tuple[str, str]] = []
    """The latest requests, newest first: what came of each, and its URL."""
    last_error: str = ""
    extractors: dict[str, tuple[int, int]] = {}
    left: tuple[float, float, float] | None = None
    """Seconds that are left: at least, likely and at most; None where nothing can be said."""
