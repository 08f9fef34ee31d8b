"""Admission: seen-check, scope, budget and enqueue as one act.

Called for seeds and, inside the turn that settles a page, for the links the page brought.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

from skitter.frontier.keyset_plain import MOST_LINKERS, has_linker, is_doubled, is_no_news
from skitter.frontier.rocks.aliases import name_canonical
from skitter.frontier.rocks.book import Book
from skitter.frontier.rocks.near import remember
from skitter.frontier.rocks.rows import HostRow, UrlRow, fresh
from skitter.frontier.rocks.trap_views import trap_words
from skitter.frontier.rocks.traps import Stopped, Traps, is_let_through
from skitter.frontier.rocks.turn import KindOfLink, Turn, Way
from skitter.frontier.rocks.verdicts import pardon, refuse
from skitter.model import Discovered, FailureKind, Refusal, UrlKey, UrlState, Verdict, VerdictKind, Via
from skitter.schedule.budgets import allowance
from skitter.schedule.priority import Prioritizer, tier_of
from skitter.settings import PolitenessSettings
from skitter.urls.canonical import host_of
from skitter.urls.scope import Refused, Scope, anchors_of

ADDED = Verdict(VerdictKind.ADDED)
KNOWN = Verdict(VerdictKind.KNOWN)
# an enum's own attribute takes 0.1 us, eight times as long
_LINK = Via.LINK
# What is remembered of a URL whose priority no link can raise any more, and of one that was also asked for as
# part of a page: every page of a site needs the same few.
_ENOUGH = b"\0" * (2 * MOST_LINKERS)
_NEEDED = b"\1" * (2 * MOST_LINKERS)
# What was refused as a link for one of these may be part of a page all the same.
_NOT_FOR_REQUISITES = frozenset(
    (Refusal.SCOPE, Refusal.EXTENSION, Refusal.DEPTH, Refusal.EXCLUDED, FailureKind.TYPE_UNWANTED)
)


class Admission:
    def __init__(
        self, scope: Scope, politeness: PolitenessSettings, prioritizer: Prioritizer, traps: Traps
    ) -> None:
        self._scope = scope
        self._traps = traps
        self._budget = politeness.host_budget
        self._prioritizer = prioritizer
        # of a few depths, again and again: 0.1 us instead of 0.8
        self._lane = lru_cache(maxsize=256)(partial(_lane_of_link, prioritizer))

    def admit(self, turn: Turn, found: Discovered) -> Verdict:
        seed = found.via is not _LINK and _stands_for_a_seed(found)
        # most links of a page repeat what the last pages linked: 0.2 us here against 3.5 us for a store read
        marks = turn.book.recent.get(found.key)
        if marks is None and turn.book.certain.has(found.key):
            # who links it was forgotten, or is on disk alone: heard anew, from nobody on
            marks = b""
        if marks is not None and not seed and not self._is_news(turn, found, marks):
            return KNOWN
        row = turn.known_url(found.key) if marks is None else turn.url(found.key)
        if seed:
            self._drop_anchors(turn, found.url)
        if row is not None and not (row.state == UrlState.REFUSED and (seed or _may_be_part(found, row))):
            self._linked_again(turn, found, row, marks or b"")
            return KNOWN
        if row is not None:
            turn.count(UrlState.REFUSED, -1)
            _count_refusal(turn, row.reason, -1)
            pardon(turn, found.key, row)
            # It may have been a page before its type was another: its row begins anew, and what was counted of it
            # no longer is.
            remember(turn, found.key, row, None)
            name_canonical(turn, row, "")
        return self._enter(turn, found)

    def admit_run(self, turn: Turn, run: Sequence[Discovered]) -> list[Verdict]:
        """Links that differ in URL, key and host alone. What new ones of a host have in common is done once."""
        if not _is_plain(run[0]):
            return [self.admit(turn, found) for found in run]
        book, is_new = turn.book, turn.is_new
        has, add = book.certain.has, book.certain.add
        met = book.seen.met([found.key for found in run], book.certain)
        verdicts: list[Verdict] = []
        entering: list[Discovered] = []
        way: Way | None = None
        host, linker = "", b""
        for found, is_met in zip(run, met, strict=True):
            key = found.key
            if not is_met:
                if has(key) or not is_new(key):
                    # what is decided by what was admitted must find it there
                    entering = _enter(turn, way, entering)
                    verdicts.append(self.admit(turn, found))
                    continue
                add(key)
            if found.host != host:
                # the host of what is known is left alone: it need not even be read
                entering = _enter(turn, way, entering)
                host, linker = found.host, _linker(found)
                way = self._way(turn, found, linker, len(run))
            if linker:
                book.recent.put(key, linker)
            if way is not None and self._passes(turn, found):
                entering.append(found)
                verdicts.append(ADDED)
            else:
                entering = _enter(turn, way, entering)
                verdicts.append(self._let_in(turn, found, self._row(found)))
        _enter(turn, way, entering)
        return verdicts

    def _way(self, turn: Turn, first: Discovered, linker: bytes, count: int) -> Way | None:
        """For links of a page to a host of which nothing is known that may speak against them; None when each is
        to be looked at by itself. What cannot change within a turn is found out once: 1 us instead of 5."""
        kind = first.host, first.depth, first.priority, linker
        way = turn.ways.get(kind) or self._new_way(turn, first, kind)
        if way is None or way[1].traps or turn.tally.domains:
            return None
        host, budget = way[1], self._budget
        return way if not budget or host.admitted + count <= allowance(budget, host.novel) else None

    def _new_way(self, turn: Turn, first: Discovered, kind: KindOfLink) -> Way | None:
        ident, host = turn.look(first.host)
        if host is None or first.depth > self._scope.max_depth:
            return None
        if host.policy is not None and (host.policy.blocked or host.policy.budget is not None):
            return None
        if self._scope.is_by_host and self._outside(turn, first.url) is not None:
            return None
        priority, lane = self._lane(first.priority, first.depth, len(kind[3]) // 2)
        way = turn.ways[kind] = ident, host, priority, lane, kind[3]
        return way

    def _passes(self, turn: Turn, found: Discovered) -> bool:
        """The rules that look at a URL alone."""
        scope, lists = self._scope, turn.book.blocklists
        if not scope.passes(found.url) or (lists.are_any and lists.line_against(found.host, found.url)):
            return False
        return scope.is_any or scope.is_by_host or self._outside(turn, found.url) is None

    def _learn(self, turn: Turn, key: UrlKey, marks: bytes) -> None:
        """It is known from now on."""
        book = turn.book
        if marks:
            book.recent.put(key, marks)
        book.seen.add(key)
        book.certain.add(key)

    def _priority(self, found: Discovered, linkers: bytes) -> int:
        if found.priority is not None:
            return found.priority
        via = Via.REQUISITE if found.requisite else found.via
        return self._prioritizer.priority(via, found.depth, len(linkers) // 2)

    def _row(self, found: Discovered) -> UrlRow:
        """As a new URL's is, before it has a place."""
        linkers = b"" if found.requisite else _linker(found)
        return UrlRow(
            url=found.url,
            state=UrlState.QUEUED,
            priority=self._priority(found, linkers),
            depth=found.depth,
            via=found.via,
            parent=found.parent,
            hops=found.hops,
            linkers=linkers,
            requisite=found.requisite,
        )

    def _enter(self, turn: Turn, found: Discovered) -> Verdict:
        row = self._row(found)
        self._learn(turn, found.key, _NEEDED if found.requisite else row.linkers)
        return self._let_in(turn, found, row)

    def _let_in(self, turn: Turn, found: Discovered, row: UrlRow) -> Verdict:
        """It is known already that it is new."""
        ident, known_host = turn.look(found.host)
        refused = self._judge(turn, found, known_host)
        if refused is not None:
            return self.refuse(turn, found, row, refused)
        if known_host is None or known_host.traps or turn.tally.domains:
            stopped = self._stopped(turn, found, known_host)
            if stopped is not None and not is_let_through(turn, row, stopped):
                refuse(turn, found.key, row, *stopped)
                return Verdict(VerdictKind.REFUSED, Refusal.TRAP, row.rule)
        host = turn.take(ident, known_host, found.host)
        host.admitted += 1
        turn.enqueue(found.key, row, ident, host)
        return ADDED

    def ask_there(self, turn: Turn, found: Discovered, row: UrlRow) -> bool:
        """A redirect leads to another URL with the key of one that was asked and is a redirect too: `row` is
        that of the new URL from now on, and goes back to a queue. False when a rule forbids it, except for the
        budget, of which the page has its place. The former state must already be taken off the count."""
        if found.depth == 0 and not found.requisite:
            self._drop_anchors(turn, found.url)
        ident, known_host = turn.look(found.host)
        refused = self._judge(turn, found, known_host)
        if refused is not None and refused[0] is not Refusal.BUDGET:
            return False
        host = turn.take(ident, known_host, found.host)
        if host_of(row.url) != found.host:
            host.admitted += 1
        row.url, row.hops = found.url, found.hops
        turn.led_on.add(found.key)
        turn.book.kinds.drop(found.key)
        turn.enqueue(found.key, row, ident, host)
        return True

    def _is_news(self, turn: Turn, found: Discovered, marks: bytes) -> bool:
        """Does this link raise the priority of what it points at? Only a doubling of its linking hosts does;
        until then they are counted in memory, and what is forgotten there counted for nothing."""
        if found.requisite:
            return marks != _NEEDED
        linker = _linker(found)
        if not linker or is_no_news(marks, linker):
            return False
        marks += linker
        if is_doubled(marks):
            return True
        turn.book.recent.put(found.key, marks)
        return False

    def _linked_again(self, turn: Turn, found: Discovered, row: UrlRow, heard: bytes) -> None:
        if row.state != UrlState.QUEUED or row.requisite:
            turn.book.recent.put(found.key, _NEEDED if found.requisite else _ENOUGH)
            return
        if found.requisite:
            return
        marks = row.linkers
        for linker in (*(heard[i : i + 2] for i in range(0, len(heard), 2)), _linker(found)):
            if linker and len(marks) < len(_ENOUGH) and not has_linker(marks, linker):
                marks += linker
        turn.book.recent.put(found.key, marks)
        urgency = max(row.priority, self._prioritizer.priority(row.via, row.depth, len(marks) // 2))
        if urgency != row.priority:
            row.linkers = marks
            turn.reprioritise(found.key, row, urgency)

    def judge(self, turn: Turn, found: Discovered) -> Refused | None:
        host = turn.look(found.host)[1]
        refused = self._judge(turn, found, host)
        stopped = self._stopped(turn, found, host) if refused is None else None
        return refused if stopped is None else (Refusal.TRAP, trap_words(turn.book, stopped[0]))

    def _judge(self, turn: Turn, found: Discovered, host: HostRow | None) -> Refused | None:
        policy = host.policy if host is not None else None
        if policy is not None and policy.blocked:
            return Refusal.BLOCKED, f"the operator blocked {found.host}"
        if listed := turn.book.blocklists.line_against(found.host, found.url):
            return Refusal.BLOCKLIST, listed
        refused = self._scope.refusal(found)
        if refused is None and found.via is not Via.SEED and not found.requisite:
            refused = self._outside(turn, found.url)
        if refused is not None:
            return refused
        budget = self._budget if policy is None or policy.budget is None else policy.budget
        if budget and host is not None and host.admitted >= (most := _earned(budget, host)):
            return Refusal.BUDGET, f"{host.admitted} URLs admitted, the budget of {found.host} is {most}"
        return None

    def _stopped(self, turn: Turn, found: Discovered, host: HostRow | None) -> Stopped | None:
        """Seeds, and what a page needs to look as it does, are asked for whatever they resemble."""
        if found.via is Via.SEED or found.requisite or not (found.depth or found.via is Via.LINK):
            return None
        return self._traps.stopped(turn, found.key, found.url, host)

    def why(self, book: Book, row: UrlRow) -> str:
        """The rule that lets a URL in, in words, by the settings in force now."""
        if row.via is Via.SEED:
            return "seeds are always in scope"
        if row.requisite:
            return "what a page needs to look as it does is fetched wherever it lies (crawl.requisites)"
        anchors = self._scope.anchors_for(row.url)
        if not anchors:
            return "scope is any"
        found = next((anchor for anchor in anchors if book.has_anchor(anchor)), None)
        return f"a seed brought {found} into scope" if found else "it was in scope when it was found"

    def _outside(self, turn: Turn, url: str) -> Refused | None:
        anchors = self._scope.anchors_for(url)
        for anchor in anchors:
            if turn.book.has_anchor(anchor):
                return None
        return self._scope.outside(url) if anchors else None

    def refuse(self, turn: Turn, found: Discovered, row: UrlRow, refused: Refused) -> Verdict:
        row.state = UrlState.REFUSED
        row.reason, row.rule = refused
        turn.put_url(found.key, row)
        turn.count(UrlState.REFUSED, 1)
        _count_refusal(turn, row.reason, 1)
        return Verdict(VerdictKind.REFUSED, refused[0], refused[1])

    def _drop_anchors(self, turn: Turn, url: str) -> None:
        for anchor in anchors_of(url):
            if not turn.book.has_anchor(anchor):
                turn.put("anchors", anchor.encode(), b"")
                turn.book.remember_anchor(anchor)


def _enter(turn: Turn, way: Way | None, entering: list[Discovered]) -> list[Discovered]:
    """Who enters is no longer to."""
    if way is None or not entering:
        return entering
    ident, host, priority, lane, linkers = way
    first = entering[0]
    alike = fresh(first, priority, lane, linkers)
    turn.enqueue_fresh(entering, alike, ident, turn.take(ident, host, first.host))
    return []


def _lane_of_link(
    prioritizer: Prioritizer, given: int | None, depth: int, linking_hosts: int
) -> tuple[int, int]:
    """The priority of a new link, and the lane that it waits in."""
    priority = prioritizer.priority(_LINK, depth, linking_hosts) if given is None else given
    return priority, tier_of(priority) + 1


def _is_plain(found: Discovered) -> bool:
    """A link to follow, and nothing else."""
    return found.via is _LINK and not found.requisite and not found.hops


def _earned(budget: int, host: HostRow) -> int:
    """The operator's word for a host is the last; the crawl's own grows with what the host is worth."""
    has_own = host.policy is not None and host.policy.budget is not None
    return budget if has_own else allowance(budget, host.novel)


def _may_be_part(found: Discovered, row: UrlRow) -> bool:
    """Whether a refused link is to be judged again, once, because a page needs it."""
    return bool(found.requisite) and not row.requisite and row.reason in _NOT_FOR_REQUISITES


def _stands_for_a_seed(found: Discovered) -> bool:
    """A seed, or where one redirects to, whatever was said of that URL as a link before."""
    at_seed = found.via is Via.REDIRECT and found.depth == 0 and not found.requisite
    return found.via is Via.SEED or at_seed


def _linker(found: Discovered) -> bytes:
    """The mark of the host that links a URL; nothing when it is the URL's own host."""
    parent = found.parent
    return b"" if parent is None or parent[:8] == found.key[:8] else parent[:2]


def _count_refusal(turn: Turn, reason: str, change: int) -> None:
    refusals = turn.tally.refusals
    refusals[reason] = refusals.get(reason, 0) + change
