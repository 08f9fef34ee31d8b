"""Leasing: which hosts are ready, whose turn it is, and which of their URLs a worker gets.

A host is found through the ready index: per tier, ordered by when it may be asked. What is handed out stays in
the queue until it is settled. Robots are decided here, at the last moment, with the rules in force now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from skitter.frontier.base import REMOTE
from skitter.frontier.rocks.addresses import Addresses
from skitter.frontier.rocks.book import Book
from skitter.frontier.rocks.elsewhere import Elsewhere
from skitter.frontier.rocks.growth import LINE_TIER, SOUNDED
from skitter.frontier.rocks.rows import (
    ERRAND_LANE,
    HostRow,
    LeasedTask,
    LeaseRow,
    UrlRow,
    decode_errand,
    micros,
    seconds,
)
from skitter.frontier.rocks.traps import CAUTIOUS, Shares, Stopped, Traps
from skitter.frontier.rocks.turn import Turn, Waiting
from skitter.frontier.rocks.unasked import deny, refuse, stop
from skitter.model import FailureKind, Host, HostLease, Refusal, Task, TaskKind, Token, UrlKey, UrlState, Via
from skitter.robots.rules import ALLOW_ALL, Rules
from skitter.schedule.priority import TIERS, TierTurns
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
_END = b"\xff" * 8
# The order in which lanes are looked at, by the one that is first.
_FROM = [(tier, *(other for other in range(TIERS) if other != tier)) for tier in range(TIERS)]
# an enum's own attribute takes 0.1 us, eight times as long
_PAGE = TaskKind.PAGE


class Leasing:
    def __init__(self, settings: Settings, addresses: Addresses, traps: Traps) -> None:
        self._traps = traps
        self._settings = settings
        self._turns = TierTurns(settings.frontier.tier_weights)
        self._addresses = addresses
        self._elsewhere = Elsewhere(settings.frontier.lease_duration)

    # -- granting

    def lease(
        self,
        turn: Turn,
        worker: str,
        capacity: int,
        duration: float,
        most_tasks: int | None = None,
        staggered: bool = False,
    ) -> list[HostLease]:
        granted: list[HostLease] = []
        if not self._elsewhere.has_ended(turn):
            return granted
        self._elsewhere.remember(turn, worker, duration)
        waiting = {tier: _ready_hosts(turn.book, tier, turn.now) for tier in range(TIERS)}
        room = turn.room(self._settings.crawl.max_pages)
        self._addresses.sent_away = 0
        while waiting and len(granted) < capacity and room > 0:
            if self._addresses.sent_away >= _MOST_SENT_AWAY:
                break
            tier = self._turns.next_of(list(waiting))
            ident = next(waiting[tier], None)
            if ident is None:
                del waiting[tier]
                self._turns.empty(tier)
                continue
            host = turn.book.host(ident)
            if host is None or host.lease is not None:
                continue
            most = room if most_tasks is None else min(room, most_tasks)
            unpaced = _STAGGERED[len(granted) % len(_STAGGERED)] if staggered else _MOST_TASKS
            lease = self._grant(turn, ident, host, tier, worker, duration, most, unpaced)
            if lease is not None:
                granted.append(lease)
                room -= len(lease.tasks)
        return granted

    def _grant(
        self,
        turn: Turn,
        ident: bytes,
        host: HostRow,
        tier: int,
        worker: str,
        duration: float,
        room: int,
        unpaced: int,
    ) -> HostLease | None:
        """With `room` tasks at most, `unpaced` where the host is asked one after the other without a pause."""
        turn.touch(ident)
        book, by_the_clock = turn.book, turn.book.by_the_clock
        own_delay = book.delay_of(host)
        capped = self._addresses.concerns(host)
        delay = self._addresses.book(turn, ident, host, own_delay) if capped else own_delay
        if delay is None:
            return None
        parallel = host.policy.parallel if host.policy and host.policy.parallel else 1
        turn.tally.token += 1
        lease = LeaseRow(
            turn.tally.token,
            worker,
            turn.now + duration,
            [0] * TIERS,
            delay=delay,
            parallel=parallel,
            duration=duration,
        )
        rest, fit = delay, self._fitting(delay, parallel, duration, room, unpaced)
        if capped:
            rest = max(delay, self._addresses.window)
            # a booking lasts as long as its lease: with one request in several windows, that would be a waste
            fit = fit if delay <= self._addresses.window else 1
        tasks = self._choose(turn, ident, host, lease, tier, min(room, fit))
        if not tasks:
            return None
        turn.begin_lease(ident, host, lease, [LeasedTask(task.key, slot) for task, slot in tasks])
        return HostLease(
            host=Host(host.host),
            token=Token(lease.token),
            delay=delay,
            parallel=parallel,
            not_before=by_the_clock(
                max(turn.now, book.earliest_start(host), host.last_start + delay, book.rested_at(rest))
            ),
            deadline=by_the_clock(lease.deadline),
            tasks=tuple(task for task, _ in tasks),
            verify_tls=host.policy.verify_tls if host.policy else None,
        )

    def _fitting(self, delay: float, parallel: int, duration: float, room: int, unpaced: int) -> int:
        """How many tasks a lease has at most, of the `room` that there is."""
        usual = min(self._settings.frontier.tasks_per_lease, max(_FEW_TASKS, room // _SHARED_AMONG))
        fit = _fit(delay, parallel, duration, usual)
        return min(fit, unpaced) if not delay and parallel == 1 else fit

    def _choose(
        self, turn: Turn, ident: bytes, host: HostRow, lease: LeaseRow, tier: int, most: int
    ) -> list[tuple[Task, bytes]]:
        if turn.book.blocklists.line_against_host(host.host) and not host.errands:
            # not even its robots.txt is asked for: what waits here is refused
            return self._pages(turn, ident, host, lease, tier, most)
        # robots.txt counts as a task served too: else a tier full of new hosts would starve the others
        if host.errands:
            errands = _errands(turn, ident, host, lease, most)
            self._turns.served(tier, len(errands))
            return errands
        refused_earlier = host.address_refused and host.refused_at < turn.book.rested_at(0.0)
        if host.robots_until <= turn.now or refused_earlier:
            self._turns.served(tier, 1)
            lease.robots = 1
            url = robots_url(Host(host.host))
            return [(_robots_task(host, url), b"")]
        return self._pages(turn, ident, host, lease, tier, most)

    def _pages(
        self, turn: Turn, ident: bytes, host: HostRow, lease: LeaseRow, tier: int, most: int
    ) -> list[tuple[Task, bytes]]:
        """The tier whose turn it is goes first; the rest of the lease is filled by urgency. Of a host that is
        being sounded the lines go first: what else is leased meanwhile may be a trap's."""
        chosen: list[tuple[Task, bytes]] = []
        if self._traps.enabled and lease.parallel == 1:
            # a host has to show what its pages are worth before many are asked for at once
            most = min(most, max(CAUTIOUS, 2 * host.novel))
            if host.sounding:
                most, tier = min(most, SOUNDED), LINE_TIER
        all_of_it = turn.small_host(ident, host)
        for lane_tier in _FROM[tier]:
            if len(chosen) >= most or not host.queued[lane_tier]:
                continue
            taken = self._take(turn, ident, host, lane_tier, most - len(chosen), all_of_it)
            lease.pages[lane_tier] = len(taken)
            host.queued[lane_tier] -= len(taken)
            turn.tally.tiers[lane_tier] -= len(taken)
            self._turns.served(lane_tier, len(taken))
            chosen += taken
        turn.count(UrlState.QUEUED, -len(chosen))
        turn.count(UrlState.IN_PROGRESS, len(chosen))
        return chosen

    def _take(
        self, turn: Turn, ident: bytes, host: HostRow, tier: int, most: int, all_of_it: Waiting | None
    ) -> list[tuple[Task, bytes]]:
        """The first allowed URLs of one lane. What robots.txt denies, a verdict stops or the host's address
        forbids is settled on the way. `all_of_it` is what waits in the host, if that has been read."""
        taken: list[tuple[Task, bytes]] = []
        rules = turn.book.rules(ident, host.robots_mark)
        passed_over = 0
        is_first_left = True
        # only where a lease is long enough for a verdict to fall meanwhile
        is_careful = self._traps.enabled and most > CAUTIOUS and bool(host.repeats)
        shares = Shares(turn, ident) if is_careful else None
        places = _places(turn, ident, host, tier) if all_of_it is None else all_of_it.get(tier + 1, ())
        for slot, key, row in _queued(turn, places, shares):
            if is_first_left:
                host.lows[tier] = slot[9:]  # all before it are gone, so the next look starts here
            if row is not None and self._settled_unasked(turn, UrlKey(key), row, host, tier, rules):
                passed_over += 1
            elif row is None or (shares is not None and not shares.take(key, row.url)):
                if row is not None:
                    # of the JDK's documentation 1.4 for each that is taken
                    turn.passed_over(key)
                passed_over += 1
                is_first_left = False
            else:
                taken.append((_page_task(UrlKey(key), row), slot))
                turn.out(key)
                is_first_left = False
            if len(taken) >= most or passed_over >= _MOST_DENIED:
                break
        return taken

    def _settled_unasked(
        self, turn: Turn, key: UrlKey, row: UrlRow, host: HostRow, tier: int, rules: Rules
    ) -> bool:
        """Whether this URL came to its end here, without a request."""
        if host.address_refused:
            refuse(turn, key, row, host, tier, FailureKind.ADDRESS_REFUSED, host.address_refused)
            return True
        lists = turn.book.blocklists
        if lists.are_any and (listed := lists.line_against(host.host, row.url)):
            refuse(turn, key, row, host, tier, Refusal.BLOCKLIST, listed)
            return True
        if rules is not ALLOW_ALL and not (ruling := rules.decide(target_of(row.url))).allowed:
            deny(turn, key, row, host, tier, f"line {ruling.line}: {ruling.rule}")
            return True
        if not host.traps and not turn.tally.domains:
            return False
        stopped = self._stopped(turn, key, row, host)
        if stopped is not None:
            stop(turn, key, row, host, tier, stopped)
        return stopped is not None

    def _stopped(self, turn: Turn, key: UrlKey, row: UrlRow, host: HostRow) -> Stopped | None:
        """The verdict that fell since this URL was queued. What was fetched before has shown its worth."""
        if row.via in (Via.SEED, Via.PROBE) or row.requisite or not row.depth or row.body_status:
            return None
        found = self._traps.stopped(turn, key, row.url, host)
        return None if found is None or found[0] == row.trap else found

    # -- ending

    def release(self, turn: Turn, ident: bytes, host: HostRow) -> None:
        """Something may have been sent that no outcome tells of: space the next start from now."""
        host.last_start = max(host.last_start, turn.now)
        turn.end_lease(ident, host)

    def renew(self, turn: Turn, ident: bytes, lease: LeaseRow, duration: float) -> float:
        turn.delete("timers", micros(lease.deadline) + ident)
        lease.deadline, lease.duration = turn.now + duration, duration
        self._elsewhere.remember(turn, lease.worker, duration)
        turn.set_timer(ident, lease)
        return turn.book.by_the_clock(lease.deadline)

    def expire(self, turn: Turn, *, all_of_them: bool) -> int:
        """Leases past their deadline end; all of them when their workers are known to be dead. A worker may
        have sent a request at the last moment, so the host rests for its delay from then."""
        book = turn.book
        if all_of_them:
            self._elsewhere.opened(turn)
        end = _END if all_of_them else micros(turn.now) + _END
        ended, low = 0, end
        for key, _ in book.store.scan("timers", book.timers_low, end):
            low = min(low, key)
            host = turn.touch(key[8:])
            if host is None or host.lease is None:
                turn.delete("timers", key)
                continue
            last = (
                self._end_of(turn, host.lease) if all_of_them else max(host.lease.deadline, seconds(key[:8]))
            )
            host.last_start = max(host.last_start, last)
            turn.end_lease(key[8:], host)
            ended += 1
        book.timers_low = low
        return ended

    def _end_of(self, turn: Turn, lease: LeaseRow) -> float:
        """The process that gave the lease is dead. A worker of another may go on until its deadline, of which
        only this is certain: stored times are by a clock that may have been set since."""
        if not lease.worker.startswith(REMOTE):
            return turn.now
        return turn.now + max(lease.duration, self._settings.frontier.lease_duration)


