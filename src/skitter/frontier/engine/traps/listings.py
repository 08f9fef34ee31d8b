"""Listings: pages that lead to entries, and to further pages of themselves. Whether one has an end is looked for.

Runs in the transaction that settles a page, after its links were admitted, on hosts whose pages are entries.
Pages of a listing go to the head of their host's queue, before the entries: so the end of a listing is found with
one request for some twenty entries. On a listing that ends this changes only the order. Never fetches or admits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from skitter.frontier.engine.traps import verdicts
from skitter.frontier.rows import HostRow, UrlRow
from skitter.frontier.tables.transaction import Transaction
from skitter.frontier.tables.trap_tables import (
    begin_evidence,
    evidence,
    get_or_begin_evidence,
    write_evidence,
)
from skitter.frontier.tables.url_patterns import pattern_of, subject_key
from skitter.model import Discovered, UrlState
from skitter.schedule.kinds import KINDS
from skitter.schedule.listings import (
    account_listing,
    entries_ahead,
    follow,
    is_unending,
    leads_higher,
    number_ahead,
)
from skitter.schedule.priority import SEED_PRIORITY
from skitter.schedule.traps import TAG, Evidence, Level, has_tag, is_contradicted, with_tag
from skitter.urls.canonical import host_id
from skitter.urls.skeleton import Skeleton, section, skeleton

# Before so many entries a host is not looked at.
FEWEST_ENTRIES = 4
# Of so many entries at first, then of one in so many, the pattern is noted.
_ALL_PATTERNS, _ONE_IN = 64, 16
_PAGES_UNTIL_LOST = 32
_AT_THE_HEAD = SEED_PRIORITY - 1


def listing_key(ident: bytes, name: str) -> bytes:
    """Of a listing, or of the entries that it leads to; `name` is that of a skeleton or of a family."""
    return subject_key(ident, "listing " + name)


def ends_here(
    tx: Transaction, host: HostRow, key: bytes, row: UrlRow, fresh: Sequence[Discovered], *, is_entry: bool
) -> bool:
    """Whether an entry, or a page of the same family, leads to nothing new of its host. The families of such
    entries are noted."""
    entries = host.novelty.entries if is_entry else 0
    if not (entries or host.novelty.entry_kinds) or any(link.host == host.host for link in fresh):
        return False
    if entries > _ALL_PATTERNS and entries % _ONE_IN:
        return True
    tag = _tag(pattern_of(tx.cache, host_id(host.host), key, row.url).family)
    if not is_entry:
        return has_tag(host.novelty.entry_kinds, tag)
    host.novelty.entry_kinds = with_tag(host.novelty.entry_kinds, tag)
    return True


def is_of_entries(tx: Transaction, host: HostRow, link: Discovered) -> bool:
    """Whether entries that led to nothing new are of the same family."""
    if not host.novelty.entry_kinds:
        return False
    pattern = pattern_of(tx.cache, host_id(host.host), link.key, link.url)
    return has_tag(host.novelty.entry_kinds, _tag(pattern.family))


def _tag(subject: bytes) -> bytes:
    return subject[8 : 8 + TAG]


def learn(tx: Transaction, host: HostRow, key: bytes, row: UrlRow, fresh: Sequence[Discovered]) -> None:
    """Count a settled page for its listing, if it is a page of one. `fresh` are its links that were new."""
    ident, fine, start = host_id(host.host), skeleton(row.url).fine, section(row.url)
    subject = listing_key(ident, fine)
    seen = evidence(tx.cache, subject)
    here = [link for link in fresh if link.host == host.host and KINDS[link.kind].is_page]
    further = [link for link in here if link.url.startswith(start) and skeleton(link.url).fine == fine]
    if seen is None:
        if not further:
            return
        seen = begin_evidence(tx.cache, subject, fine, Level.LISTING)
    is_search = key in seen.depth_probes and len(further) > 1
    for link in further:
        # the leaps of a search make nothing deeper: the limit of depth would cut off what is found on the way
        _move_to_head(tx, link, _AT_THE_HEAD, row.found.depth if is_search else link.depth)
    ahead = [(pair, link) for link in further if (pair := number_ahead(row.url, link.url)) is not None]
    steps = [other - own for (own, other), _ in ahead]
    highest = max((other for (_, other), _ in ahead), default=0)
    above = _move_on(tx, ahead) if leads_higher(seen, highest) else None
    account_listing(seen, len(here) - len(further), steps)
    seen.highest = max(seen.highest, highest)
    follow(seen, key, above, len(ahead))
    if further:
        host.novelty.depth_probing = _PAGES_UNTIL_LOST
    if seen.trap and row.trap == seen.trap and not further:
        seen.late += 1
    write_evidence(tx, subject, seen)
    if is_contradicted(seen):
        verdicts.end(tx, seen.trap, verdicts.CONTRADICTED)
    elif is_unending(seen):
        _stop(tx, host, subject, seen, row.url, here)


def _move_on(tx: Transaction, ahead: list[tuple[tuple[int, int], Discovered]]) -> bytes | None:
    """The page with the highest number: it is fetched next."""
    _, link = max(ahead, key=lambda found: found[0][1])
    return link.key if _move_to_head(tx, link, SEED_PRIORITY) else None


def _move_to_head(tx: Transaction, link: Discovered, priority: int, depth: int | None = None) -> bool:
    """False when the page waits in no queue: a limit refused it."""
    row = tx.url(link.key)
    if row is None or row.state != UrlState.QUEUED:
        return False
    if depth is not None:
        row.found.depth = depth
    tx.reprioritise(link.key, row, priority)
    return True


def _stop(
    tx: Transaction, host: HostRow, subject: bytes, seen: Evidence, url: str, here: Sequence[Discovered]
) -> None:
    why = (
        f"{seen.endless_probes} times in a row it led to a higher page, up to {seen.highest:,}, and to no end; "
        f"{seen.fetched} pages led to {seen.brought:,} entries, all of them would to {entries_ahead(seen):,}"
    )
    seen.depth_probes.clear()
    verdicts.issue(tx, subject, seen, host.host, url, why)
    _stop_entries(tx, host, seen, skeleton(url), here)


def _stop_entries(
    tx: Transaction, host: HostRow, seen: Evidence, listing: Skeleton, here: Sequence[Discovered]
) -> None:
    """Stop the entries that the listing leads to: most of what its last page brought besides further pages. All
    of their family, unless the listing belongs to it too."""
    entries = {link.url: shape for link in here if (shape := skeleton(link.url)).fine != listing.fine}
    if not entries:
        return
    commonest = Counter([shape.coarse for shape in entries.values()]).most_common(1)[0][0]
    example, shape = next((url, shape) for url, shape in entries.items() if shape.coarse == commonest)
    name = shape.fine if commonest == listing.coarse else commonest
    subject = listing_key(host_id(host.host), name)
    entry = get_or_begin_evidence(tx.cache, subject, name, Level.LISTING)
    if not entry.exempt and not entry.trap:
        why = f"the listing that leads to them has no end: see verdict {seen.trap}"
        verdicts.issue(tx, subject, entry, host.host, example, why)
