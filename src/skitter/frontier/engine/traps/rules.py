"""Traps: what settled pages tell about their subjects, and which URLs are stopped because of it.

`Traps.learn` runs in the transaction that settles a page, and may issue a verdict. `Traps.check_url` is called by
admission and by leasing, so that URLs that were queued before a verdict are refused too. Both cost next to
nothing on a host that never repeated itself. Never fetches, and never refuses a seed or a requisite of a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from skitter.frontier.engine.traps import listings, parameters, verdicts
from skitter.frontier.engine.traps.endless_sections import section_key
from skitter.frontier.engine.traps.listings import listing_key
from skitter.frontier.engine.traps.novelty import Resemblance, compare_and_remember, novelty_for
from skitter.frontier.engine.traps.soft_404 import ask_for_probe, learn_probe
from skitter.frontier.rows import HostNovelty, HostRow, UrlRow
from skitter.frontier.tables.transaction import Transaction
from skitter.frontier.tables.trap_tables import (
    begin_evidence,
    domain_key,
    evidence,
    get_or_begin_evidence,
    host_key,
    unseen_key,
    write_evidence,
)
from skitter.frontier.tables.url_patterns import Pattern, pattern_of, pattern_of_known, subject_key
from skitter.model import Discovered, Fetched, TaskKind
from skitter.schedule.budgets import allowance, is_spent
from skitter.schedule.entries import is_still_growing, is_time_to_look
from skitter.schedule.traps import (
    Evidence,
    Level,
    PageNovelty,
    account,
    credit,
    is_contradicted,
    is_to_be_checked,
    is_to_be_stopped,
    most_at_once,
    with_tag,
)
from skitter.settings import TrapSettings
from skitter.urls.canonical import host_id, host_of
from skitter.urls.keys import host_part
from skitter.urls.scope import registrable_domain
from skitter.urls.skeleton import Skeleton, section, skeleton

# At so many points of a subject (three copies, six near-duplicates in a row) the host is asked once for a path
# that does not exist.
_WORTH_A_PROBE = 18
# Of a host that repeats itself, one lease takes at most so many URLs of one pattern until more is known of it.
CAUTIOUS = 8
# And so many of patterns of which nothing is known, where a host was hardly ever seen to repeat itself.
_MOST_UNSEEN = 64
# Pages right under the root have nothing in common: never judged together.
_ROOT = "/*"
# Of a host that never repeated itself, so many pages with a query are compared at first, then one pair in so
# many.
_ALL_PAIRS = 8

# bound once: looked up for every page
_NOVEL, _ENTRY = PageNovelty.NOVEL, PageNovelty.ENTRY
_OWN = (_NOVEL, _ENTRY)
_SKELETON, _FAMILY = Level.SKELETON, Level.FAMILY
_FAMILY_ALONE, _ALL_LEVELS = (_FAMILY,), (_FAMILY, Level.UNSEEN)

Stopped = tuple[int, bytes, Evidence]
"""A verdict's number, and the subject that it stopped."""

_Recorded = tuple[bytes, Evidence, PageNovelty]
"""A subject, its evidence with the page in it, and what the page is to this subject."""


class _Page(NamedTuple):
    """What the trap rules need of a settled page."""

    key: bytes
    row: UrlRow
    size: int
    found: Resemblance


