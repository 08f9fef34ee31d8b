"""What a crawl made of the trap web, by the web's own log: honest content seen, and requests wasted.

Pure. On a trap host everything but the first view of a real page is a waste. On an honest host nothing is: a
further view of the same content need not be fetched, and may be. robots.txt is left out of all counts.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from skitter.testing.traps.log import Row
from skitter.testing.traps.plan import TrapPlan
from skitter.testing.traps.site import ROBOTS

LEAST_HONEST = 0.99
MOST_TRAPPED = 0.03


class Tally(msgspec.Struct, kw_only=True):
    """Of one site, of a kind or of all: contents and requests."""

    name: str
    trap: bool = False
    hosts: int = 1
    honest: int = 0
    """Contents that the plan knows of."""
    seen: int = 0
    """Of these, how many the crawl has seen a view of."""
    repeats: int = 0
    """Further views of them, on honest hosts."""
    wasted: int = 0
    """Requests spent in the trap."""
    others: int = 0
    """Answers of honest hosts without a page."""

    @property
    def requests(self) -> int:
        return self.seen + self.repeats + self.wasted + self.others

    @property
    def share(self) -> float:
        return self.seen / self.honest if self.honest else 1.0

    def add(self, other: Tally) -> None:
        self.hosts += other.hosts
        for name in ("honest", "seen", "repeats", "wasted", "others"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def tallies(plan: TrapPlan, rows: Iterable[Row]) -> dict[str, Tally]:
    """By the name of the site. Hosts that the web does not have are tallied under ""."""
    found = {
        site.name: Tally(name=site.name, trap=site.trap, honest=len(site.contents())) for site in plan.sites
    }
    seen: dict[str, set[str]] = {}
    for row in rows:
        if row.target == ROBOTS:
            continue
        if row.site not in found:
            found[row.site] = Tally(name=row.site, hosts=0)
        _count(found[row.site], row, seen.setdefault(row.site, set()))
    return found


def _count(tally: Tally, row: Row, seen: set[str]) -> None:
    if row.meaning and row.meaning not in seen:
        seen.add(row.meaning)
        tally.seen += 1
    elif tally.trap:
        tally.wasted += 1
    elif row.meaning:
        tally.repeats += 1
    else:
        tally.others += 1


def by_kind(plan: TrapPlan, found: dict[str, Tally]) -> list[Tally]:
    """Traps first, in the order of the plan."""
    kinds: dict[str, Tally] = {}
    for site in plan.sites:
        kind = kinds.setdefault(site.kind, Tally(name=site.kind, trap=site.trap, hosts=0))
        kind.add(found[site.name])
    return list(kinds.values())


def whole(found: dict[str, Tally]) -> Tally:
    everything = Tally(name="all", hosts=0)
    for tally in found.values():
        everything.add(tally)
    return everything


def faults(everything: Tally) -> list[str]:
    """Why a crawl fails, in words; empty when it does not."""
    wrong = []
    if everything.share < LEAST_HONEST:
        wrong.append(f"honest content seen: {everything.share:.2%}, at least {LEAST_HONEST:.0%} is due")
    trapped = trapped_share(everything)
    if trapped >= MOST_TRAPPED:
        wrong.append(f"requests spent in traps: {trapped:.2%}, less than {MOST_TRAPPED:.0%} is allowed")
    return wrong


def trapped_share(everything: Tally) -> float:
    return everything.wasted / max(1, everything.requests)
