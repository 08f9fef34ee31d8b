"""Leasing: which hosts are ready, whose turn it is, and which of their URLs a worker gets.

A host is found through the ready index: per tier, ordered by when it may be asked. What is handed out stays in
the queue until it is settled. Robots are decided here, at the last moment, with the rules in force now; and so is
admission, where the rules have changed since URLs were let in.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Container, Iterable, Iterator

from skitter.frontier.base import REMOTE
from skitter.frontier.engine.addresses import Addresses
from skitter.frontier.engine.changed_rules.readmission import Readmission
from skitter.frontier.engine.changed_rules.refuse_queued import deny, give_up, refuse, stop
from skitter.frontier.engine.load_limits import LoadLimits, count_unheard
from skitter.frontier.engine.reboot_barrier import RebootBarrier
from skitter.frontier.engine.regions import MOST_PASSED_OVER, Regions
from skitter.frontier.engine.renders import Renders
from skitter.frontier.engine.traps.endless_sections import DEPTH_PROBE_TIER, TASKS_WHILE_PROBING
from skitter.frontier.engine.traps.rules import CAUTIOUS, Shares, Stopped, Traps
from skitter.frontier.rows import HostRow, LeasedTask, LeaseRow, UrlRow
from skitter.frontier.tables import queries
from skitter.frontier.tables.transaction import QueueOfHost, Transaction
from skitter.model import FailureKind, Host, HostLease, Refusal, Task, TaskKind, Token, UrlKey, UrlState, Via
from skitter.robots.rules import ALLOW_ALL, Rules
from skitter.schedule.kinds import KINDS
from skitter.schedule.priority import LANES, REVISITS, TIERS, TierScheduler
from skitter.schedule.rendering import NEVER
from skitter.settings import Settings
from skitter.urls.canonical import robots_url, target_of
from skitter.urls.keys import robots_key

# A host is handed out for about this long when its delay is short, so that a lease's own cost is shared by
# several pages: 150 us a page with one task a lease, 30 with five.
_LEASE_SECONDS = 2.0
_MOST_TASKS = 64
# Of the last pages under a limit no host takes more than a few: the others would have nothing to do meanwhile.
_FEW_TASKS, _SHARED_AMONG = 5, 256
# What hosts without a delay are given in turn, of those leased in one call, when they are not to end together:
# the longest first, and each as far from the ones before it as can be.
_STAGGERED = (64, 32, 48, 16, 56, 24, 40, 8)
_TASKS_PER_PARALLEL = 16
# Hosts whose address is busy are given an appointment; at most so many in one call, 30 us each.
_MOST_SENT_AWAY = 1_000
# Denied URLs are settled while looking for allowed ones; at most so many before other hosts get their turn.
_MOST_DENIED = 256
# The order in which lanes are looked at, by the one that is first.
_FROM = [(tier, *(other for other in range(LANES) if other != tier)) for tier in range(LANES)]
# New pages and revisits, as `revisit.share` shares them out; neither is ever starved.
_NEW, _AGAIN = 0, 1
_LEAST_SHARE = 0.01
_NO_LIMIT = 1 << 30


class Leasing:
    """`judges_again` when something may be queued that was let in by other rules than those in force. Pages that
    were read up to `requisites_since` are asked for whole: 304 would not tell their requisites."""

    def __init__(
        self,
        settings: Settings,
        addresses: Addresses,
        traps: Traps,
        readmission: Readmission,
        renders: Renders,
        regions: Regions,
    ) -> None:
        self._regions = regions
        self._renders = renders
        # beyond the page limit: hosts of what renderings wait for, of which nothing else is leased
        self._awaited: set[bytes] = set()
        self._limits = LoadLimits(settings)
        self.judges_again = False
        self.requisites_since = -1.0
        self._traps = traps
        self._readmission = readmission
        self._settings = settings
        self._tiers = TierScheduler(settings.frontier.tier_weights)
        share = min(max(settings.revisit.share, _LEAST_SHARE), 1 - _LEAST_SHARE)
        self._shares = TierScheduler((1 - share, share))
        self._addresses = addresses
        self._barrier = RebootBarrier(settings.frontier.lease_duration)

    def change_settings(self, settings: Settings) -> None:
        self._settings = settings

    # -- granting

    def lease(
        self,
        tx: Transaction,
        worker: str,
        capacity: int,
        duration: float,
        most_tasks: int | None = None,
        staggered: bool = False,
    ) -> list[HostLease]:
        granted: list[HostLease] = []
        if not self._barrier.pass_if_over(tx):
            return granted
        self._barrier.remember(tx, worker, duration)
        lanes = LANES if tx.tally.tiers[REVISITS] else TIERS
        waiting = {tier: queries.ready_hosts(tx.cache, tier, tx.now) for tier in range(lanes)}
        room = tx.room(self._settings.crawl.max_pages)
        self._addresses.sent_away = 0
        self._awaited = set()
        region, passed_over = self._regions.asks(worker, tx.now), 0
        while waiting and len(granted) < capacity:
            if self._addresses.sent_away >= _MOST_SENT_AWAY:
                break
            if room <= 0 and not self._awaited:
                # what was counted may be visited again, and needs to be rendered what it needs
                self._awaited = self._renders.awaited_hosts(tx)
                if not self._awaited:
                    waiting = {REVISITS: waiting[REVISITS]} if REVISITS in waiting else {}
                    if not waiting:
                        break
            tier = self._next_tier(waiting)
            ident = next(waiting[tier], None)
            if ident is None:
                del waiting[tier]
                self._set_idle(tier, waiting)
                continue
            host = tx.cache.host(ident)
            if host is None or host.lease is not None:
                continue
            if region and not self._regions.is_for(tx, host, region):
                passed_over += 1
                if passed_over >= MOST_PASSED_OVER:
                    break
                continue
            if self._awaited and ident not in self._awaited and tier != REVISITS:
                continue
            most = room if most_tasks is None else min(room, most_tasks)
            unpaced = _STAGGERED[len(granted) % len(_STAGGERED)] if staggered else _MOST_TASKS
            lease = self._grant(tx, ident, host, tier, worker, duration, most, unpaced)
            if lease is not None:
                granted.append(lease)
                room -= _new_tasks(host, lease)
        return granted

    def _next_tier(self, waiting: Container[int]) -> int:
        """New pages or revisits first, then the tier among new ones."""
        tiers = [tier for tier in range(TIERS) if tier in waiting]
        if REVISITS not in waiting:
            return self._tiers.choose(tiers)
        if not tiers or self._shares.choose((_NEW, _AGAIN)) == _AGAIN:
            return REVISITS
        return self._tiers.choose(tiers)

    def _set_idle(self, tier: int, waiting: Collection[int]) -> None:
        if tier == REVISITS:
            self._shares.set_idle(_AGAIN)
            return
        self._tiers.set_idle(tier)
        if all(other == REVISITS for other in waiting):
            self._shares.set_idle(_NEW)

    def _count_served(self, lane: int, tasks: int) -> None:
        if lane != REVISITS:
            self._tiers.count_served(lane, tasks)
        self._shares.count_served(_AGAIN if lane == REVISITS else _NEW, tasks)

    def _grant(
        self,
        tx: Transaction,
        ident: bytes,
        host: HostRow,
        tier: int,
        worker: str,
        duration: float,
        room: int,
        unpaced: int,
    ) -> HostLease | None:
        """With `room` tasks at most, `unpaced` where the host is asked one after the other without a pause."""
        tx.touch(ident)
        cache, by_the_clock = tx.cache, tx.cache.by_the_clock
        own_delay = cache.delay_of(host)
        closes_at, today = None, _NO_LIMIT
        if self._limits.concerns(host):
            opening = self._limits.open(tx, host, max(tx.now, cache.rested_at(own_delay)))
            if opening is None:
                return None
            closes_at = opening.closes_at
            today = _NO_LIMIT if opening.most is None else opening.most
        capped = self._addresses.concerns(host)
        delay = self._addresses.reserve(tx, ident, host, own_delay) if capped else own_delay
        if delay is None:
            return None
        parallel = host.policy.parallel if host.policy and host.policy.parallel else 1
        tx.tally.token += 1
        lease = LeaseRow(
            tx.tally.token,
            worker,
            tx.now + duration,
            [0] * LANES,
            delay=delay,
            parallel=parallel,
            duration=duration,
        )
        only_again = room <= 0 and not self._awaited
        room = _NO_LIMIT if room <= 0 else room
        rest, fit = delay, self._fitting(delay, parallel, duration, room, unpaced)
        if capped:
            rest = max(delay, self._addresses.window)
            # a booking lasts as long as its lease: with one request in several windows, that would be a waste
            fit = fit if delay <= self._addresses.window else 1
        lanes = (REVISITS,) if only_again else _FROM[tier]
        tasks = self._choose(tx, ident, host, lease, lanes, min(room, fit, today))
        if not tasks:
            if host.queue.is_over_budget:
                self._readmission.recall_if_earned(tx, host)
            return None
        tx.begin_lease(ident, host, lease, [LeasedTask(task.key, slot) for task, slot in tasks])
        return HostLease(
            host=Host(host.host),
            token=Token(lease.token),
            delay=delay,
            parallel=parallel,
            not_before=by_the_clock(
                max(tx.now, cache.earliest_start(host), host.pace.last_start + delay, cache.rested_at(rest))
            ),
            deadline=by_the_clock(lease.deadline),
            tasks=tuple(task for task, _ in tasks),
            verify_tls=host.policy.verify_tls if host.policy else None,
            session=host.session,
            closes_at=closes_at,
            ignore_walls=host.policy is not None and host.policy.ignore_walls,
            signal=cache.rules(ident, key).content_signal if (key := host.robots.rules_key) else "",
            tdm=host.robots.tdm,
            weighs_rendering=self._renders.mode_of(host) != NEVER,
        )

    def _fitting(self, delay: float, parallel: int, duration: float, room: int, unpaced: int) -> int:
        """How many tasks a lease has at most, of the `room` that there is."""
        usual = min(self._settings.frontier.tasks_per_lease, max(_FEW_TASKS, room // _SHARED_AMONG))
        fit = _fit(delay, parallel, duration, usual)
        return min(fit, unpaced) if not delay and parallel == 1 else fit

    def _choose(
        self,
        tx: Transaction,
        ident: bytes,
        host: HostRow,
        lease: LeaseRow,
        lanes: tuple[int, ...],
        most: int,
    ) -> list[tuple[Task, bytes]]:
        if tx.cache.blocklists.line_forbidding_host(host.host) and not host.queue.errands:
            # not even its robots.txt is asked for: what waits here is refused
            return self._pages(tx, ident, host, lease, lanes, most)
        # robots.txt counts as a task served too: else a tier full of new hosts would starve the others
        if host.queue.errands:
            errands = _errands(tx, ident, host, lease, most)
            self._count_served(lanes[0], len(errands))
            return errands
        refused_earlier = host.health.address_refused and host.health.refused_at < tx.cache.rested_at(0.0)
        if host.robots.until <= tx.now or refused_earlier:
            self._count_served(lanes[0], 1)
            lease.robots = 1
            url = robots_url(Host(host.host))
            return [(_robots_task(host, url), b"")]
        return self._pages(tx, ident, host, lease, lanes, most)

    def _pages(
        self,
        tx: Transaction,
        ident: bytes,
        host: HostRow,
        lease: LeaseRow,
        lanes: tuple[int, ...],
        most: int,
    ) -> list[tuple[Task, bytes]]:
        """The tier whose turn it is goes first; the rest of the lease is filled by urgency. While depth
        probes are under way they go first: what else is leased meanwhile may be a trap's."""
        chosen: list[tuple[Task, bytes]] = []
        if self.judges_again or (host.policy is not None and host.policy.budget is not None):
            left = self._readmission.budget_left(host)
            if left is not None and left <= 0:
                self._refuse_some(tx, ident, host)
                return chosen
            most = most if left is None else min(most, left)
        if self._traps.enabled and lease.parallel == 1:
            # a host has to show what its pages are worth before many are asked for at once
            most = min(most, max(CAUTIOUS, 2 * (host.novelty.novel + host.novelty.entries)))
            if host.novelty.depth_probing:
                most = min(most, TASKS_WHILE_PROBING)
                lanes = _FROM[DEPTH_PROBE_TIER] if len(lanes) > 1 else lanes
        all_of_it = tx.read_small_host(ident, host)
        for lane_tier in lanes:
            if len(chosen) >= most or not host.queue.lengths[lane_tier]:
                continue
            taken = self._take(tx, ident, host, lane_tier, most - len(chosen), all_of_it)
            lease.pages[lane_tier] = len(taken)
            host.queue.lengths[lane_tier] -= len(taken)
            tx.tally.tiers[lane_tier] -= len(taken)
            self._count_served(lane_tier, len(taken))
            chosen += taken
        tx.tally.revisits.leased += lease.pages[REVISITS]
        tx.count(UrlState.QUEUED, -len(chosen))
        tx.count(UrlState.IN_PROGRESS, len(chosen))
        return chosen

    def _refuse_some(self, tx: Transaction, ident: bytes, host: HostRow) -> None:
        """The budget of a host is spent, and was larger when these URLs were let in."""
        refused = self._readmission.refusal_by_budget(host)
        places = (
            (tier, place) for tier in range(TIERS) for place in queries.waiting(tx.cache, ident, host, tier)
        )
        for tier, (slot, key) in itertools.islice(places, _MOST_DENIED):
            row = tx.url(key)
            if row is None or row.slot != slot:
                tx.drop_slot(slot)
                continue
            tx.raise_low(host, tier, slot)
            refuse(tx, key, row, host, tier, *refused)
        host.queue.is_over_budget = True

    def _take(
        self,
        tx: Transaction,
        ident: bytes,
        host: HostRow,
        tier: int,
        most: int,
        all_of_it: QueueOfHost | None,
    ) -> list[tuple[Task, bytes]]:
        """The first allowed URLs of one lane. What robots.txt denies, a verdict stops or the host's address
        forbids is settled on the way. `all_of_it` is what waits in the host, if that has been read."""
        taken: list[tuple[Task, bytes]] = []
        rules = tx.cache.rules(ident, host.robots.rules_key)
        passed_over = 0
        is_first_left = True
        # only where a lease is long enough for a verdict to fall meanwhile
        is_careful = self._traps.enabled and most > CAUTIOUS and bool(host.novelty.repeats)
        shares = Shares(tx, ident, host.novelty) if is_careful else None
        places = (
            queries.waiting(tx.cache, ident, host, tier) if all_of_it is None else all_of_it.get(tier, ())
        )
        for slot, key, row in _queued(tx, places, shares):
            if is_first_left:
                tx.raise_low(host, tier, slot)
            if row is not None and self._settle_unasked(tx, UrlKey(key), row, host, tier, rules):
                if tx.tally.renders is not None:
                    self._renders.answered(tx, UrlKey(key))
                passed_over += 1
            elif (
                row is None
                or (self._awaited and tier != REVISITS and KINDS[row.found.kind].is_page)
                or (shares is not None and not shares.take(key, row.url))
            ):
                if row is not None:
                    # of the JDK's documentation 1.4 for each that is taken
                    tx.keep_waiting(key)
                passed_over += 1
                is_first_left = False
            else:
                taken.append((self._page_task(UrlKey(key), row), slot))
                if row.found.form and KINDS[row.found.kind].is_sent_once:
                    # on disk before it can be sent
                    row.found.is_out = True
                    tx.put_url(UrlKey(key), row)
                    tx.keep_leased(key)
                    break
                tx.keep_leased(key)
                is_first_left = False
            if len(taken) >= most or passed_over >= _MOST_DENIED:
                break
        return taken

    def _settle_unasked(
        self, tx: Transaction, key: UrlKey, row: UrlRow, host: HostRow, tier: int, rules: Rules
    ) -> bool:
        """Whether this URL came to its end here, without a request."""
        if row.found.is_out:
            give_up(tx, key, row, host, tier)
            return True
        if host.health.address_refused:
            refuse(tx, key, row, host, tier, FailureKind.ADDRESS_REFUSED, host.health.address_refused)
            return True
        lists = tx.cache.blocklists
        if lists.are_any and (listed := lists.line_forbidding(host.host, row.url)):
            refuse(tx, key, row, host, tier, Refusal.BLOCKLIST, listed)
            return True
        if self.judges_again and (refused := self._readmission.judge_queued(tx, key, row)):
            refuse(tx, key, row, host, tier, *refused)
            return True
        if rules is not ALLOW_ALL and not (ruling := rules.decide(target_of(row.url))).allowed:
            deny(tx, key, row, host, tier, f"line {ruling.line}: {ruling.rule}")
            return True
        if not host.novelty.traps and not tx.tally.domains:
            return False
        stopped = self._stopped(tx, key, row, host)
        if stopped is not None:
            stop(tx, key, row, host, tier, stopped)
        return stopped is not None

    def _stopped(self, tx: Transaction, key: UrlKey, row: UrlRow, host: HostRow) -> Stopped | None:
        """The verdict that fell since this URL was queued. What was fetched before has shown its worth."""
        if (
            row.found.via is Via.SEED
            or not KINDS[row.found.kind].is_stoppable
            or not row.found.depth
            or row.answer.body_status
        ):
            return None
        found = self._traps.check_url(tx, key, row.url, host)
        return None if found is None or found[0] == row.trap else found

    def _page_task(self, key: UrlKey, row: UrlRow) -> Task:
        answer = row.answer
        is_read_whole = answer.at <= self.requisites_since and KINDS[row.found.kind].is_page
        return Task(
            kind=row.found.kind,
            key=key,
            url=row.url,
            depth=row.found.depth,
            hops=row.found.hops,
            attempt=row.attempts + 1,
            etag="" if is_read_whole else answer.etag,
            last_modified="" if is_read_whole else answer.last_modified,
            digest=answer.digest,
            nesting=row.found.nesting,
            form=row.found.form,
        )

    # -- ending

    def release(self, tx: Transaction, ident: bytes, host: HostRow) -> None:
        """Something may have been sent that no outcome tells of: space the next start from now."""
        host.pace.last_start = max(host.pace.last_start, tx.now)
        if host.load is not None and host.lease is not None:
            count_unheard(tx, host, host.lease, host.lease.parallel)
        tx.end_lease(ident, host)

    def renew(self, tx: Transaction, ident: bytes, lease: LeaseRow, duration: float) -> float:
        tx.extend_lease(ident, lease, duration)
        self._barrier.remember(tx, lease.worker, duration)
        return tx.cache.by_the_clock(lease.deadline)

    def expire(self, tx: Transaction, *, all_of_them: bool) -> int:
        """Leases past their deadline end; all of them when their workers are known to be dead. A worker may
        have sent a request at the last moment, so the host rests for its delay from then."""
        if all_of_them:
            self._barrier.opened(tx)
        ended = 0
        for ending in queries.consume_lease_ends(tx.cache, None if all_of_them else tx.now):
            host = tx.touch(ending.ident)
            if host is None or host.lease is None:
                tx.drop_lease_end(ending)
                continue
            if all_of_them and self._outlives_its_owner(tx, host.lease):
                usual = self._settings.frontier.lease_duration
                tx.extend_lease(ending.ident, host.lease, max(host.lease.duration, usual))
                continue
            last = self._end_of(tx, host.lease) if all_of_them else max(host.lease.deadline, ending.at)
            host.pace.last_start = max(host.pace.last_start, last)
            if host.load is not None:
                count_unheard(tx, host, host.lease, host.lease.outstanding())
            tx.end_lease(ending.ident, host)
            ended += 1
        return ended

    def _outlives_its_owner(self, tx: Transaction, lease: LeaseRow) -> bool:
        """A partition's leases are in its log, and its next owner takes what comes of them. They are as long as
        they can be by any clock; a worker ends its own somewhat sooner."""
        return tx.cache.partition is not None and lease.worker.startswith(REMOTE)

    def _end_of(self, tx: Transaction, lease: LeaseRow) -> float:
        """The process that gave the lease is dead. A worker of another may go on until its deadline, of which
        only this is certain: stored times are by a clock that may have been set since. Where the frontier has
        moved, that process may be alive, and so its own workers."""
        if not (lease.worker.startswith(REMOTE) or tx.cache.has_moved):
            return tx.now
        return tx.now + max(lease.duration, self._settings.frontier.lease_duration)