class Traps:
    def __init__(self, settings: TrapSettings) -> None:
        self._settings = settings
        self.enabled = settings.mode != "off"
        self._refuses = settings.mode == "on"

    # -- what pages tell

    def learn(
        self,
        tx: Transaction,
        host: HostRow,
        key: bytes,
        row: UrlRow,
        page: Fetched,
        fresh: Sequence[Discovered],
    ) -> bool:
        """A page was fetched for the first time, and brought these new links. Whether it is an entry that leads
        to nothing new."""
        if row.found.kind is TaskKind.PROBE:
            learn_probe(host, key, row, page)
            return False
        host.novelty.pages += 1
        found = compare_and_remember(tx, host, key, row, page, fresh)
        is_entry = found.novelty is _ENTRY
        if (is_entry or found.novelty is _NOVEL) and not host.novelty.repeats:
            # the short way, for most pages of most hosts
            if is_entry:
                self._count_entry(tx, host, row)
            else:
                host.novelty.novel += 1
            if "?" in row.url and (host.novelty.pages <= _ALL_PAIRS or host.novelty.pages % _ALL_PAIRS < 2):
                parameters.note_novel(tx, host, key, row)
        else:
            self._account(tx, host_id(host.host), host, _Page(key, row, page.size, found))
        if host.novelty.pages == 1:
            self._judge_domain(tx, host, row, page, found)
        return listings.ends_here(tx, host, key, row, fresh, is_entry=is_entry)

    def _count_entry(self, tx: Transaction, host: HostRow, row: UrlRow) -> None:
        host.novelty.entries += 1
        if is_time_to_look(self._settings.entries_start, host.novelty.entries):
            self._judge_growth(tx, host, row)

    def learn_redirect(self, tx: Transaction, host: HostRow, key: bytes, row: UrlRow) -> None:
        """A redirect led to a known page: the request brought nothing new."""
        page = _Page(key, row, 0, Resemblance(PageNovelty.ELSEWHERE, b"", is_here=True))
        pattern = pattern_of(tx.cache, host_id(host.host), key, row.url)
        seen = evidence(tx.cache, pattern.own)
        self._judge(tx, host, self._record_page(tx, host, page, pattern, _SKELETON, seen), row.url)

    def _account(self, tx: Transaction, ident: bytes, host: HostRow, page: _Page) -> None:
        url, found, cache = page.row.url, page.found, tx.cache
        pattern = pattern_of(cache, ident, page.key, url)
        own, family = evidence(cache, pattern.own), evidence(cache, pattern.family)
        before = parameters.last_page_of(tx, own) if "?" in url else ""
        fine = self._record_page(tx, host, page, pattern, _SKELETON, own)
        _, seen, novelty = fine
        if seen.exempt:
            # exempt by the operator: it does not count against its host either
            host.novelty.pages -= 1
            return
        self._judge(tx, host, fine, url)
        points = seen.points
        if not seen.trap:
            for level in _ALL_LEVELS if own is None and family is None else _FAMILY_ALONE:
                known = family if level is _FAMILY else evidence(cache, unseen_key(ident))
                # a novel page changes nothing else, so most need no write
                if novelty not in _OWN or (known is not None and (known.points or known.trap)):
                    kind = self._record_page(tx, host, page, pattern, level, known)
                    points = max(points, kind[1].points)
                    self._judge(tx, host, kind, url)
        if found.tag:
            host.novelty.tags = with_tag(host.novelty.tags, found.tag)
        if "?" in url:
            parameters.compare(tx, ident, host, page.key, page.row, found, novelty, before)
        if novelty is _NOVEL or novelty is _ENTRY:
            if novelty is _NOVEL:
                host.novelty.novel += 1
            else:
                self._count_entry(tx, host, page.row)
            if host.novelty.repeats:
                self._credit_parent(tx, page, pattern)
        else:
            host.novelty.repeats += 1
        if points >= _WORTH_A_PROBE and not host.novelty.is_probed and self._settings.probe:
            ask_for_probe(tx, ident, host)
        self._judge_host(tx, ident, host, page.row)

    def _record_page(
        self,
        tx: Transaction,
        host: HostRow,
        page: _Page,
        pattern: Pattern,
        level: Level,
        known: Evidence | None,
    ) -> _Recorded:
        name, subject = _name_and_subject(pattern, level)
        seen = known if known is not None else begin_evidence(tx.cache, subject, name, level)
        seen.shaped |= pattern.shape.shape
        novelty = novelty_for(seen, page.found, host.novelty.tags)
        account(seen, novelty, size=page.size, depth=page.row.found.depth, key=page.key)
        if level is not _SKELETON:
            seen.scatter(pattern.own[8:12], novelty)
        if page.found.tag:
            seen.tags = with_tag(seen.tags, page.found.tag)
        write_evidence(tx, subject, seen)
        return subject, seen, novelty

    def _credit_parent(self, tx: Transaction, page: _Page, pattern: Pattern) -> None:
        """A page that led to a novel page of another pattern was worth its fetch."""
        parent = page.row.found.parent
        above = pattern_of_known(tx, parent) if parent and host_part(parent) == host_part(page.key) else None
        if above is None:
            return
        for subject in (above.own, above.family):
            seen = evidence(tx.cache, subject)
            if seen is None or not (seen.points or seen.trap) or seen.name in pattern.shape:
                continue
            credit(seen)
            write_evidence(tx, subject, seen)
            self._reconsider(tx, seen)

    def _judge(self, tx: Transaction, host: HostRow, judged: _Recorded, url: str) -> None:
        subject, seen, _ = judged
        if not seen.points and not seen.trap:
            return
        self._reconsider(tx, seen)
        if seen.name == _ROOT or not is_to_be_stopped(seen):
            return
        why = f"{seen.run} pages in a row brought nothing new; {seen.novel} of {seen.fetched} did before"
        verdicts.issue(tx, subject, seen, host.host, url, why)

    def _reconsider(self, tx: Transaction, seen: Evidence) -> None:
        if is_contradicted(seen):
            verdicts.end(tx, seen.trap, verdicts.CONTRADICTED)

    def _judge_host(self, tx: Transaction, ident: bytes, host: HostRow, row: UrlRow) -> None:
        if host.novelty.stopped or (host.policy is not None and host.policy.budget is not None):
            return
        start = self._settings.host_start
        # an entry earns one page besides itself
        if not is_spent(start, host.novelty.pages - 2 * host.novelty.entries, host.novelty.novel):
            return
        subject = host_key(ident)
        seen = get_or_begin_evidence(tx.cache, subject, "all of the host", Level.HOST)
        if seen.exempt:
            return
        seen.fetched, seen.novel, seen.received = host.novelty.pages, host.novelty.novel, host.counts.received
        earned = allowance(start, host.novelty.novel)
        why = f"{host.novelty.pages} pages, {host.novelty.novel} of them new, had a budget of {earned}"
        verdicts.issue(tx, subject, seen, host.host, row.url, why)

    def _judge_growth(self, tx: Transaction, host: HostRow, row: UrlRow) -> None:
        """Stop a host of entries when ever more of them wait."""
        waiting, before = sum(host.queue.lengths), host.novelty.waited
        host.novelty.waited = waiting
        entries = host.novelty.entries
        if host.novelty.stopped or (host.policy is not None and host.policy.budget is not None):
            return
        if not is_still_growing(self._settings.entries_start, entries, waiting, before):
            return
        subject = host_key(host_id(host.host))
        seen = get_or_begin_evidence(tx.cache, subject, "all of the host", Level.HOST)
        if seen.exempt:
            return
        seen.fetched, seen.novel, seen.received = host.novelty.pages, host.novelty.novel, host.counts.received
        why = f"{entries:,} pages differ in title and figures alone, and more wait than before: {waiting:,}"
        verdicts.issue(tx, subject, seen, host.host, row.url, why)

    def _judge_domain(
        self, tx: Transaction, host: HostRow, row: UrlRow, page: Fetched, found: Resemblance
    ) -> None:
        """Count the first page of a subdomain for its domain."""
        authority = host.host.partition("//")[2]
        domain = registrable_domain(authority)
        if authority in (domain, "www." + domain):
            return
        subject = domain_key(domain)
        seen = get_or_begin_evidence(tx.cache, subject, "*." + domain, Level.DOMAIN)
        novelty = novelty_for(seen, found)
        account(seen, novelty, size=page.size, depth=row.found.depth)
        seen.tags = with_tag(seen.tags, found.tag)
        write_evidence(tx, subject, seen)
        self._reconsider(tx, seen)
        spent = is_spent(self._settings.domain_start, seen.fetched, seen.novel)
        if is_to_be_stopped(seen) or (spent and not seen.trap and not seen.exempt):
            why = f"{seen.fetched} hosts, {seen.novel} of them with a first page that was new"
            verdicts.issue(tx, subject, seen, host.host, row.url, why)

    # -- which URLs are stopped

    def check_url(self, tx: Transaction, key: bytes, url: str, host: HostRow | None) -> Stopped | None:
        """The verdict that stops this URL, if there is one. Where a parameter was learnt, a URL that is not
        stopped claims its page (`parameters.claim_or_stop`)."""
        if not self._refuses:
            return None
        if host is not None and host.novelty.traps:
            found = self._check_on_host(tx, host_id(host.host), host, key, url)
            if found is not None:
                return found
        if tx.tally.domains and (host is None or not host.novelty.pages):
            authority = host_of(url).partition("//")[2]
            return _verdict_in_force(tx, domain_key(registrable_domain(authority)))
        return None

    def _check_on_host(
        self, tx: Transaction, ident: bytes, host: HostRow, key: bytes, url: str
    ) -> Stopped | None:
        if host.novelty.stopped:
            return _verdict_in_force(tx, host_key(ident))
        shape = skeleton(url)
        own = evidence(tx.cache, subject_key(ident, shape.fine))
        if own is not None and own.trap:
            return _verdict_in_force(tx, subject_key(ident, shape.fine))
        if own is None or not own.exempt:
            found = self._find_wider_verdict(tx, ident, shape, url, is_unseen=own is None)
            if found is not None:
                return found
        return (
            parameters.claim_or_stop(tx, ident, host, key, url)
            if host.novelty.learned and "?" in url
            else None
        )

    def _find_wider_verdict(
        self, tx: Transaction, ident: bytes, shape: Skeleton, url: str, *, is_unseen: bool
    ) -> Stopped | None:
        """A verdict on a larger subject that the URL belongs to: its family, its section, all new patterns."""
        family = subject_key(ident, "family " + shape.coarse)
        found = (
            _verdict_in_force(tx, family)
            or _verdict_in_force(tx, section_key(ident, section(url)))
            or _verdict_in_force(tx, listing_key(ident, shape.fine))
            or _verdict_in_force(tx, listing_key(ident, shape.coarse))
        )
        if found is None and is_unseen and evidence(tx.cache, family) is None:
            found = _verdict_in_force(tx, unseen_key(ident))
        return found


