"""Figures and texts as people read them, for the display and the summary.

No I/O, no clock. `plain` is the border between the web and the terminal: host names, titles and
errors are written by strangers and must not reach it any other way.
"""

from __future__ import annotations

import time
from collections import deque

from skitter.telemetry import Phase, Snapshot

LONGEST_NOTE = 1_000


def plain(text: str, most: int = 200) -> str:
    """Text from anywhere, harmless to a terminal: no control, format or unassigned characters."""
    text = text[: most + 1]
    shown = text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)
    return shown if len(shown) <= most else shown[: most - 3] + "..."


def size(count: float) -> str:
    """Bytes as people say them: 999 B, 3.4 MB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 999.5 or unit == "TB":
            break
        count /= 1000
    return f"{count:,.0f} {unit}" if unit == "B" or count >= 99.95 else f"{count:.1f} {unit}"


def span(seconds: float) -> str:
    """A time as people say it: 0.4 s, 42 s, 3 m 05 s, 1 h 02 m, 3 d 04 h."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    for unit, large, small, small_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= unit:
            return f"{whole // unit} {large} {whole % unit // small:02d} {small_unit}"
    return f"{whole} s"


def rate(pages: float) -> str:
    return f"{pages:,.0f}/s" if pages >= 99.5 else f"{pages:.1f}/s"


def amounts(counts: dict[str, int], most: int = 6) -> str:
    """`scope 1,200, depth 30`, the largest first; what does not fit in `most` is added up."""
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    parts = [f"{plain(name, 40).replace('_', ' ')} {count:,}" for name, count in ranked[:most]]
    rest = sum(count for _, count in ranked[most:])
    return ", ".join([*parts, f"others {rest:,}"] if rest else parts)


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


# What refused a URL, where that is not the name of its reason.
_REFUSED_BY = {
    "excluded": "include or exclude",
    "length": "their length",
    "redirects": "the limit of redirects",
    "requisite": "requisites = false",
    "blocked": "a blocked host",
    "blocklist": "a blocklist",
    "trap": "a verdict on a trap",
    "type_unwanted": "content type",
}


def refused_by(reason: str, count: int) -> str:
    return f"{counted(count, 'URL')} refused by {_REFUSED_BY.get(reason, plain(reason, 40))}"


def moment(at: float, now: float) -> str:
    return f"in {span(at - now)} ({time.strftime('%Y-%m-%d %H:%M', time.localtime(at))})"


class TimeLeft:
    """How long the crawl still takes, when that can be known: a page limit, or a queue that shrinks."""

    WINDOW = 30.0
    NEEDED = 8.0
    TOO_SLOW = 0.001

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def seen(self, snapshot: Snapshot) -> None:
        if not self._seen or snapshot.at - self._seen[-1][0] >= 1.0:
            self._seen.append((snapshot.at, snapshot.queued))
        while snapshot.at - self._seen[0][0] > self.WINDOW:
            self._seen.popleft()

    def seconds(self, snapshot: Snapshot) -> float | None:
        if snapshot.phase is Phase.DONE:
            return None
        known = [left for left in (self._to_limit(snapshot), self._to_empty(snapshot)) if left is not None]
        return min(known, default=None)

    def _to_limit(self, snapshot: Snapshot) -> float | None:
        if not snapshot.max_pages or snapshot.rate_now <= self.TOO_SLOW:
            return None
        return max(0, snapshot.max_pages - snapshot.pages_in_all) / snapshot.rate_now

    def _to_empty(self, snapshot: Snapshot) -> float | None:
        """Queue over the speed at which it shrinks: pages that are still being found count against it."""
        if not self._seen or snapshot.at - self._seen[0][0] < self.NEEDED:
            return None
        begun, queued = self._seen[0]
        shrunk = (queued - snapshot.queued) / (snapshot.at - begun)
        return snapshot.queued / shrunk if shrunk > self.TOO_SLOW else None

    def words(self, snapshot: Snapshot) -> str:
        if snapshot.left is not None and snapshot.phase is not Phase.DONE:
            low, likely, high = snapshot.left
            return f"about {span(likely)} ({span(low)} to {span(high)})"
        left = self.seconds(snapshot)
        if left is not None:
            return f"about {span(left)}"
        return "unknown, still finding pages" if snapshot.queued else "unknown"


def phase_words(now: Snapshot) -> str:
    match now.phase:
        case Phase.DRAINING:
            return f"finishing {counted(now.in_flight, 'request')} in flight"
        case Phase.WAITING if now.next_at is not None:
            return f"waiting for the next host, ready in {span(now.next_at - now.at)}"
        case Phase.WAITING:
            return "waiting for the next host"
        case Phase.PAUSED:
            return "paused" if now.headline else "paused: no room left on the disk"
        case Phase.DONE:
            return "done"
    return "crawling"
