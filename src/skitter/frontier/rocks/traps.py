"""Traps: what each page tells of its kind, and which URLs are not asked for because of it.

`learn` runs in the turn that settles a page and may end with a verdict; `Gate` is asked by admission and by
leasing, so that what was queued before a verdict is refused as well. Both cost nothing on a host that never
repeated itself. Never fetches, and never refuses a seed or what a page needs to look as it does.
"""

from __future__ import annotations

from typing import NamedTuple

from skitter.frontier.rocks import parameters, verdicts
from skitter.frontier.rocks.growth import section_key
from skitter.frontier.rocks.kinds import Kin, kin_of, kin_of_known, subject_key
from skitter.frontier.rocks.probe import ask_for_probe, learn_probe
from skitter.frontier.rocks.rows import HostRow, UrlRow
from skitter.frontier.rocks.sights import Likeness, as_seen_by, likeness
from skitter.frontier.rocks.subjects import (
    begin,
    domain_key,
    evidence,
    evidence_of,
    host_key,
    unseen_key,
    write,
)
from skitter.frontier.rocks.turn import Turn
from skitter.model import Fetched, Via
from skitter.schedule.budgets import allowance, is_spent
from skitter.schedule.traps import (
    Evidence,
    Level,
    Sight,
    account,
    credit,
    is_contradicted,
    is_enough,
    is_to_be_checked,
    room,
    with_mark,
)
from skitter.settings import TrapSettings
from skitter.urls.canonical import host_id, host_of
from skitter.urls.scope import registrable_domain
from skitter.urls.skeleton import Skeleton, section, skeleton

# Points of a subject (three copies, six near-duplicates in a row) at which the host's answer to a made-up path is
# worth a request.
_WORTH_A_PROBE = 18
# Of a host that repeats itself, at most so many URLs of one kind are leased at once until more is known of it.
CAUTIOUS = 8
# All that lies right under the root has nothing in common.
_ROOT = "/*"
# Of a host that never repeated itself, pairs of pages that tell of a parameter: the first, then one in so many.
_ALL_PAIRS = 8

# an enum's own attribute takes 0.1 us, eight times as long
_NOVEL = Sight.NOVEL
_SKELETON, _FAMILY = Level.SKELETON, Level.FAMILY
_FAMILY_ALONE, _ALL_LEVELS = (_FAMILY,), (_FAMILY, Level.UNSEEN)

Stopped = tuple[int, bytes, Evidence]
"""A verdict's number, and the subject that it stopped."""


class _Page(NamedTuple):
    """A page that was settled, as far as traps go."""

    key: bytes
    row: UrlRow
    size: int
    found: Likeness


