"""Regions for the operator: what workers of each did, and from where a host is asked. Nothing here writes."""

from __future__ import annotations

from skitter.frontier.base import RegionFigures
from skitter.frontier.rows import HostRow, Tally
from skitter.schedule.regions import region_of


def region_figures(tally: Tally) -> dict[str, RegionFigures]:
    return {
        name: RegionFigures(requests=requests, mean_seconds=seconds / max(1, requests), bytes=size)
        for name, (requests, seconds, size) in tally.regions.items()
    }


def region_words(host: HostRow) -> str:
    """How long its answers take by region, the nearest first, and from where it is asked now."""
    if not host.regions:
        return ""
    now = region_of(host.lease.worker) if host.lease is not None else ""
    near = sorted(host.regions.items(), key=lambda item: item[1])
    told = ", ".join(f"{name} {seconds * 1000:.3g} ms" for name, seconds in near)
    return f"; answers by region: {told}" + (f" (now asked from {now})" if now else "")
