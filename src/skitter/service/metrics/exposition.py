"""The figures of a scrape in the two formats that Prometheus and its kin read.

Written by hand rather than with prometheus_client: names, kinds and closed sets of labels are in
`telemetry.METRICS` already, and a second registry would have to be kept like the first. What is left is a format.
"""

from __future__ import annotations

from collections.abc import Iterator

from skitter.recent import Histogram
from skitter.service.metrics.figures import Told
from skitter.telemetry import METRICS, Kind, Metric

PLAIN = "text/plain; version=0.0.4; charset=utf-8"
OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_TOTAL = "_total"


def exposition(figures: Told, latency: Histogram, *, is_open: bool) -> str:
    """The text format 0.0.4, or OpenMetrics 1.0: there a counter's family goes without `_total`, and a last line
    tells that nothing is missing."""
    lines: list[str] = []
    for metric, about in METRICS.items():
        is_counter = about.kind is Kind.COUNTER
        family = metric.removesuffix(_TOTAL) if is_open and is_counter else metric.value
        lines += (f"# HELP {family} {about.help}", f"# TYPE {family} {about.kind}")
        if about.kind is Kind.HISTOGRAM:
            lines += _buckets(metric, latency)
        else:
            for label, value in figures[metric].items():
                series = f'{metric}{{{about.label}="{label}"}}' if label else metric.value
                lines.append(f"{series} {_number(value)}")
    if is_open:
        lines.append("# EOF")
    return "\n".join(lines) + "\n"


def _buckets(metric: Metric, histogram: Histogram) -> Iterator[str]:
    so_far = 0
    for bound, count in zip((*histogram.bounds, "+Inf"), histogram.counts, strict=True):
        so_far += count
        yield f'{metric}_bucket{{le="{bound}"}} {so_far}'
    yield f"{metric}_sum {_number(histogram.sum)}"
    yield f"{metric}_count {so_far}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def prefers_open(accept: str) -> bool:
    """Whether an Accept header asks for OpenMetrics rather than the older text."""
    wishes: dict[str, float] = {}
    for wish in accept.split(","):
        media, *parameters = (part.strip().lower() for part in wish.split(";"))
        weight = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        wishes[media] = max(wishes.get(media, 0.0), _weight(weight))
    plain = max(wishes.get("text/plain", 0.0), wishes.get("text/*", 0.0))
    return wishes.get("application/openmetrics-text", 0.0) > plain


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0