class Traps:
    def __init__(self, settings: TrapSettings) -> None:
        self._settings = settings
        self.enabled = settings.enabled

    # -- what pages tell

    def learn(self, turn: Turn, host: HostRow, key: bytes, row: UrlRow, page: Fetched) -> None:
        """A page was fetched for the first time."""
        if row.via is Via.PROBE:
            learn_probe(host, key, row, page)
            return
        host.pages += 1
        found = likeness(turn, host, key, row, page)
        if found.sight is _NOVEL and not host.repeats:
            # most pages of most hosts: 10 us less than with all that follows
            host.novel += 1
            if "?" in row.url and (host.pages <= _ALL_PAIRS or host.pages % _ALL_PAIRS < 2):
                parameters.note_novel(turn, host, key, row)
        else:
            self._account(turn, host_id(host.host), host, _Page(key, row, page.size, found))
        if host.pages == 1:
            self._judge_domain(turn, host, row, page, found)

    def learn_redirect(self, turn: Turn, host: HostRow, key: bytes, row: UrlRow) -> None:
        """A redirect led to what was known: nothing new for a request."""
        page = _Page(key, row, 0, Likeness(Sight.ELSEWHERE, b"", is_here=True))
        kin = kin_of(turn.book, host_id(host.host), key, row.url)
        seen = evidence(turn.book, kin.own)
        self._judge(turn, host, self._see(turn, host, page, kin, _SKELETON, seen), row.url)

    def _account(self, turn: Turn, ident: bytes, host: HostRow, page: _Page) -> None:
        url, found, book = page.row.url, page.found, turn.book
        kin = kin_of(book, ident, page.key, url)
        own, family = evidence(book, kin.own), evidence(book, kin.family)
        before = parameters.neighbour(turn, own) if "?" in url else ""
        fine = self._see(turn, host, page, kin, _SKELETON, own)
        _, seen, sight = fine
        if seen.exempt:
            # by the operator's word: it is no charge on its host either
            host.pages -= 1
            return
        self._judge(turn, host, fine, url)
        points = seen.points
        if not seen.trap:
            for level in _ALL_LEVELS if own is None and family is None else _FAMILY_ALONE:
                known = family if level is _FAMILY else evidence(book, unseen_key(ident))
                # only then does a novel page change anything: most need not be written down
                if sight is not _NOVEL or (known is not None and (known.points or known.trap)):
                    kind = self._see(turn, host, page, kin, level, known)
                    points = max(points, kind[1].points)
                    self._judge(turn, host, kind, url)
        if found.mark:
            host.marks = with_mark(host.marks, found.mark)
        if "?" in url:
            parameters.compare(turn, ident, host, page.key, page.row, found, sight, before)
        if sight is _NOVEL:
            host.novel += 1
            if host.repeats:
                self._credit_parent(turn, page, kin)
        else:
            host.repeats += 1
        if points >= _WORTH_A_PROBE and not host.probed and self._settings.probe:
            ask_for_probe(turn, ident, host)
        self._judge_host(turn, ident, host, page.row)

    def _see(
        self, turn: Turn, host: HostRow, page: _Page, kin: Kin, level: Level, known: Evidence | None
    ) -> tuple[bytes, Evidence, Sight]:
        name, subject = _named(kin, level)
        seen = known if known is not None else begin(turn.book, subject, name, level)
        seen.shaped |= kin.shape.shape
        sight = as_seen_by(seen, page.found, host.marks)
        account(seen, sight, size=page.size, depth=page.row.depth, key=page.key)
        if level is not _SKELETON:
            seen.scatter(kin.own[8:12], sight)
        if page.found.mark:
            seen.marks = with_mark(seen.marks, page.found.mark)
        write(turn, subject, seen)
        return subject, seen, sight

    def _credit_parent(self, turn: Turn, page: _Page, kin: Kin) -> None:
        """What led to a novel page of another kind was worth its fetch, however it looks itself."""
        parent = page.row.parent
        above = kin_of_known(turn, parent) if parent and parent[:8] == page.key[:8] else None
        if above is None:
            return
        for subject in (above.own, above.family):
            seen = evidence(turn.book, subject)
            if seen is None or not (seen.points or seen.trap) or seen.name in kin.shape:
                continue
            credit(seen)
            write(turn, subject, seen)
            self._reconsider(turn, seen)

    def _judge(self, turn: Turn, host: HostRow, judged: tuple[bytes, Evidence, Sight], url: str) -> None:
        subject, seen, _ = judged
        if not seen.points and not seen.trap:
            return
        self._reconsider(turn, seen)
        if seen.name == _ROOT or not is_enough(seen):
            return
        why = f"{seen.run} pages in a row brought nothing new; {seen.novel} of {seen.fetched} did before"
        verdicts.fall(turn, subject, seen, host.host, url, why)

    def _reconsider(self, turn: Turn, seen: Evidence) -> None:
        if is_contradicted(seen):
            verdicts.end(turn, seen.trap, verdicts.CONTRADICTED)

    def _judge_host(self, turn: Turn, ident: bytes, host: HostRow, row: UrlRow) -> None:
        if host.stopped or (host.policy is not None and host.policy.budget is not None):
            return
        start = self._settings.host_start
        if not is_spent(start, host.pages, host.novel):
            return
        subject = host_key(ident)
        seen = evidence_of(turn.book, subject, "all of the host", Level.HOST)
        if seen.exempt:
            return
        seen.fetched, seen.novel, seen.received = host.pages, host.novel, host.received
        earned = allowance(start, host.novel)
        why = f"{host.pages} pages, {host.novel} of them new, had a budget of {earned}"
        verdicts.fall(turn, subject, seen, host.host, row.url, why)

    def _judge_domain(self, turn: Turn, host: HostRow, row: UrlRow, page: Fetched, found: Likeness) -> None:
        """The first page of a host that is not its domain's own tells of the domain."""
        authority = host.host.partition("//")[2]
        domain = registrable_domain(authority)
        if authority in (domain, "www." + domain):
            return
        subject = domain_key(domain)
        seen = evidence_of(turn.book, subject, "*." + domain, Level.DOMAIN)
        sight = as_seen_by(seen, found)
        account(seen, sight, size=page.size, depth=row.depth)
        seen.marks = with_mark(seen.marks, found.mark)
        write(turn, subject, seen)
        self._reconsider(turn, seen)
        spent = is_spent(self._settings.domain_start, seen.fetched, seen.novel)
        if is_enough(seen) or (spent and not seen.trap and not seen.exempt):
            why = f"{seen.fetched} hosts, {seen.novel} of them with a first page that was new"
            verdicts.fall(turn, subject, seen, host.host, row.url, why)

    # -- what is not asked for

    def stopped(self, turn: Turn, key: bytes, url: str, host: HostRow | None) -> Stopped | None:
        """The verdict in force that concerns this URL, if there is one."""
        if not self.enabled:
            return None
        if host is not None and host.traps:
            found = self._stopped_on(turn, host_id(host.host), host, key, url)
            if found is not None:
                return found
        if turn.tally.domains and (host is None or not host.pages):
            authority = host_of(url).partition("//")[2]
            return _in_force(turn, domain_key(registrable_domain(authority)))
        return None

    def _stopped_on(self, turn: Turn, ident: bytes, host: HostRow, key: bytes, url: str) -> Stopped | None:
        if host.stopped:
            return _in_force(turn, host_key(ident))
        shape = skeleton(url)
        own = evidence(turn.book, subject_key(ident, shape.fine))
        if own is not None and own.trap:
            return _in_force(turn, subject_key(ident, shape.fine))
        if own is None or not own.exempt:
            found = self._stopped_by_kin(turn, ident, shape, url, is_unseen=own is None)
            if found is not None:
                return found
        return parameters.stopped(turn, ident, host, key, url) if host.learned and "?" in url else None

    def _stopped_by_kin(
        self, turn: Turn, ident: bytes, shape: Skeleton, url: str, *, is_unseen: bool
    ) -> Stopped | None:
        """By a verdict on many kinds of pages, of which this one is of."""
        family = subject_key(ident, "family " + shape.coarse)
        found = _in_force(turn, family) or _in_force(turn, section_key(ident, section(url)))
        if found is None and is_unseen and evidence(turn.book, family) is None:
            found = _in_force(turn, unseen_key(ident))
        return found


