"""The crawl at one moment, for whoever shows it, and how it comes to its end.

Made by `telemetry` of what it counted and of what the frontier knows; values only.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


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
