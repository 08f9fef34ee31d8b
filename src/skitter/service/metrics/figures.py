"""What a scrape is told, name by name.

Three sources, each the best for its names: the frontier's ledger (exact, of the whole crawl), the watch (what was
settled since this process began), and the process itself. Which names there are is `telemetry`'s to say.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from skitter.clock import SystemClock
from skitter.frontier.base import Freshness, RenderFigures, RevisitFigures, Stats
from skitter.schedule.revisit import DAY
from skitter.service.metrics.watch import WATCHED, Watch
from skitter.telemetry import FRESHNESS, METRICS, REASONS, STATUS_CLASSES, TIERS, Kind, Metric, Telemetry

# Where the system does not say when a process began.
_IMPORTED_AT = SystemClock().now()
Told = dict[Metric, dict[str, float]]
"""Of each metric its values by label, "" for one without."""


def told(
    telemetry: Telemetry, watch: Watch, stats: Stats, *, folder: Path, is_paused: bool, now: float
) -> Told:
    """Everything but the histogram, in the order of the table."""
    found: dict[Metric, dict[str, float]] = {}
    counted = (sample for sample in watch.counted.samples() if sample[0] in WATCHED)
    for metric, label, value in (*telemetry.samples(), *counted):
        found.setdefault(metric, {})[label] = value * METRICS[metric].scale
    found |= {metric: {"": value} for metric, value in _of_ledger(stats)}
    found |= _by_label(stats)
    found |= _of_revisits(stats.revisits, watch.freshness.last)
    found |= _of_renderings(stats.renderings)
    unsynced, seconds = watch.unsynced(now)
    single = {
        Metric.WORKERS: watch.roster.live(now),
        Metric.SILENCE: watch.roster.longest_silence(now),
        Metric.UNSYNCED_BYTES: unsynced,
        Metric.UNSYNCED_SECONDS: seconds,
        Metric.DISK_FREE: free_bytes(folder),
        Metric.PAUSED: int(is_paused),
        **_of_process(),
    }
    found |= {metric: {"": value} for metric, value in single.items()}
    return {metric: found[metric] for metric, about in METRICS.items() if about.kind is not Kind.HISTOGRAM}


def _of_ledger(stats: Stats) -> Iterator[tuple[Metric, float]]:
    yield Metric.REQUESTS, sum(stats.statuses.values())
    yield Metric.BYTES, stats.bytes
    yield Metric.FETCHES, stats.fetches
    yield Metric.ROBOTS_FETCHES, stats.robots_fetches
    yield Metric.GAPS, stats.politeness.gaps
    yield Metric.VIOLATIONS, stats.politeness.violations
    yield Metric.LEASES_EXPIRED, stats.leases_expired
    yield Metric.STALE, stats.stale_outcomes
    yield Metric.LOST, stats.lost
    yield Metric.SCORED, stats.scored
    yield Metric.ON_TOPIC, stats.on_topic
    yield Metric.LEASES, stats.hosts["active"]
    yield Metric.HELD, stats.pages
    yield Metric.UNSTORED, stats.unstored
    if (seen := stats.seen_filter) is not None:
        yield Metric.FILTER_BYTES, seen.bytes
        yield Metric.FILTER_FILL, seen.fill
        yield Metric.FILTER_TRUSTED, seen.trusted
        yield Metric.FILTER_MISTAKEN, seen.false_positive_rate


def _by_label(stats: Stats) -> dict[Metric, dict[str, float]]:
    tiers = dict(zip(TIERS, stats.tiers, strict=True))
    return {
        Metric.RESPONSES: _closed(stats.statuses, STATUS_CLASSES),
        Metric.FAILURES: _closed(stats.failures, METRICS[Metric.FAILURES].labels),
        Metric.REFUSED: _closed(stats.refusals, REASONS),
        Metric.URLS: _closed(stats.urls, METRICS[Metric.URLS].labels),
        Metric.QUEUED: _closed(tiers, TIERS),
        Metric.HOSTS: _closed(stats.hosts, METRICS[Metric.HOSTS].labels),
    }


def _of_renderings(figures: RenderFigures | None) -> dict[Metric, dict[str, float]]:
    states = METRICS[Metric.RENDERINGS].labels
    return {
        Metric.RENDERINGS: {state: float(getattr(figures, state)) if figures else 0.0 for state in states},
        Metric.RENDER_SECONDS: {"": figures.seconds if figures else 0.0},
        Metric.RENDER_GAINED: {"": float(figures.gained) if figures else 0.0},
    }


_NOT_KEPT_FRESH = RevisitFigures(
    watched=0, queued=0, price=0.0, budget=0.0, visits=0, changed=0, late=0.0, audits=0
)


def _of_revisits(
    figures: RevisitFigures | None, freshness: Freshness | None
) -> dict[Metric, dict[str, float]]:
    found = figures or _NOT_KEPT_FRESH
    single = {
        Metric.WATCHED: found.watched,
        Metric.REVISITS_QUEUED: found.queued,
        Metric.REVISITS_LATE: found.late,
        Metric.REVISIT_PRICE: found.price * DAY,
        Metric.REVISIT_BUDGET: found.budget,
        Metric.AUDITED: found.audited_freshness or 0.0,
        Metric.AUDIT_ERROR: found.audit_error or 0.0,
        Metric.COPY_AGE: (freshness.age or 0.0) * DAY if freshness is not None else 0.0,
    }
    shares: dict[str, float] = dict.fromkeys(FRESHNESS, 0.0)
    if freshness is not None:
        shares |= {"importance": freshness.expected or 0.0, "plain": freshness.expected_plain or 0.0}
        shares |= freshness.by_tier
    visits: dict[str, float] = {"changed": found.changed, "unchanged": found.visits - found.changed}
    told = {metric: {"": float(value)} for metric, value in single.items()}
    return {**told, Metric.FRESHNESS: shares, Metric.REVISITS: visits}


def _closed(counts: Mapping[str, int], labels: tuple[str, ...]) -> dict[str, float]:
    """Whatever an older version of the crawl counted, no label is told but those of the table."""
    known: dict[str, float] = {str(label): counts.get(label, 0) for label in labels}
    if "other" in known:
        known["other"] = sum(counts.values()) - sum(known.values()) + known["other"]
    return known


def _of_process() -> dict[Metric, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        Metric.CPU: used.ru_utime + used.ru_stime,
        Metric.RSS: _resident(),
        Metric.DESCRIPTORS: _descriptors(),
        Metric.STARTED: _began(),
    }


def _descriptors() -> int:
    # Linux and others have it under /dev too; /proc is Linux's alone.
    return len(os.listdir("/dev/fd"))


@cache
def _began() -> float:
    """proc(5): field 22 of stat is in ticks since the machine booted; the command's name may hold spaces."""
    if not os.path.exists("/proc/self/stat"):
        return _IMPORTED_AT
    ticks = int(Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19])
    lines = Path("/proc/stat").read_bytes().splitlines()
    booted = next(int(line.split()[1]) for line in lines if line.startswith(b"btime"))
    return booted + ticks / os.sysconf("SC_CLK_TCK")


def _resident() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:  # elsewhere only the most that it ever was is to be had, in bytes on macOS
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def free_bytes(folder: Path) -> int:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return 0
    return disk.f_bavail * disk.f_frsize