def _fit(delay: float, parallel: int, duration: float, usual: int) -> int:
    """As many tasks as a polite worker finishes well before the deadline."""
    if parallel > 1:
        wanted = parallel * _TASKS_PER_PARALLEL
    else:
        wanted = min(max(usual, int(_LEASE_SECONDS / max(delay, 0.001))), _MOST_TASKS)
    # starts are a delay apart, also when several may be in flight
    in_time = int(duration / 2 / delay) if delay > 0 else wanted
    return max(1, min(wanted, in_time))


def _ready_hosts(book: Book, tier: int, now: float) -> Iterator[bytes]:
    end = bytes((tier,)) + micros(now) + _END
    for key in book.ready.walk(book.store, tier, end):
        yield key[9:]


def _errands(turn: Turn, ident: bytes, host: HostRow, lease: LeaseRow, most: int) -> list[tuple[Task, bytes]]:
    chosen: list[tuple[Task, bytes]] = []
    for slot, raw in turn.book.store.scan("queue", ident + bytes((ERRAND_LANE,)), ident + b"\1"):
        if len(chosen) >= most:
            break
        errand = decode_errand(raw)
        key = UrlKey(ident + slot[10:])
        chosen.append(
            (
                Task(
                    kind=TaskKind.ROBOTS,
                    key=key,
                    url=errand.url,
                    hops=errand.hops,
                    behalf=Host(errand.behalf),
                ),
                slot,
            )
        )
    lease.errands = len(chosen)
    host.errands -= len(chosen)
    return chosen


