"""Admission: seen-check, scope, budget and enqueue as one act.

Called for seeds and, inside the transaction that settles a page, for the links the page brought. What is known is
judged again by the same rules in `readmission.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from skitter.frontier.engine.answers.aliases import name_canonical
from skitter.frontier.engine.answers.near_duplicates import remember
from skitter.frontier.engine.bare_seeds import mark_bare, over_http, was_led_to_http
from skitter.frontier.engine.changed_rules.walks import begin_walk, walk_later
from skitter.frontier.engine.explain.traps import trap_words
from skitter.frontier.engine.importance import Importance
from skitter.frontier.engine.traps.rules import Stopped, Traps, let_sample_through
from skitter.frontier.engine.traps.verdicts import refuse, release_url
from skitter.frontier.keyset_plain import MOST_LINKERS, has_linker, is_doubled, is_no_news, linker_mark
from skitter.frontier.rows import Found, HostRow, UrlRow
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.transaction import KindOfLink, Transaction, Way
from skitter.model import (
    Discovered,
    FailureKind,
    Host,
    Refusal,
    TaskKind,
    UrlState,
    Verdict,
    VerdictKind,
    Via,
)
from skitter.schedule.budgets import allowance
from skitter.schedule.importance import budget_by_word
from skitter.schedule.kinds import KINDS
from skitter.schedule.priority import Prioritizer
from skitter.settings import PolitenessSettings
from skitter.urls.canonical import host_id, host_of
from skitter.urls.keys import host_part
from skitter.urls.scope import Refused, Scope, anchors_of

if TYPE_CHECKING:
    from skitter.urls.seed_rules import Governing, SeedRules

ADDED = Verdict(VerdictKind.ADDED)
KNOWN = Verdict(VerdictKind.KNOWN)
_FORGOTTEN = Verdict(
    VerdictKind.REFUSED, Refusal.FORGOTTEN, "it was removed from this crawl (skitter forget)"
)
# bound once: looked up for every page
_LINK, _PAGE = Via.LINK, TaskKind.PAGE
_FOLLOWED = (_LINK, Via.SITEMAP, Via.FEED)
# What is remembered of a URL whose priority no link can raise any more, and of one that was also asked for as
# part of a page: every page of a site needs the same few.
_ENOUGH = b"\0" * (2 * MOST_LINKERS)
_NEEDED = b"\1" * (2 * MOST_LINKERS)
# What was refused as a link for one of these may be part of a page all the same.
_NOT_FOR_REQUISITES = frozenset(
    (Refusal.SCOPE, Refusal.EXTENSION, Refusal.DEPTH, Refusal.EXCLUDED, FailureKind.TYPE_UNWANTED)
)


# What a link by a better way may still let in.
_TOO_FAR = (Refusal.DEPTH, Refusal.OFF_TOPIC)


class Admission:
    def __init__(
        self,
        scope: Scope,
        politeness: PolitenessSettings,
        prioritizer: Prioritizer,
        traps: Traps,
        max_files: int,
        seed_rules: SeedRules | None = None,
        importance: Importance | None = None,
    ) -> None:
        self._importance = importance or Importance(False)
        self._seed_rules = seed_rules if seed_rules is not None and seed_rules.are_any else None
        self._max_files = max_files
        self._scope = scope
        self._traps = traps
        self._budget = politeness.host_budget
        self._prioritizer = prioritizer
        # links are of a few depths, again and again
        self._priority_of_link = lru_cache(maxsize=256)(partial(_priority_of_link, prioritizer))

    def admit(self, tx: Transaction, found: Discovered) -> Verdict:
        if tx.cache.forgotten and is_forgotten(tx, found):
            return _FORGOTTEN
        if tx.cache.partition is not None and tx.is_elsewhere(found.host):
            return self._post(tx, found)
        seed = found.via is not _LINK and _stands_for_a_seed(found)
        # most links of a page repeat what the last pages linked: 0.2 us here against 3.5 us for a store read
        marks = tx.cache.recent.get(found.key)
        if marks is None and tx.cache.known_keys.has(found.key):
            # who links it was forgotten, or is on disk alone: heard anew, from nobody on
            marks = b""
        if marks is not None and not seed and not self._is_news(tx, found, marks) and not _is_ranked(found):
            return KNOWN
        row = tx.known_url(found.key) if marks is None else tx.url(found.key)
        if seed:
            self._drop_anchors(tx, found)
        if found.over_http and row is not None and was_led_to_http(row):
            return self.admit(tx, over_http(tx, found))
        if row is not None and not (
            row.state == UrlState.REFUSED and (seed or self._is_judged_anew(found, row))
        ):
            self._linked_again(tx, found, row, marks or b"")
            return KNOWN
        if row is not None:
            tx.count(UrlState.REFUSED, -1)
            count_refusal(tx, row.reason, -1)
            release_url(tx, found.key, row)
            # It may have been a page before its type was another: its row begins anew, and what was counted of it
            # no longer is.
            remember(tx, found.key, row, None)
            name_canonical(tx, row, "")
        verdict = self._enter(tx, found)
        if found.over_http and verdict is ADDED:
            mark_bare(tx, found)
        return verdict

    def admit_run(self, tx: Transaction, run: Sequence[Discovered]) -> list[Verdict]:
        """Links that differ in URL, key and host alone."""
        if tx.cache.partition is None:
            return self._admit_run(tx, run)
        ours = [found for found in run if not tx.is_elsewhere(found.host)]
        verdicts = iter(self._admit_run(tx, ours) if ours else ())
        if len(ours) == len(run):
            return list(verdicts)
        return [self._post(tx, found) if tx.is_elsewhere(found.host) else next(verdicts) for found in run]

    def _post(self, tx: Transaction, found: Discovered) -> Verdict:
        """It is of another partition, which decides about it; told there unless it was before and is no news."""
        cache = tx.cache
        marks = cache.recent.get(found.key)
        if marks is None and cache.known_keys.has(found.key):
            marks = b""
        if marks is not None and not (
            _stands_for_a_seed(found) or _is_ranked(found) or self._is_news(tx, found, marks)
        ):
            return KNOWN
        tx.post_link(found)
        is_scoped = KINDS[found.kind].is_scoped
        if is_scoped and found.depth > self._deepest(found):
            return KNOWN  # by a shorter way it may come in
        heard = (marks or b"") + _linker(found) if is_scoped else _NEEDED
        if heard:
            cache.recent.put(found.key, heard[: len(_ENOUGH)])
        cache.known_keys.add(found.key)
        return KNOWN

    def _admit_run(self, tx: Transaction, run: Sequence[Discovered]) -> list[Verdict]:
        """What new ones of a host have in common is done once."""
        if not _is_plain(run[0]) or self._is_too_far(run[0]) or tx.cache.forgotten:
            return [self.admit(tx, found) for found in run]
        cache, add_if_new = tx.cache, tx.add_if_new
        has, add = cache.known_keys.has, cache.known_keys.add
        are_new = cache.seen.add_new([found.key for found in run], cache.known_keys)
        verdicts: list[Verdict] = []
        entering: list[Discovered] = []
        way: Way | None = None
        host, linker = "", b""
        for found, is_new in zip(run, are_new, strict=True):
            key = found.key
            if not is_new:
                if has(key) or not add_if_new(key):
                    # what is decided by what was admitted must find it there
                    entering = _enter(tx, way, entering)
                    verdicts.append(self.admit(tx, found))
                    continue
                add(key)
            if found.host != host:
                # the host of what is known is left alone: it need not even be read
                entering = _enter(tx, way, entering)
                host, linker = found.host, _linker(found)
                way = self._way(tx, found, linker, len(run))
            if linker:
                cache.recent.put(key, linker)
            if way is not None and self._passes(tx, found):
                entering.append(found)
                verdicts.append(ADDED)
            else:
                entering = _enter(tx, way, entering)
                verdicts.append(self._let_in(tx, found, self._row(found)))
        _enter(tx, way, entering)
        return verdicts

    def _is_too_far(self, found: Discovered) -> bool:
        return found.depth > self._scope.max_depth or found.nesting > self._scope.tunnel

    def _way(self, tx: Transaction, first: Discovered, linker: bytes, count: int) -> Way | None:
        """For links of a page to a host of which nothing is known that may speak against them; None when each is
        to be looked at by itself. What cannot change within a transaction is found out once."""
        kind = first.host, first.depth, first.priority, linker
        way = tx.ways.get(kind) or self._new_way(tx, first, kind)
        if way is None or way[1].novelty.traps or tx.tally.domains:
            return None
        host, budget = way[1], self._budget
        return (
            way
            if not budget or host.queue.admitted + count <= allowance(budget, host.novelty.novel)
            else None
        )

    def _new_way(self, tx: Transaction, first: Discovered, kind: KindOfLink) -> Way | None:
        if self._seed_rules is not None:
            return None
        ident, host = tx.look(first.host)
        if host is None or first.depth > self._scope.max_depth:
            return None
        if host.policy is not None and (host.policy.blocked or host.policy.budget is not None):
            return None
        if host.rank is not None and (host.rank.worth or host.rank.paths):
            return None
        if self._scope.is_by_host and self._outside(tx, first.url) is not None:
            return None
        priority = self._priority_of_link(first.priority, first.depth, len(kind[3]) // 2)
        if first.priority is None:
            priority = self._importance.raised(tx, first, host, priority)
        way = tx.ways[kind] = ident, host, priority, kind[3]
        return way

    def _passes(self, tx: Transaction, found: Discovered) -> bool:
        """The rules that look at a URL alone."""
        scope, lists = self._scope, tx.cache.blocklists
        if not scope.passes(found.url) or (lists.are_any and lists.line_forbidding(found.host, found.url)):
            return False
        return scope.is_any or scope.is_by_host or self._outside(tx, found.url) is None

    def _learn(self, tx: Transaction, found: Discovered, marks: bytes) -> None:
        """It is known from now on. What is too deep is looked up whenever it is linked: by a shorter way it may
        come in."""
        cache, key = tx.cache, found.key
        cache.seen.add(key)
        if KINDS[found.kind].is_scoped and found.depth > self._deepest(found):
            return
        if marks:
            cache.recent.put(key, marks)
        cache.known_keys.add(key)

    def _deepest(self, found: Discovered) -> int:
        governing = None if self._seed_rules is None else self._seed_rules.governing(found.url)
        if governing is None or governing.rule.depth is None:
            return self._scope.max_depth
        return min(self._scope.max_depth, governing.rule.depth)

    def _is_judged_anew(self, found: Discovered, row: UrlRow) -> bool:
        """Whether a refused link is to be judged again, once, because a page needs it, or because a shorter way
        leads to it, or one with fewer pages off the topic."""
        is_part, was_part = not KINDS[found.kind].is_scoped, not KINDS[row.found.kind].is_scoped
        if is_part:
            return not was_part and row.reason in _NOT_FOR_REQUISITES
        return row.reason in _TOO_FAR and not self._is_too_far(found)

    def _priority(self, found: Discovered, linkers: bytes) -> int:
        if found.priority is not None:
            return found.priority
        via = KINDS[found.kind].ranked_as or found.via
        return self._prioritizer.priority(via, found.depth, len(linkers) // 2)

    def _row(self, found: Discovered) -> UrlRow:
        """As a new URL's is, before it has a place."""
        linkers = _linker(found) if KINDS[found.kind].is_raised_by_links else b""
        return UrlRow(
            url=found.url,
            state=UrlState.QUEUED,
            priority=self._priority(found, linkers),
            found=Found(
                found.depth,
                found.via,
                found.parent,
                found.hops,
                found.kind,
                found.nesting,
                found.rel,
                found.form,
            ),
            linkers=linkers,
        )

    def _enter(self, tx: Transaction, found: Discovered) -> Verdict:
        row = self._row(found)
        self._learn(tx, found, row.linkers if KINDS[found.kind].is_scoped else _NEEDED)
        return self._let_in(tx, found, row)

    def _let_in(self, tx: Transaction, found: Discovered, row: UrlRow) -> Verdict:
        """It is known already that it is new."""
        ident, known_host = tx.look(found.host)
        refused = self.refusal(tx, found, known_host)
        if refused is not None:
            return self.refuse(tx, found, row, refused)
        if known_host is None or known_host.novelty.traps or tx.tally.domains:
            stopped = self.stopped(tx, found, known_host)
            if stopped is not None and not let_sample_through(tx, row, stopped):
                refuse(tx, found.key, row, *stopped)
                return Verdict(VerdictKind.REFUSED, Refusal.TRAP, row.rule)
        if found.priority is None and found.via in _FOLLOWED:
            row.priority = self._importance.raised(tx, found, known_host, row.priority)
        host = tx.take(ident, known_host, found.host)
        host.queue.admitted += 1
        self.count_for_seed(tx, found.url)
        if KINDS[found.kind].lists_urls:
            host.counts.sitemaps += 1
        tx.enqueue(found.key, row, ident, host)
        return ADDED

    def ask_there(self, tx: Transaction, found: Discovered, row: UrlRow) -> bool:
        """A redirect leads to another URL with the key of one that was asked and is a redirect too: `row` is
        that of the new URL from now on, and goes back to a queue. False when a rule forbids it, except for the
        budget, of which the page has its place. The former state must already be taken off the count."""
        if found.depth == 0 and KINDS[found.kind].is_scoped:
            self._drop_anchors(tx, found)
        ident, known_host = tx.look(found.host)
        refused = self.refusal(tx, found, known_host)
        if refused is not None and refused[0] is not Refusal.BUDGET:
            return False
        host = tx.take(ident, known_host, found.host)
        if host_of(row.url) != found.host:
            host.queue.admitted += 1
        row.url, row.found.hops = found.url, found.hops
        tx.led_on.add(found.key)
        tx.cache.patterns.drop(found.key)
        tx.enqueue(found.key, row, ident, host)
        return True

    def _is_news(self, tx: Transaction, found: Discovered, marks: bytes) -> bool:
        """Does this link raise the priority of what it points at? Only a doubling of its linking hosts does;
        until then they are counted in memory, and what is forgotten there counted for nothing."""
        if not KINDS[found.kind].is_scoped:
            return marks != _NEEDED
        linker = _linker(found)
        if not linker or is_no_news(marks, linker):
            return False
        marks += linker
        if is_doubled(marks):
            return True
        tx.cache.recent.put(found.key, marks)
        return False

    def _linked_again(self, tx: Transaction, found: Discovered, row: UrlRow, heard: bytes) -> None:
        rules = KINDS[found.kind]
        if row.reason in _TOO_FAR:
            return
        if row.state != UrlState.QUEUED or not KINDS[row.found.kind].is_raised_by_links:
            tx.cache.recent.put(found.key, _ENOUGH if rules.is_scoped else _NEEDED)
            return
        if not rules.is_raised_by_links:
            return
        marks = row.linkers
        for linker in (*(heard[i : i + 2] for i in range(0, len(heard), 2)), _linker(found)):
            if linker and len(marks) < len(_ENOUGH) and not has_linker(marks, linker):
                marks += linker
        tx.cache.recent.put(found.key, marks)
        urgency = self._urgency(found, row, marks)
        is_nearer = found.nesting < row.found.nesting and _is_ranked(found)
        if is_nearer:
            row.found.nesting = found.nesting
        if urgency != row.priority or is_nearer:
            row.linkers = marks
            tx.reprioritise(found.key, row, urgency)

    def _urgency(self, found: Discovered, row: UrlRow, marks: bytes) -> int:
        """Of a URL that waits and is linked again. Where links have priorities of their own, theirs count."""
        said = found.priority if _is_ranked(found) else None
        if said is None:
            said = self._prioritizer.priority(row.found.via, row.found.depth, len(marks) // 2)
            if self._importance.enabled and marks != row.linkers:
                # what its host added when it was found stays
                said += row.priority - self._prioritizer.priority(
                    row.found.via, row.found.depth, len(row.linkers) // 2
                )
        return max(row.priority, said)

    def judge(self, tx: Transaction, found: Discovered) -> Refused | None:
        host = tx.look(found.host)[1]
        refused = self.refusal(tx, found, host)
        stopped = self.stopped(tx, found, host) if refused is None else None
        return refused if stopped is None else (Refusal.TRAP, trap_words(tx.cache, stopped[0]))

    def refusal(self, tx: Transaction, found: Discovered, host: HostRow | None) -> Refused | None:
        policy = host.policy if host is not None else None
        if tx.cache.forgotten and is_forgotten(tx, found):
            return Refusal.FORGOTTEN, "it was removed from this crawl (skitter forget)"
        if policy is not None and policy.blocked:
            return Refusal.BLOCKED, f"the operator blocked {found.host}"
        if listed := tx.cache.blocklists.line_forbidding(found.host, found.url):
            return Refusal.BLOCKLIST, listed
        refused = self.judge_url(tx, found)
        if refused is None and self._seed_rules is not None:
            refused = self._over_seed_budget(tx, self._seed_rules.governing(found.url))
        return self._over_limit(found, host) if refused is None and host is not None else refused

    def _over_seed_budget(self, tx: Transaction, governing: Governing | None) -> Refused | None:
        if governing is None or not governing.rule.budget:
            return None
        admitted = tx.tally.seeds.get(governing.seed, 0)
        words = (
            f"{admitted} URLs admitted, the budget of the seed {governing.seed} is {governing.rule.budget}"
        )
        return (Refusal.BUDGET, words) if admitted >= governing.rule.budget else None

    def count_for_seed(self, tx: Transaction, url: str) -> None:
        """It was let in: the seed that it is under has one less to give."""
        if self._seed_rules is not None and (governing := self._seed_rules.governing(url)) is not None:
            tx.tally.seeds[governing.seed] = tx.tally.seeds.get(governing.seed, 0) + 1

    def _over_limit(self, found: Discovered, host: HostRow) -> Refused | None:
        """By how many of its URLs are known already."""
        if KINDS[found.kind].lists_urls and host.counts.sitemaps >= self._max_files:
            words = f"{found.host} has sitemaps.max_files of them ({self._max_files:,}) already"
            return Refusal.BUDGET, words
        most = self.most(host)
        return over_budget(host, most) if most is not None and host.queue.admitted >= most else None

    def judge_url(self, tx: Transaction, found: Discovered) -> Refused | None:
        """By the rules that ask nothing of its host but whether a seed brought it into scope."""
        refused = self._scope.refusal(found)
        if refused is None and found.via is not Via.SEED and KINDS[found.kind].is_scoped:
            refused = self._outside_or_too_deep(tx, found)
        return refused

    def _outside_or_too_deep(self, tx: Transaction, found: Discovered) -> Refused | None:
        """Where a seed has rules of its own, these decide for what it brings into scope."""
        if self._seed_rules is None or (governing := self._seed_rules.governing(found.url)) is None:
            return self._outside(tx, found.url)
        seed, rule = governing
        if rule.depth is None or found.depth <= rule.depth:
            return None
        return Refusal.DEPTH, f"{found.depth} links from a seed, the depth of the seed {seed} is {rule.depth}"

    def most(self, host: HostRow | None) -> int | None:
        """How many URLs of a host are let in; None when there is no limit."""
        policy = host.policy if host is not None else None
        budget = self._budget if policy is None or policy.budget is None else policy.budget
        if not budget:
            return None
        if host is None:
            return budget
        worth = host.rank.worth if host.rank is not None else 0.0
        return budget_by_word(_earned(budget, host), worth)

    def room(self, tx: Transaction, host: Host) -> int | None:
        """How many more URLs of a host its budget has room for; None where there is no limit."""
        row = tx.look(host)[1]
        most = self.most(row)
        return most if most is None or row is None else max(0, most - row.queue.admitted)

    def is_host_wanted(self, tx: Transaction, host: Host) -> bool:
        """Whether a seed brought this host into scope. Others are asked for what pages need, or robots.txt."""
        if self._seed_rules is not None and self._seed_rules.are_for_host(f"{host}/"):
            return True
        anchors = self._scope.anchors_for(f"{host}/")
        if self._scope.is_by_prefix:
            anchors = anchors_of(f"{host}/")[:1]
        return not anchors or any(tx.cache.has_anchor(anchor) for anchor in anchors)

    def recall_if_earned(self, tx: Transaction, host: HostRow) -> None:
        """A host has nothing left to ask for, and its pages earned it a larger budget than the one that refused
        some of its URLs."""
        if not host.queue.is_over_budget or any(host.queue.lengths):
            return
        most = self.most(host)
        if most is None or host.queue.admitted < most:
            begin_walk(tx, (Refusal.BUDGET,), Host(host.host))

    def note_budget(self, tx: Transaction, name: Host, refused: Refused) -> None:
        if refused[0] is Refusal.BUDGET:
            _, host = tx.look(name)
            if self._seed_rules is not None and self.most(host) is None:
                return  # a seed's budget, which no host can earn
            if host is not None and not host.queue.is_over_budget:
                tx.host(name)[1].queue.is_over_budget = True

    def stopped(self, tx: Transaction, found: Discovered, host: HostRow | None) -> Stopped | None:
        """Seeds, and what a page needs to look as it does, are asked for whatever they resemble."""
        is_stoppable = KINDS[found.kind].is_stoppable and found.via is not Via.SEED
        if not is_stoppable or not (found.depth or found.via is Via.LINK):
            return None
        return self._traps.check_url(tx, found.key, found.url, host)

    def why(self, cache: RowCache, row: UrlRow) -> str:
        """The rule that lets a URL in, in words, by the settings in force now."""
        if row.found.via is Via.SEED:
            return "seeds are always in scope"
        if row.found.via is Via.RENDER:
            return (
                "what a page asks for while it is rendered is fetched, if no rule forbids it (crawl.render)"
            )
        if because := KINDS[row.found.kind].let_in_because:
            return because
        if self._seed_rules is not None and (why := self._why_by_rule(row.url)):
            return why
        anchors = self._scope.anchors_for(row.url)
        if not anchors:
            return "scope is any"
        found = next((anchor for anchor in anchors if cache.has_anchor(anchor)), None)
        return f"a seed brought {found} into scope" if found else "it was in scope when it was found"

    def _why_by_rule(self, url: str) -> str:
        assert self._seed_rules is not None
        if (governing := self._seed_rules.governing(url)) is not None:
            return f"it is in the scope of the seed {governing.seed}"
        surt = self._seed_rules.has_surt(url)
        return f"it has the SURT prefix {surt} (rules.surts)" if surt else ""

    def _outside(self, tx: Transaction, url: str) -> Refused | None:
        anchors = self._scope.anchors_for(url)
        for anchor in anchors:
            if tx.cache.has_anchor(anchor):
                return None
        if self._seed_rules is not None and self._seed_rules.has_surt(url):
            return None
        return self._scope.outside(url) if anchors else None

    def refuse(self, tx: Transaction, found: Discovered, row: UrlRow, refused: Refused) -> Verdict:
        row.state = UrlState.REFUSED
        row.reason, row.rule = refused
        tx.put_url(found.key, row)
        tx.count(UrlState.REFUSED, 1)
        count_refusal(tx, row.reason, 1)
        self.note_budget(tx, found.host, refused)
        return Verdict(VerdictKind.REFUSED, refused[0], refused[1])

    def _drop_anchors(self, tx: Transaction, found: Discovered) -> None:
        """A seed, or where one led, brings its surroundings into scope, and what was refused there comes back.
        One with rules of its own brings what these say."""
        if self._seed_rules is not None and self._seed_rules.governing(found.url) is not None:
            return
        new = [anchor for anchor in anchors_of(found.url) if not tx.cache.has_anchor(anchor)]
        for anchor in new:
            tx.add_anchor(anchor)
        if not tx.tally.refusals.get(Refusal.SCOPE) or not any(map(self._scope.is_asked_for, new)):
            return
        if self._scope.kind == "domain" and found.via is Via.SEED:
            # its hosts may lie anywhere
            walk_later(tx, (Refusal.SCOPE,))
            return
        for host in _of_any_scheme(found.host):
            begin_walk(tx, (Refusal.SCOPE,), host)


def _enter(tx: Transaction, way: Way | None, entering: list[Discovered]) -> list[Discovered]:
    """Enqueues those that are entering. Who is still to enter afterwards: nobody, unless there is no way."""
    if way is None or not entering:
        return entering
    ident, host, priority, linkers = way
    tx.enqueue_new(entering, priority, linkers, ident, tx.take(ident, host, entering[0].host))
    return []


def _priority_of_link(prioritizer: Prioritizer, given: int | None, depth: int, linking_hosts: int) -> int:
    return prioritizer.priority(_LINK, depth, linking_hosts) if given is None else given


def _is_plain(found: Discovered) -> bool:
    """A link to follow, and nothing else."""
    return found.via in _FOLLOWED and found.kind is _PAGE and not found.hops and not found.rel


def _is_ranked(found: Discovered) -> bool:
    """A link whose priority the page or users' code decided: it may raise that of a known URL."""
    return found.priority is not None and found.via is _LINK


def _earned(budget: int, host: HostRow) -> int:
    """The operator's word for a host is the last; the crawl's own grows with what the host is worth."""
    has_own = host.policy is not None and host.policy.budget is not None
    return budget if has_own else allowance(budget, host.novelty.novel)


def over_budget(host: HostRow, most: int) -> Refused:
    return (
        Refusal.BUDGET,
        f"{host.queue.admitted} URLs admitted, the budget of {host.host} is {most}",
    )


def _of_any_scheme(host: Host) -> tuple[Host, Host]:
    """A seed brings its host into scope for http and https alike."""
    authority = host.partition("://")[2]
    return Host("http://" + authority), Host("https://" + authority)


def _stands_for_a_seed(found: Discovered) -> bool:
    """A seed, or where one redirects to, whatever was said of that URL as a link before."""
    at_seed = found.via is Via.REDIRECT and found.depth == 0 and KINDS[found.kind].is_scoped
    return found.via is Via.SEED or at_seed


def _linker(found: Discovered) -> bytes:
    """The mark of the host that links a URL; nothing when it is the URL's own host."""
    parent = found.parent
    return b"" if parent is None or host_part(parent) == host_part(found.key) else linker_mark(parent)


def is_forgotten(tx: Transaction, found: Discovered) -> bool:
    return found.key in tx.cache.forgotten or host_id(found.host) in tx.cache.forgotten


def count_refusal(tx: Transaction, reason: str, change: int) -> None:
    refusals = tx.tally.refusals
    refusals[reason] = refusals.get(reason, 0) + change
