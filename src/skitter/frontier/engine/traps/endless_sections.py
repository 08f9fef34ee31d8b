"""Sections of a host that may have no end: how they grow, and the depth probes that look for an end.

Runs in the transaction that settles a page, after its links were admitted, for one page in four. While depth
probes are under way it runs for every page of the host, and its leases are short, so that a probe of ten links
costs about ten pages. A depth probe moves one URL of the section to the head of its host's queue; on a section
that has an end this changes only the order. Never fetches, and never admits.
"""

from __future__ import annotations

from collections.abc import Sequence

from skitter.frontier.engine.traps import verdicts
from skitter.frontier.engine.traps.listings import is_of_entries
from skitter.frontier.link_batches import keys_of, urls_of
from skitter.frontier.rows import HostRow, UrlRow
from skitter.frontier.tables.transaction import Transaction
from skitter.frontier.tables.trap_tables import evidence, get_or_begin_evidence, write_evidence
from skitter.frontier.tables.url_patterns import subject_key
from skitter.model import Discovered, LinkBatch, UrlKey, UrlState
from skitter.schedule.depth_probes import (
    DEPTH_PROBES,
    ONE_IN,
    SELDOM_ONE_IN,
    account_growth,
    advance_depth_probe,
    count_met_again,
    forget_half,
    has_an_end,
    is_endless,
    is_growing,
    leads_on,
    wants_depth_probe,
)
from skitter.schedule.kinds import KINDS
from skitter.schedule.priority import SEED_PRIORITY, tier_of
from skitter.schedule.traps import TAG, Evidence, Level, is_contradicted
from skitter.urls.canonical import host_id
from skitter.urls.skeleton import section

# A host with fewer pages is small, whatever it leads to.
_GROWN_UP = 16
# A depth probe that brought no page within so many pages of its host is lost: denied, refused or failed.
_PAGES_UNTIL_LOST = 32
# While depth probes are under way, one lease takes so many URLs of the host, those of this tier first.
TASKS_WHILE_PROBING = DEPTH_PROBES
DEPTH_PROBE_TIER = tier_of(SEED_PRIORITY)


def is_looked_at(host: HostRow, row: UrlRow) -> bool:
    """Whether the page counts for its section. Samples always do: they may contradict a verdict."""
    if not KINDS[row.found.kind].is_page:
        return False
    return bool(host.novelty.depth_probing or row.trap) or (
        host.novelty.pages >= _GROWN_UP and host.novelty.pages % ONE_IN == 0
    )


def section_key(ident: bytes, name: str) -> bytes:
    return subject_key(ident, "section " + name)


def learn(
    tx: Transaction,
    host: HostRow,
    key: bytes,
    row: UrlRow,
    link_batches: Sequence[LinkBatch],
    fresh: Sequence[Discovered],
    already_sent_here: bytes,
) -> None:
    """Count a settled page for its section. `link_batches` are all its links, `fresh` those that were new;
    `already_sent_here` are tags of links that the worker left out (`Fetched`)."""
    is_probing = host.novelty.depth_probing > 0
    host.novelty.depth_probing -= is_probing
    name = section(row.url)
    subject = section_key(host_id(host.host), name)
    inside = _inside(fresh, name)
    # entries that lead to nothing new say nothing of the end: what leads to them has one, or has none
    new = [link for link in inside if not is_of_entries(tx, host, link)]
    seen = evidence(tx.cache, subject)
    if seen is None:
        # a section begins with a page that leads to more of it: most pages right under the root do not
        if not new:
            return
        seen = get_or_begin_evidence(tx.cache, subject, name[len(host.host) :] + "**", Level.SECTION)
    if has_an_end(seen):
        if host.novelty.pages % SELDOM_ONE_IN:
            return
        forget_half(seen)
    if seen.depth_probes and not is_probing:
        seen.depth_probes.clear()
    is_depth_probe = key in seen.depth_probes
    if row.answer.status < 300 or is_depth_probe:
        elsewhere = not is_depth_probe and is_growing(seen) and _is_from_elsewhere(tx, row, name)
        met = (
            count_met_again(seen, _known(link_batches, inside, name, row, already_sent_here))
            if leads_on(seen)
            else None
        )
        account_growth(seen, len(new), met, from_elsewhere=elsewhere)
        _probe_depth(tx, host, key, seen, new)
        write_evidence(tx, subject, seen)
    _judge(tx, host, subject, seen, row.url)


def _inside(links: Sequence[Discovered], name: str) -> list[Discovered]:
    return [link for link in links if KINDS[link.kind].is_page and link.url.startswith(name)]


def _known(
    link_batches: Sequence[LinkBatch],
    new: Sequence[Discovered],
    name: str,
    row: UrlRow,
    already_sent_here: bytes,
) -> list[bytes]:
    """Tags of the known pages of the section that the page links, without its parent and the folders above it."""
    others = {row.found.parent, *[link.key for link in new]}
    known = [
        key[-TAG:]
        for link_batch in link_batches
        if KINDS[link_batch.kind].is_page
        for key, url in zip(keys_of(link_batch), urls_of(link_batch), strict=True)
        if url.startswith(name) and key not in others and not row.url.startswith(url)
    ]
    told = [already_sent_here[at : at + TAG] for at in range(0, len(already_sent_here), TAG)]
    return known + [tag for tag in told if not row.found.parent or tag != row.found.parent[-TAG:]]


def _is_from_elsewhere(tx: Transaction, row: UrlRow, name: str) -> bool:
    """Whether it was found in another section, on another host or in a sitemap."""
    above = tx.url(row.found.parent) if row.found.parent else None
    return above is None or not above.url.startswith(name)


def _probe_depth(tx: Transaction, host: HostRow, key: bytes, seen: Evidence, new: list[Discovered]) -> None:
    if key in seen.depth_probes:
        below = _next(tx, new)
        advance_depth_probe(seen, key, len(new), below)
        host.novelty.depth_probing = _PAGES_UNTIL_LOST if seen.depth_probes else 0
    elif new and wants_depth_probe(seen) and (below := _next(tx, new)) is not None:
        seen.depth_probes[below] = 0
        host.novelty.depth_probing = _PAGES_UNTIL_LOST
    else:
        return
    if below is not None and below in seen.depth_probes and (row := tx.url(below)) is not None:
        tx.reprioritise(below, row, SEED_PRIORITY)


def _next(tx: Transaction, new: list[Discovered]) -> UrlKey | None:
    """The page to which a depth probe goes on: the first by key. None when the depth limit refused them all."""
    for key in sorted(link.key for link in new):
        row = tx.url(key)
        if row is not None and row.state == UrlState.QUEUED:
            return key
    return None


def _judge(tx: Transaction, host: HostRow, subject: bytes, seen: Evidence, url: str) -> None:
    if is_contradicted(seen):
        verdicts.end(tx, seen.trap, verdicts.CONTRADICTED)
    if not is_endless(seen):
        return
    why = (
        f"{seen.grown} of {seen.fetched} pages looked at led to more of the same, {seen.brought:,} in all, "
        f"with {seen.again:,} links to what was known of it; {seen.endless_probes} ways down found no end"
    )
    seen.depth_probes.clear()
    verdicts.issue(tx, subject, seen, host.host, url, why)
