"""Parameters that change nothing, learnt per host: of all URLs that differ in them alone, one is fetched.

Two pages whose URLs differ in one parameter are compared. Once a parameter is known to change nothing, the first
URL of a page *claims* that page. The other URLs of the page are refused under the verdict, and come back when
it is undone or contradicted by a sample. This costs only hosts with such parameters, and only URLs with a
query.
"""

from __future__ import annotations

from skitter.frontier.engine.traps import verdicts
from skitter.frontier.engine.traps.novelty import Resemblance
from skitter.frontier.rows import HostRow, UrlRow
from skitter.frontier.tables import queries
from skitter.frontier.tables.transaction import Transaction
from skitter.frontier.tables.trap_tables import (
    claim,
    claimant,
    evidence,
    get_or_begin_evidence,
    key_for,
    last_pages,
    parameter_key,
    write_evidence,
)
from skitter.frontier.tables.url_patterns import subject_key
from skitter.model import Host, UrlState
from skitter.schedule.traps import Evidence, Level, PageNovelty, account, count_pair, has_no_effect
from skitter.urls.canonical import host_id
from skitter.urls.skeleton import only_difference, skeleton, without

# When a parameter is learnt, so many URLs of the host are read: those that were fetched claim their pages.
_MOST_CLAIMED = 5_000
# Enough to say that a parameter changes nothing. NEAR is not: texts about two shirts of a shop can be near.
_TELLING = (PageNovelty.COPY, PageNovelty.SAME, PageNovelty.ELSEWHERE)
# Pages of one template share a title but not the words: the pages of a list do, and their number matters.
_DIFFERENT = (PageNovelty.NOVEL, PageNovelty.ENTRY, PageNovelty.SAME_TEMPLATE)


def last_page_of(tx: Transaction, seen: Evidence | None) -> str:
    """The URL of the page of a subject that was settled last."""
    last = tx.url(last_pages(seen)[0]) if seen is not None and seen.last else None
    return last.url if last is not None else ""


def compare(
    tx: Transaction,
    ident: bytes,
    host: HostRow,
    key: bytes,
    row: UrlRow,
    found: Resemblance,
    novelty: PageNovelty,
    before: str,
) -> None:
    """Compare a page with a query to the page that it resembles or the one before it: what do parameters do?"""
    if "?" not in row.url:
        return
    if host.novelty.learned and _is_sample(tx, host, key, row.url):
        name = only_difference(row.url, without(row.url, host.novelty.learned)) or host.novelty.learned[0]
        _count(tx, ident, host, name, row.url, 2, alike=novelty not in (PageNovelty.NOVEL, PageNovelty.ENTRY))
    elif novelty in _TELLING and found.original:
        weight = 2 if novelty is PageNovelty.COPY else 1
        _count(tx, ident, host, only_difference(row.url, found.original), row.url, weight, alike=True)
    elif novelty in _DIFFERENT and before:
        _count(tx, ident, host, only_difference(row.url, before), row.url, 1, alike=False)


def note_novel(tx: Transaction, host: HostRow, key: bytes, row: UrlRow) -> None:
    """Count a novel page with a query, on a host where all pages were novel: its parameters do something."""
    ident = host_id(host.host)
    shape = skeleton(row.url)
    subject = subject_key(ident, shape.fine)
    seen = get_or_begin_evidence(tx.cache, subject, shape.fine, Level.SKELETON, shape.shape)
    before = last_page_of(tx, seen)
    account(seen, PageNovelty.NOVEL, size=row.answer.size, depth=row.found.depth, key=key)
    write_evidence(tx, subject, seen)
    if before:
        _count(tx, ident, host, only_difference(row.url, before), row.url, 1, alike=False)


def _count(
    tx: Transaction, ident: bytes, host: HostRow, name: str, url: str, weight: int, *, alike: bool
) -> None:
    if not name:
        return
    subject = parameter_key(ident, name)
    seen = get_or_begin_evidence(tx.cache, subject, name, Level.PARAMETER)
    count_pair(seen, weight, alike=alike)
    write_evidence(tx, subject, seen)
    if seen.trap and seen.late:
        verdicts.end(tx, seen.trap, verdicts.CONTRADICTED)
    elif has_no_effect(seen):
        _learn(tx, ident, host, subject, seen, url)


def _learn(tx: Transaction, ident: bytes, host: HostRow, subject: bytes, seen: Evidence, url: str) -> None:
    alike = seen.fetched - seen.novel
    why = f"{alike} pairs of pages that differ in it alone were the same, {seen.novel} were not"
    verdicts.issue(tx, subject, seen, host.host, url, why)
    for key, row in queries.url_rows(tx.cache, Host(host.host), _MOST_CLAIMED):
        if row.state == UrlState.COMPLETED:
            stripped = without(row.url, host.novelty.learned)
            if stripped != row.url and claimant(tx, (meant := key_for(tx.cache, stripped))) is None:
                claim(tx, meant, key)


def _is_sample(tx: Transaction, host: HostRow, key: bytes, url: str) -> bool:
    stripped = without(url, host.novelty.learned)
    return stripped != url and claimant(tx, key_for(tx.cache, stripped)) not in (None, key)


def claim_or_stop(
    tx: Transaction, ident: bytes, host: HostRow, key: bytes, url: str
) -> tuple[int, bytes, Evidence] | None:
    """The first URL of a page claims the page. For any later one the verdict on the parameter is returned."""
    stripped = without(url, host.novelty.learned)
    if stripped == url:
        return None
    meant = key_for(tx.cache, stripped)
    first = claimant(tx, meant)
    if first is None and tx.url(meant) is None:
        claim(tx, meant, key)
        return None
    if first == key:
        return None
    name = next(name for name in host.novelty.learned if without(url, [name]) != url)
    subject = parameter_key(ident, name)
    seen = evidence(tx.cache, subject)
    return (seen.trap, subject, seen) if seen is not None and seen.trap else None