def _name_and_subject(pattern: Pattern, level: Level) -> tuple[str, bytes]:
    if level is _SKELETON:
        return pattern.shape.fine, pattern.own
    if level is _FAMILY:
        return pattern.shape.coarse, pattern.family
    return "kinds of pages never seen before", unseen_key(pattern.host)


class Shares:
    """How many URLs of each pattern one lease may still take, on a host that repeats itself: only a few,
    because a verdict may stop the rest at any moment."""

    def __init__(self, tx: Transaction, ident: bytes, novelty: HostNovelty) -> None:
        self._tx = tx
        self._ident = ident
        # a host that seldom repeats itself is trusted with more of what nobody knows
        worth = (novelty.novel + novelty.entries) // max(novelty.repeats, 1)
        self._unseen = min(max(CAUTIOUS, worth), _MOST_UNSEEN)
        # one counter for all patterns of a family of which nothing else is known
        self._left: dict[bytes, list[int]] = {}
        self._of: dict[bytes, list[int]] = {}

    def is_used_up(self, key: bytes) -> bool:
        """Whether this URL would be one too many, asked before its row is read: of a large host nine URLs are
        passed over for each that is taken. False when its pattern is not in memory."""
        pattern = self._tx.cache.patterns.get(key)
        return pattern is not None and self._left_of(pattern)[0] <= 0

    def take(self, key: bytes, url: str) -> bool:
        left = self._left_of(pattern_of(self._tx.cache, self._ident, key, url))
        left[0] -= 1
        return left[0] >= 0

    def _left_of(self, pattern: Pattern) -> list[int]:
        left = self._of.get(pattern.own)
        if left is None:
            left = self._of[pattern.own] = self._share(pattern)
        return left

    def _share(self, pattern: Pattern) -> list[int]:
        for subject in (pattern.own, pattern.family):
            seen = evidence(self._tx.cache, subject)
            if seen is not None:
                most = most_at_once(seen) if seen.points and not seen.exempt else CAUTIOUS
                return self._left.setdefault(subject, [most])
        return self._left.setdefault(b"unseen", [self._unseen])


def _verdict_in_force(tx: Transaction, subject: bytes) -> Stopped | None:
    seen = evidence(tx.cache, subject)
    return None if seen is None or not seen.trap else (seen.trap, subject, seen)


def let_sample_through(tx: Transaction, row: UrlRow, by: Stopped) -> bool:
    """Let one of many stopped URLs through as a sample, to see whether the verdict still holds. False: refuse."""
    number, subject, seen = by
    if not is_to_be_checked(seen):
        return False
    seen.passed += 1
    write_evidence(tx, subject, seen)
    row.trap = number
    return True
