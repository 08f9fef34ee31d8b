"""Which region a host is asked from: the one that gets its answers soonest. Pure arithmetic on what was measured.

A worker's name may begin with its region (`east@machine-7`). A host is leased to one worker at a time, wherever
that is, so politeness does not depend on any of this.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

_MARK = "@"
LONGEST = 32
# A region that is not much slower than the nearest may have the host as well: answers wobble.
_NEAR = 1.25
_NEAR_SECONDS = 0.010
# A host that has been ready for so long (s) goes to whoever asks.
PATIENCE = 20.0
# Quick answers say how far away a host is, slow ones what it had to do: they count less.
_QUICKER, _SLOWER = 0.5, 0.1


def region_of(worker: str) -> str:
    """Of a worker's name, without what the server puts before it (`remote:TOKEN/`); empty when it has none."""
    before, mark, _ = worker.partition(_MARK)
    return before.rpartition(":")[2].rpartition("/")[2] if mark else ""


def name_in(region: str, name: str) -> str:
    return f"{region}{_MARK}{name}" if region else name


def measured(before: float | None, seconds: float) -> float:
    """How long answers take there, all in all."""
    if before is None:
        return seconds
    return before + (_QUICKER if seconds < before else _SLOWER) * (seconds - before)


def is_near(region: str, known: Mapping[str, float], live: Collection[str]) -> bool:
    """Whether a host is to be asked from a region: it is the nearest of those with live workers, or nearly, or
    nobody has tried yet."""
    mine = known.get(region)
    if mine is None:
        return True
    best = min((seconds for name, seconds in known.items() if name in live), default=mine)
    return mine <= max(best * _NEAR, best + _NEAR_SECONDS)