def _new_tasks(host: HostRow, lease: HostLease) -> int:
    return len(lease.tasks) - (host.lease.pages[REVISITS] if host.lease is not None else 0)


def _fit(delay: float, parallel: int, duration: float, usual: int) -> int:
    """As many tasks as a polite worker finishes well before the deadline."""
    if parallel > 1:
        wanted = parallel * _TASKS_PER_PARALLEL
    else:
        wanted = min(max(usual, int(_LEASE_SECONDS / max(delay, 0.001))), _MOST_TASKS)
    # starts are a delay apart, also when several may be in flight
    in_time = int(duration / 2 / delay) if delay > 0 else wanted
    return max(1, min(wanted, in_time))


def _errands(
    tx: Transaction, ident: bytes, host: HostRow, lease: LeaseRow, most: int
) -> list[tuple[Task, bytes]]:
    chosen: list[tuple[Task, bytes]] = []
    for slot, key, errand in itertools.islice(queries.errands(tx.cache, ident), most):
        task = Task(
            kind=TaskKind.ROBOTS, key=key, url=errand.url, hops=errand.hops, behalf=Host(errand.behalf)
        )
        chosen.append((task, slot))
    lease.errands = len(chosen)
    host.queue.errands -= len(chosen)
    return chosen


def _queued(
    tx: Transaction, places: Iterable[tuple[bytes, bytes]], shares: Shares | None
) -> Iterator[tuple[bytes, bytes, UrlRow | None]]:
    """Slots, keys and rows; without its row what is one too many of its kind."""
    for slot, key in places:
        if shares is not None and shares.is_used_up(key):
            yield slot, key, None
            continue
        row = tx.url(key)
        if row is None or row.slot != slot:
            tx.drop_slot(slot)
        else:
            yield slot, key, row


def _robots_task(host: HostRow, url: str) -> Task:
    """Asked for conditionally when its last reading came with validators."""
    return Task(
        kind=TaskKind.ROBOTS,
        key=robots_key(Host(host.host)),
        url=url,
        etag=host.robots.etag,
        last_modified=host.robots.last_modified,
        digest=host.robots.digest,
    )