def _named(kin: Kin, level: Level) -> tuple[str, bytes]:
    if level is _SKELETON:
        return kin.shape.fine, kin.own
    if level is _FAMILY:
        return kin.shape.coarse, kin.family
    return "kinds of pages never seen before", unseen_key(kin.own[:8])


class Shares:
    """Of a host that repeats itself one lease takes only a few URLs of a kind: a verdict may fall any moment."""

    def __init__(self, turn: Turn, ident: bytes) -> None:
        self._turn = turn
        self._ident = ident
        # one number for all skeletons of which nothing but their family is known
        self._left: dict[bytes, list[int]] = {}
        self._of: dict[bytes, list[int]] = {}

    def is_used_up(self, key: bytes) -> bool:
        """Whether this URL would be one too many, as far as memory tells. 0.4 us, where its row takes 10: of a
        large host nine are passed over for each that is taken."""
        kin = self._turn.book.kinds.get(key)
        left = self._of.get(kin.own) if kin is not None else None
        return left is not None and left[0] <= 0

    def take(self, key: bytes, url: str) -> bool:
        kin = kin_of(self._turn.book, self._ident, key, url)
        left = self._of.get(kin.own)
        if left is None:
            left = self._of[kin.own] = self._share(kin)
        left[0] -= 1
        return left[0] >= 0

    def _share(self, kin: Kin) -> list[int]:
        for subject in (kin.own, kin.family):
            seen = evidence(self._turn.book, subject)
            if seen is not None:
                most = room(seen) if seen.points and not seen.exempt else CAUTIOUS
                return self._left.setdefault(subject, [most])
        return self._left.setdefault(b"unseen", [CAUTIOUS])


def _in_force(turn: Turn, subject: bytes) -> Stopped | None:
    seen = evidence(turn.book, subject)
    return None if seen is None or not seen.trap else (seen.trap, subject, seen)


def is_let_through(turn: Turn, row: UrlRow, by: Stopped) -> bool:
    """Of many that are refused a few are not, to see whether the verdict still holds."""
    number, subject, seen = by
    if not is_to_be_checked(seen):
        return False
    seen.passed += 1
    write(turn, subject, seen)
    row.trap = number
    return True