def _places(turn: Turn, ident: bytes, host: HostRow, tier: int) -> Iterable[tuple[bytes, bytes]]:
    lane = ident + bytes((tier + 1,))
    return turn.book.store.scan("queue", lane + host.lows[tier], ident + bytes((tier + 2,)))


def _queued(
    turn: Turn, places: Iterable[tuple[bytes, bytes]], shares: Shares | None
) -> Iterator[tuple[bytes, bytes, UrlRow | None]]:
    """Slots, keys and rows; without its row what is one too many of its kind."""
    for slot, key in places:
        if shares is not None and shares.is_used_up(key):
            yield slot, key, None
            continue
        row = turn.url(key)
        if row is None or row.slot != slot:
            turn.delete("queue", slot)
        else:
            yield slot, key, row


def _robots_task(host: HostRow, url: str) -> Task:
    """Asked for conditionally when its last reading came with validators."""
    return Task(
        kind=TaskKind.ROBOTS,
        key=robots_key(Host(host.host)),
        url=url,
        etag=host.robots_etag,
        last_modified=host.robots_last_modified,
        digest=host.robots_digest,
    )


def _page_task(key: UrlKey, row: UrlRow) -> Task:
    return Task(
        kind=_PAGE,
        key=key,
        url=row.url,
        depth=row.depth,
        hops=row.hops,
        attempt=row.attempts + 1,
        etag=row.etag,
        last_modified=row.last_modified,
        digest=row.digest,
        requisite=row.requisite,
    )
