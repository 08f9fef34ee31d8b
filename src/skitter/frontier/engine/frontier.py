"""The embedded frontier: the contract on RocksDB, one atomic batch per call.

Everything is on disk in the order it is needed, so a restart has nothing to rebuild. The store's lock admits one
process, therefore a lease found at opening belongs to a worker that died with its process: such leases end at
once, and their hosts rest for their delay from now, since a request may have been sent just before.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from skitter.clock import Clock
from skitter.errors import SettingsError, SkitterError
from skitter.frontier.base import (
    Admitted,
    DeadLetter,
    Explanation,
    Freshness,
    Horizon,
    HostExplanation,
    HostLedger,
    HostOutlook,
    HostStanding,
    HostView,
    LeaseView,
    RuleChanges,
    Settled,
    Settlement,
    Stats,
    TrapView,
    Upcoming,
    UrlList,
    UrlView,
    Witness,
)
from skitter.frontier.base import Settling as SettlingAct
from skitter.frontier.engine.addresses import Addresses, cancel_appointment
from skitter.frontier.engine.admission import Admission
from skitter.frontier.engine.answers.near_duplicates import prepare
from skitter.frontier.engine.changed_rules.readmission import Readmission
from skitter.frontier.engine.changed_rules.rejudge import note_rules, take_step
from skitter.frontier.engine.changed_rules.rules_in_force import loosened_by_policy, rules_of
from skitter.frontier.engine.changed_rules.walks import begin_walk
from skitter.frontier.engine.explain.freshness import FreshnessWalk
from skitter.frontier.engine.explain.host_ledger import HostLedgerWalk
from skitter.frontier.engine.explain.host_report import live_leases
from skitter.frontier.engine.explain.traps import trap_views
from skitter.frontier.engine.explain.views import Views
from skitter.frontier.engine.forgetting import Forgetting
from skitter.frontier.engine.health import Health
from skitter.frontier.engine.importance import Importance, hear
from skitter.frontier.engine.judging import judge
from skitter.frontier.engine.leasing import Leasing
from skitter.frontier.engine.load_limits import open_again
from skitter.frontier.engine.posting import take_posts
from skitter.frontier.engine.regions import Regions
from skitter.frontier.engine.renders import Renders
from skitter.frontier.engine.requeue import (
    end_wait,
    forgive_certificate,
    pardon_some,
    promote,
    readmit_addresses,
    refresh_one,
    refresh_some,
    requeue_dead,
    retry_some,
    revive,
)
from skitter.frontier.engine.revisiting.revisits import Revisits
from skitter.frontier.engine.settling import Settling
from skitter.frontier.engine.traps.rules import Traps
from skitter.frontier.engine.traps.verdicts import UNDONE, end, release_some
from skitter.frontier.engine.uploads.lost_segments import give_back_some
from skitter.frontier.engine.uploads.not_uploaded import let_go
from skitter.frontier.link_batches import runs_of
from skitter.frontier.posts import WaitingPost
from skitter.frontier.priority_lock import PriorityLock
from skitter.frontier.rows import HostRow, Note
from skitter.frontier.tables import queries
from skitter.frontier.tables.queries import Cursor
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.transaction import Transaction
from skitter.model import (
    AnswerAt,
    Copy,
    Discovered,
    Host,
    HostLease,
    HostPolicy,
    LinkBatch,
    Outcome,
    RecordAt,
    RenderTask,
    SegmentMark,
    Token,
    UrlKey,
    UrlState,
    Verdict,
)
from skitter.plan.estimate import Estimate
from skitter.schedule.priority import ByDepthAndLinks, ByLinks, Prioritizer
from skitter.settings import KeySettings, Settings
from skitter.settings.toml_text import toml_value
from skitter.urls.canonical import host_id, normalise
from skitter.urls.scope import Scope

if TYPE_CHECKING:
    from skitter.urls.seed_rules import SeedRules

_encode = msgspec.msgpack.encode
_decode_keys = msgspec.msgpack.Decoder(KeySettings).decode
_ADMIT_BATCH = 5_000
Tell = Callable[[Mapping[str, int]], None]
# Of URLs that are looked at for a list, 2,000 each: some 0.2 s in all, with turns for others.
_MOST_SLICES = 50
# Of 10,000 keys each, once a second: a tenth of a core, and 20 million keys in some four minutes.
_RELEARNT_AT_ONCE = 10
_Move = Callable[[Transaction, Cursor, Host | None], tuple[int, Cursor | None]]
"""Moves up to a slice of the URLs of a table from a place on: how many, and where to go on."""


class _OpenSettling:
    """The act that `settling` opens; the frontier's lock is held until it ends."""

    def __init__(
        self,
        verdicts: list[Settled],
        settle: Callable[[Sequence[Outcome], Sequence[SegmentMark]], Awaitable[list[Settlement]]],
    ) -> None:
        self.verdicts = verdicts
        self._settle = settle
        self._is_committed = False

    async def commit(
        self, outcomes: Sequence[Outcome], marks: Sequence[SegmentMark] = ()
    ) -> list[Settlement]:
        assert not self._is_committed, "a settling is committed once"
        self._is_committed = True
        return await self._settle(outcomes, marks)


class EngineFrontier:
    def __init__(
        self,
        cache: RowCache,
        settings: Settings,
        clock: Clock,
        prioritizer: Prioritizer | None = None,
        tell: Tell | None = None,
    ) -> None:
        """`tell` is told how many refused URLs came back, by reason, when all were looked at."""
        self._clock = clock
        # One call that writes at a time: a settling is open while its caller archives, and that may await.
        self._lock = PriorityLock()
        self._is_closed = False
        self._witness: Witness | None = None
        self._cache = cache
        self._keys = cache.keys
        self._check_keys(settings.keys)
        self._max_pages = settings.crawl.max_pages
        self._holds = bool(settings.archive.url)
        scope = Scope(settings.crawl, settings.fetch.max_redirects, settings.focus.tunnel)
        traps = Traps(settings.traps)
        importance = Importance(settings.frontier.importance)
        self._admission = Admission(
            scope,
            settings.politeness,
            prioritizer or (ByLinks() if settings.frontier.importance else ByDepthAndLinks()),
            traps,
            settings.sitemaps.max_files,
            _seed_rules(settings),
            importance,
        )
        addresses = Addresses(settings.politeness.address_rate)
        self._readmission = Readmission(
            self._admission, takes_requisites=settings.crawl.requisites, types=settings.plugins.types
        )
        self._renders = Renders(settings, self._admission, traps)
        regions = Regions()
        self._leasing = Leasing(settings, addresses, traps, self._readmission, self._renders, regions)
        self._health = Health(settings)
        self._revisits = Revisits(settings)
        self._settling = Settling(
            settings,
            self._admission,
            self._health,
            addresses,
            traps,
            self._revisits,
            self._renders,
            importance,
            regions,
        )
        self._views = Views(self._cache, self._admission, settings)
        self._settings = settings
        self._tell = tell
        self._came_back: Counter[str] = Counter()
        self.rule_changes = RuleChanges()
        """What became of the rules of admission at this opening."""
        if not cache.read_only:
            self._cache.blocklists.load()
            self._begin()

    def _check_keys(self, asked: KeySettings) -> None:
        """The store's own word for the rules that its keys were made with; one without it knows the first."""
        raw = self._cache.note(Note.KEY_RULES)
        known = any(self._cache.tally.urls.values())
        made = _decode_keys(raw) if raw else KeySettings(rules=1) if known else asked
        if made != asked:
            self._cache.close()
            raise SettingsError(
                f"[keys] is not what the URLs in {self._cache.folder} were made with: put back "
                f"{_keys_words(made, asked)} in crawl.toml, or begin a new crawl in another folder"
            )
        if not raw and not self._cache.read_only:
            with Transaction.begin(self._cache, self._clock.now()) as tx:
                tx.set_note(Note.KEY_RULES, _encode(asked))
                tx.set_note(Note.FORMAT, self._cache.format)

    def _begin(self) -> None:
        """Orphaned leases end. What a clean close saved is taken over, and its stamp removed at once: whatever
        happens next, only another clean close makes what is saved believable again."""
        if stamp := self._cache.note(Note.FILTERS):
            self._cache.restore_filters(stamp)
        with Transaction.begin(self._cache, self._clock.now()) as tx:
            self._leasing.expire(tx, all_of_them=True)
            if tx.tally.renders is not None:
                self._renders.end_overdue(tx, all_leases=True)
            if stamp:
                tx.clear_note(Note.FILTERS)
            self.rule_changes = self._note_rules(tx)
            self._revisits.begin(tx)

    def _note_rules(self, tx: Transaction) -> RuleChanges:
        rules = rules_of(self._settings, self._cache.blocklists.digest())
        noted, changes = note_rules(tx, rules)
        self._leasing.judges_again = noted.are_mixed
        self._leasing.requisites_since = noted.requisites_since
        return changes

    def _save_filters(self) -> None:
        stamp = os.urandom(16)
        self._cache.save_filters(stamp)
        with Transaction.begin(self._cache, self._clock.now()) as tx:
            tx.set_note(Note.FILTERS, stamp)

    def attend(self, witness: Witness) -> None:
        self._witness = witness

    # -- the path of a URL

    async def admit(self, discovered: Sequence[Discovered]) -> list[Verdict]:
        verdicts: list[Verdict] = []
        for start in range(0, len(discovered), _ADMIT_BATCH):
            async with self._lock.long, Transaction.begin(self._cache, self._clock.now()) as tx:
                for run in runs_of(discovered[start : start + _ADMIT_BATCH]):
                    verdicts += self._admission.admit_run(tx, run)
        return verdicts

    async def admit_listed(self, link_batches: Sequence[LinkBatch]) -> list[Admitted]:
        admitted: list[Admitted] = []
        for link_batch in link_batches:
            async with self._lock.long, Transaction.begin(self._cache, self._clock.now()) as tx:
                admitted.append(self._settling.admit_listed(tx, link_batch))
            await asyncio.sleep(0)
        return admitted

    async def lease(
        self,
        worker: str,
        capacity: int,
        duration: float,
        *,
        most_tasks: int | None = None,
        staggered: bool = False,
    ) -> list[HostLease]:
        async with self._lock.short:
            now = self._clock.now()
            async with Transaction.begin(self._cache, now) as tx:
                leases = self._leasing.lease(tx, worker, capacity, duration, most_tasks, staggered)
            if self._witness is not None:
                self._witness.leased(worker, len(leases), now)
            return leases

    @contextlib.asynccontextmanager
    async def settling(self, outcomes: Sequence[Outcome]) -> AsyncIterator[SettlingAct]:
        async with self._lock.long:
            verdicts = judge(self._cache, outcomes, self._cache.room(self._max_pages))
            yield _OpenSettling(verdicts, self._settle)

    async def settle(
        self, outcomes: Sequence[Outcome], marks: Sequence[SegmentMark] = ()
    ) -> list[Settlement]:
        async with self.settling(outcomes) as settling:
            return await settling.commit(outcomes, marks)

    async def _settle(self, outcomes: Sequence[Outcome], marks: Sequence[SegmentMark]) -> list[Settlement]:
        now = self._clock.now()
        async with Transaction.begin(self._cache, now) as tx:
            prepare(tx, (outcome.result for outcome in outcomes))
            settlements = self._settling.settle_all(tx, outcomes)
            for mark in marks:
                tx.put_mark(mark)
                if self._holds:
                    tx.tally.held.setdefault(mark.segment, [0, 0])
        if self._witness is not None:
            self._witness.settled(outcomes, settlements, now)
        return settlements

    @property
    def renders_waiting(self) -> int:
        tally = self._cache.tally.renders
        return 0 if tally is None else tally.queued

    async def lease_renders(self, worker: str, capacity: int, duration: float) -> list[RenderTask]:
        async with self._lock.short, Transaction.begin(self._cache, self._clock.now()) as tx:
            return self._renders.lease(tx, worker, capacity, duration)

    async def release_renders(self, leases: Sequence[tuple[UrlKey, Token]]) -> None:
        async with self._lock.short, Transaction.begin(self._cache, self._clock.now()) as tx:
            self._renders.release(tx, leases)

    async def answers(self, urls: Sequence[str]) -> list[AnswerAt]:
        await self._cache.quiet()
        return self._renders.answers(self._cache, urls)

    async def place_of_copy(self, digest: bytes) -> RecordAt | None:
        await self._cache.quiet()
        return queries.place_of_copy(self._cache, digest)

    async def renew(self, leases: Sequence[tuple[Host, Token]], duration: float) -> list[float | None]:
        async with self._lock.short:
            deadlines: list[float | None] = []
            async with Transaction.begin(self._cache, self._clock.now()) as tx:
                for host, token in leases:
                    ident = host_id(host)
                    row = tx.touch(ident)
                    live = row.lease if row is not None and _holds(row, token) else None
                    deadlines.append(self._leasing.renew(tx, ident, live, duration) if live else None)
            return deadlines

    async def release(self, leases: Sequence[tuple[Host, Token]]) -> None:
        async with self._lock.short, Transaction.begin(self._cache, self._clock.now()) as tx:
            for host, token in leases:
                ident = host_id(host)
                row = tx.touch(ident)
                if row is not None and _holds(row, token):
                    self._leasing.release(tx, ident, row)

    async def reap(self, now: float) -> int:
        async with self._lock.long:
            async with Transaction.begin(self._cache, now) as tx:
                ended = self._leasing.expire(tx, all_of_them=False)
                tx.tally.leases_expired += ended
                if tx.tally.renders is not None:
                    self._renders.end_overdue(tx)
            return ended

    async def promote(self, now: float) -> int:
        await self._relearn()
        async with self._lock.long:
            if await self._cache.blocklists.refresh():
                async with Transaction.begin(self._cache, now) as tx:
                    self._note_rules(tx)
            async with Transaction.begin(self._cache, now) as tx:
                # Emptied queues are read from the store: so before anything is put into them.
                moved = self._health.empty_abandoned(tx) + promote(tx) + release_some(tx)
                step = take_step(tx, self._readmission)
                moved += self._revisits.promote(tx) if self._revisits.enabled else 0
            self._came_back.update(step.back)
            if step.ended and self._tell is not None:
                self._tell(step.ended)
            return moved + step.moved

    async def _relearn(self) -> None:
        """After a crash. Others have the lock in between: a lease waits for one step, not for all of them."""
        for _ in range(_RELEARNT_AT_ONCE):
            async with self._lock.long:
                if not self._cache.relearn_some():
                    return

    # -- the post between partitions

    async def waiting_posts(self, part: int, after: int, most: int) -> list[WaitingPost]:
        """What another partition is to be told, from the post after this number on."""
        await self._cache.quiet()
        return queries.waiting_posts(self._cache, part, after, most)

    async def parts_with_posts(self) -> list[int]:
        """Those that are to be told something. Costs nothing while nobody is."""
        partition = self._cache.partition
        if partition is None or not self._cache.may_have_posts:
            return []
        await self._cache.quiet()
        found = queries.parts_with_posts(self._cache, partition.parts)
        self._cache.may_have_posts = bool(found)
        return found

    async def take_posts(self, source: int, posts: Sequence[WaitingPost]) -> int:
        """From another partition, in one act: how many are new. All of them are kept when this returns."""
        async with self._lock.long, Transaction.begin(self._cache, self._clock.now()) as tx:
            return take_posts(tx, self._settling, source, posts)

    async def posts_taken(self, posts: Sequence[WaitingPost]) -> None:
        async with self._lock.long, Transaction.begin(self._cache, self._clock.now()) as tx:
            tx.drop_posts(posts)

    # -- the archive's part

    async def first_copies(self, digests: Sequence[bytes]) -> list[Copy | None]:
        return [self._cache.copy_of(digest) for digest in digests]

    async def remember_copies(self, copies: Sequence[tuple[bytes, Copy]]) -> int:
        async with self._lock.long:
            new = {digest: copy for digest, copy in copies if self._cache.copy_of(digest) is None}
            async with Transaction.begin(self._cache, self._clock.now()) as tx:
                for digest, copy in new.items():
                    tx.put_copy(digest, copy)
        return len(new)

    async def marks(self) -> list[SegmentMark]:
        held = self._cache.tally.held
        return [
            msgspec.structs.replace(mark, held=True) if mark.segment in held else mark
            for mark in queries.marks(self._cache)
        ]

    async def lost_segments(self) -> list[str]:
        return queries.lost_segments(self._cache)

    async def stored(self, segment: str) -> None:
        async with self._lock.long, Transaction.begin(self._cache, self._clock.now()) as tx:
            if mark := self._cache.mark_of(segment):
                tx.put_mark(msgspec.structs.replace(mark, stored=True))
                let_go(tx, segment)

    async def lost(self, segment: str) -> int:
        fetches, done = 0, segment not in self._cache.tally.held
        while not done:
            async with self._lock.long, Transaction.begin(self._cache, self._clock.now()) as tx:
                some, done = give_back_some(tx, segment)
                if done:
                    tx.lose_mark(segment)
                    if tx.tally.renders is not None:
                        self._renders.give_back_lost(tx, segment)
            fetches += some
        return fetches

    # -- the operator's part

    async def set_policy(self, host: Host, policy: HostPolicy) -> None:
        async with self._lock.long, Transaction.begin(self._cache, self._clock.now()) as tx:
            _, row = tx.host(host)
            before, row.policy = row.policy, None if policy == HostPolicy() else policy
            cancel_appointment(row)
            open_again(row)
            if loosened := loosened_by_policy(before or HostPolicy(), policy):
                begin_walk(tx, loosened, host)
            if policy.verify_tls is False and not (before and before.verify_tls is False):
                forgive_certificate(row)

    async def signal(self, host: Host, useful: float, path: str = "") -> float | None:
        async with self._lock.long, Transaction.begin(self._cache, self._clock.now()) as tx:
            row = tx.touch(host_id(host))
            return None if row is None else hear(tx, row, useful, path)

    async def allow_private(self, allowed: bool) -> int:
        was_allowed = self._cache.note(Note.ALLOWS_PRIVATE) is not None
        if allowed == was_allowed:
            return 0
        moved = await self._in_slices(readmit_addresses, None) if allowed else 0
        async with self._lock.long, Transaction.begin(self._cache, self._clock.now()) as tx:
            if allowed:
                tx.set_note(Note.ALLOWS_PRIVATE, b"1")
            else:
                tx.clear_note(Note.ALLOWS_PRIVATE)
        return moved

    async def retry(self, host: Host) -> int | None:
        async with self._lock.long, Transaction.begin(self._cache, self._clock.now()) as tx:
            row = tx.touch(host_id(host))
            if row is None:
                return None
            end_wait(row)
        return await self._in_slices(retry_some, host)

    def change_settings(self, settings: Settings) -> None:
        self._max_pages = settings.crawl.max_pages
        for part in (self._cache, self._leasing, self._settling, self._views):
            part.change_settings(settings)

    async def requeue(self, *, host: Host | None = None, url: str | None = None) -> int:
        if url is not None:
            fetch_url = normalise(url)
            if fetch_url is None:
                return 0
            async with self._lock.long, Transaction.begin(self._cache, self._clock.now()) as tx:
                return revive(tx, self._keys.key_of(fetch_url))
        await self._in_slices(pardon_some, host)
        return await self._in_slices(requeue_dead, host)

    async def refresh(self, *, host: Host | None = None, url: str | None = None) -> int:
        if url is None:
            return await self._in_slices(refresh_some, host)
        fetch_url = normalise(url)
        if fetch_url is None:
            return 0
        async with self._lock.long, Transaction.begin(self._cache, self._clock.now()) as tx:
            return refresh_one(tx, self._keys.key_of(fetch_url))

    async def _in_slices(self, move: _Move, host: Host | None) -> int:
        """A transaction each, so that a million URLs take no more memory than a slice, and others get theirs."""
        moved, start = 0, queries.FROM_THE_START
        while True:
            async with self._lock.long, Transaction.begin(self._cache, self._clock.now()) as tx:
                some, go_on = move(tx, start, host)
            moved += some
            if go_on is None:
                return moved
            start = go_on
            await asyncio.sleep(0)

    async def horizon(self) -> Horizon:
        await self._cache.quiet()
        return self._views.horizon()

    async def upcoming(self, *, limit: int) -> list[Upcoming]:
        await self._cache.quiet()
        return self._views.upcoming(limit)

    async def seeds(self, *, limit: int) -> list[str]:
        await self._cache.quiet()
        return self._views.seeds(limit)

    async def stats(self) -> Stats:
        await self._cache.quiet()
        return self._views.stats(self._came_back)

    async def freshness(self) -> Freshness:
        walk = FreshnessWalk(self._cache, self._clock.now() + self._cache.skew)
        start: Cursor | None = queries.FROM_THE_START
        while start is not None:
            await self._cache.quiet()
            start = walk.go_on(start)
            await asyncio.sleep(0)
        return walk.result()

    async def estimate(self) -> Estimate:
        walk = self._views.work_walk(self._clock.now() + self._cache.skew)
        start: Cursor | None = queries.FROM_THE_START
        while start is not None:
            await self._cache.quiet()
            start = walk.go_on(start)
            await asyncio.sleep(0)
        return walk.result()

    async def explain(self, url: str) -> Explanation:
        await self._cache.quiet()
        fetch_url = normalise(url)
        if fetch_url is None:
            return Explanation(asked=url, reason="this is not an http or https URL")
        return self._views.explain(url, fetch_url)

    async def url_of(self, key: UrlKey) -> str | None:
        await self._cache.quiet()
        row = self._cache.url(key)
        return None if row is None else row.url

    async def host(self, host: Host) -> HostView | None:
        await self._cache.quiet()
        return self._views.host(host)

    async def robots_of(self, host: Host) -> bytes | None:
        await self._cache.quiet()
        return self._cache.robots_body(host_id(host)) or None

    async def hosts(
        self, *, limit: int, standing: HostStanding | None = None, matching: str = ""
    ) -> list[HostView]:
        chosen: list[HostRow] = []
        start: Cursor | None = queries.FROM_THE_START
        while start is not None:
            await self._cache.quiet()
            # in slices, as the others: ten million hosts are looked through while the crawl goes on
            chosen, start = self._views.some_hosts(chosen, start, limit, standing, matching)
            await asyncio.sleep(0)
        return [self._views.host_view(row) for row in chosen]

    async def explain_host(self, host: Host, *, fetches: int) -> HostExplanation | None:
        await self._cache.quiet()
        return self._views.explain_host(host, fetches)

    async def ledger_of(self, host: Host, *, fetches: int) -> HostLedger | None:
        await self._cache.quiet()
        row = self._cache.host(host_id(host))
        if row is None:
            return None
        walk = HostLedgerWalk(self._cache, row, fetches)
        while not walk.go_on():
            await asyncio.sleep(0)
            await self._cache.quiet()
        return walk.result(self._views.host_view(row), self._views.pace_words(row))

    async def leases(self, *, limit: int) -> list[LeaseView]:
        await self._cache.quiet()
        return live_leases(self._cache, limit)

    async def outlook(self, *, limit: int) -> list[HostOutlook]:
        await self._cache.quiet()
        return self._views.outlook(limit)

    async def urls(
        self,
        *,
        limit: int,
        state: UrlState | None = None,
        why: str = "",
        host: Host | None = None,
        after: str = "",
    ) -> UrlList:
        found: list[UrlView] = []
        start = bytes.fromhex(after)
        for _ in range(_MOST_SLICES):
            await self._cache.quiet()
            some, go_on = self._views.some_urls(start, limit - len(found), state, why, host)
            found += some
            if go_on is None:
                return UrlList(urls=found)
            start = go_on
            if len(found) >= limit:
                break
            await asyncio.sleep(0)
        return UrlList(urls=found, after=start.hex())

    async def anchors(self, *, limit: int) -> list[str]:
        await self._cache.quiet()
        return queries.anchors(self._cache, "prefix", limit)

    async def dead_letters(self, *, limit: int, host: Host | None = None) -> list[DeadLetter]:
        await self._cache.quiet()
        return self._views.dead_letters(limit, host)

    async def traps(self, *, limit: int) -> list[TrapView]:
        await self._cache.quiet()
        return trap_views(self._cache, limit)

    async def undo_trap(self, number: int) -> int:
        async with self._lock.long, Transaction.begin(self._cache, self._clock.now()) as tx:
            if not end(tx, number, UNDONE):
                return 0
        released = 0
        while True:
            async with self._lock.long, Transaction.begin(self._cache, self._clock.now()) as tx:
                some = release_some(tx, number)
            if not some:
                return released
            released += some
            await asyncio.sleep(0)

    def forgetting(self, hosts: Sequence[Host], url: str = "") -> Forgetting:
        """For whoever holds the crawl's folder and crawls nothing."""
        return Forgetting(self._cache, self._clock, hosts, url)

    async def sync(self) -> None:
        if self._witness is not None:
            self._witness.syncing()
        await asyncio.to_thread(self._cache.sync)
        if self._witness is not None:
            self._witness.synced()

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if not self._cache.read_only:
                self._save_filters()
        except (OSError, SkitterError):
            # Only an optimisation is lost: without a stamped file the filter learns again from the store.
            self._cache.discard_filters()
        finally:
            self._cache.close()


def _holds(row: HostRow, token: Token) -> bool:
    return row.lease is not None and row.lease.token == token


def _keys_words(made: KeySettings, asked: KeySettings) -> str:
    names = [name for name in KeySettings.__struct_fields__ if getattr(made, name) != getattr(asked, name)]
    return ", ".join(f"{name} = {toml_value(getattr(made, name))}" for name in names)


def _seed_rules(settings: Settings) -> SeedRules | None:
    """Of a crawl without them nothing is loaded."""
    if not (settings.seeds or settings.rules.surts):
        return None
    from skitter.urls.seed_rules import SeedRules

    return SeedRules(settings.seeds, settings.crawl.scope, settings.rules.surts)
