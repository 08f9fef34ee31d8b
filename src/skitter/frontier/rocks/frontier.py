"""The embedded frontier: the contract on RocksDB, one atomic batch per call.

Everything is on disk in the order it is needed, so a restart has nothing to rebuild. The store's lock admits one
process, therefore a lease found at opening belongs to a worker that died with its process: such leases end at
once, and their hosts rest for their delay from now, since a request may have been sent just before.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from skitter.clock import Clock
from skitter.errors import SettingsError, SkitterError
from skitter.frontier.base import (
    DeadLetter,
    Explanation,
    Horizon,
    HostExplanation,
    HostStanding,
    HostView,
    LeaseView,
    Settled,
    Settlement,
    Stats,
    TrapView,
    Witness,
)
from skitter.frontier.blocklists import Blocklists
from skitter.frontier.bundles import runs_of
from skitter.frontier.rocks.addresses import Addresses, cancel_appointment
from skitter.frontier.rocks.admission import Admission
from skitter.frontier.rocks.book import Book
from skitter.frontier.rocks.dossier import live_leases
from skitter.frontier.rocks.health import Health
from skitter.frontier.rocks.holding import let_go
from skitter.frontier.rocks.judging import judge
from skitter.frontier.rocks.leasing import Leasing
from skitter.frontier.rocks.listed import note_lists, rejudge_listed
from skitter.frontier.rocks.losing import give_back_some
from skitter.frontier.rocks.memory import MemoryPlan
from skitter.frontier.rocks.near import prepare
from skitter.frontier.rocks.returning import (
    forgive_certificate,
    pardon_some,
    promote,
    refresh_one,
    refresh_some,
    requeue_dead,
    revive,
)
from skitter.frontier.rocks.rows import HostRow, decode_copy
from skitter.frontier.rocks.settling import Settling
from skitter.frontier.rocks.store import Store
from skitter.frontier.rocks.trap_views import trap_views
from skitter.frontier.rocks.traps import Traps
from skitter.frontier.rocks.turn import Turn
from skitter.frontier.rocks.verdicts import UNDONE, end, release_some
from skitter.frontier.rocks.views import Views
from skitter.model import (
    Copy,
    Discovered,
    Host,
    HostLease,
    HostPolicy,
    Outcome,
    SegmentMark,
    Token,
    UrlKey,
    Verdict,
)
from skitter.schedule.priority import ByDepthAndLinks, Prioritizer
from skitter.settings import KeySettings, Settings
from skitter.settings.toml_text import toml_value
from skitter.urls.canonical import host_id, normalise
from skitter.urls.keys import Keys
from skitter.urls.scope import Scope

_MARK = b"mark "
_FILTER = b"filter"
_KEYS = b"keys"
_END = b"\xff" * 17
# 2 us a key: 20 ms on each promote, which a worker calls once a second.
_RELEARN = 10_000
_encode = msgspec.msgpack.encode
_decode_keys = msgspec.msgpack.Decoder(KeySettings).decode
_decode_mark = msgspec.msgpack.Decoder(SegmentMark).decode
_ADMIT_BATCH = 5_000
_Move = Callable[[Turn, bytes, Host | None], tuple[int, bytes | None]]
"""Moves up to a slice of a table's URLs from a key on: how many, and the key to go on from."""


class RocksFrontier:
    def __init__(
        self,
        folder: Path,
        settings: Settings,
        clock: Clock,
        *,
        read_only: bool = False,
        prioritizer: Prioritizer | None = None,
        keys: Keys | None = None,
        blocklists: Blocklists | None = None,
    ) -> None:
        self._clock = clock
        self._read_only = read_only
        self._is_closed = False
        self._witness: Witness | None = None
        memory = MemoryPlan.of(settings.frontier)
        self._store = Store(folder, memory, read_only=read_only)
        self._book = Book(self._store, settings, memory, clock.now(), keys, blocklists)
        self._keys = self._book.keys
        self._check_keys(folder, settings.keys)
        self._max_pages = settings.crawl.max_pages
        self._holds = bool(settings.archive.url)
        self._filter_file, self._known_file = folder / "seen.filter", folder / "known.keys"
        scope = Scope(settings.crawl, settings.fetch.max_redirects)
        traps = Traps(settings.traps)
        self._admission = Admission(scope, settings.politeness, prioritizer or ByDepthAndLinks(), traps)
        addresses = Addresses(settings.politeness.address_rate)
        self._leasing = Leasing(settings, addresses, traps)
        self._health = Health(settings)
        self._settling = Settling(settings, self._admission, self._health, addresses, traps)
        self._views = Views(self._book, self._admission, settings)
        if not read_only:
            self._book.blocklists.load()
            self._begin()

    def _check_keys(self, folder: Path, asked: KeySettings) -> None:
        """The store's own word for the rules that its keys were made with; one without it knows the first."""
        raw = self._store.get("meta", _KEYS)
        known = any(self._book.tally.urls.values())
        made = _decode_keys(raw) if raw else KeySettings(rules=1) if known else asked
        if made != asked:
            self._store.close()
            raise SettingsError(
                f"[keys] is not what the URLs in {folder} were made with: put back {_keys_words(made, asked)} in "
                "crawl.toml, or begin a new crawl in another folder"
            )
        if not raw and not self._read_only:
            with Turn.begin(self._book, self._clock.now()) as turn:
                turn.put("meta", _KEYS, _encode(asked))

    def _begin(self) -> None:
        """Orphaned leases end. What a clean close saved is taken over, and its stamp removed at once: whatever
        happens next, only another clean close makes what is saved believable again."""
        if stamp := self._store.get("meta", _FILTER):
            self._book.seen.restore(self._filter_file, stamp)
            self._book.near.believe(stamp)
            self._book.certain.restore(self._known_file, stamp)
        with Turn.begin(self._book, self._clock.now()) as turn:
            self._leasing.expire(turn, all_of_them=True)
            if stamp:
                turn.delete("meta", _FILTER)
            note_lists(turn, self._book.blocklists)

    def _keep_tables(self) -> None:
        stamp = os.urandom(16)
        self._book.seen.save(self._filter_file, stamp)
        self._book.near.save(stamp)
        self._book.certain.save(self._known_file, stamp)
        with Turn.begin(self._book, self._clock.now()) as turn:
            turn.put("meta", _FILTER, stamp)

    def _relearn(self) -> None:
        """After a death the filter learns the known keys again, a few on each promote; and so does the table of
        those that are known for certain, as many as it has room for."""
        seen = self._book.seen
        start = seen.relearn_from
        if start is None:
            return
        keys = [key for key, _ in itertools.islice(self._store.scan("urls", start, _END), _RELEARN + 1)]
        more = len(keys) > _RELEARN
        seen.relearn(keys[:_RELEARN], keys[-1] if more else None)
        add = self._book.certain.add
        for key in keys:
            add(key)

    def attend(self, witness: Witness) -> None:
        self._witness = witness

    # -- the path of a URL

    async def admit(self, discovered: Sequence[Discovered]) -> list[Verdict]:
        verdicts: list[Verdict] = []
        for start in range(0, len(discovered), _ADMIT_BATCH):
            with Turn.begin(self._book, self._clock.now()) as turn:
                for run in runs_of(discovered[start : start + _ADMIT_BATCH]):
                    verdicts += self._admission.admit_run(turn, run)
        return verdicts

    async def lease(
        self,
        worker: str,
        capacity: int,
        duration: float,
        *,
        most_tasks: int | None = None,
        staggered: bool = False,
    ) -> list[HostLease]:
        now = self._clock.now()
        with Turn.begin(self._book, now) as turn:
            leases = self._leasing.lease(turn, worker, capacity, duration, most_tasks, staggered)
        if self._witness is not None:
            self._witness.leased(worker, len(leases), now)
        return leases

    async def judge(self, outcomes: Sequence[Outcome]) -> list[Settled]:
        return judge(self._book, outcomes, self._book.room(self._max_pages))

    async def settle(
        self, outcomes: Sequence[Outcome], marks: Sequence[SegmentMark] = ()
    ) -> list[Settlement]:
        now = self._clock.now()
        with Turn.begin(self._book, now) as turn:
            prepare(turn, (outcome.result for outcome in outcomes))
            settlements = self._settling.settle_all(turn, outcomes)
            for mark in marks:
                turn.put("meta", _MARK + mark.segment.encode(), _encode(mark))
                if self._holds:
                    turn.tally.held.setdefault(mark.segment, [0, 0])
        if self._witness is not None:
            self._witness.settled(outcomes, settlements, now)
        return settlements

    async def renew(self, leases: Sequence[tuple[Host, Token]], duration: float) -> list[float | None]:
        deadlines: list[float | None] = []
        with Turn.begin(self._book, self._clock.now()) as turn:
            for host, token in leases:
                ident = host_id(host)
                row = turn.touch(ident)
                live = row.lease if row is not None and _holds(row, token) else None
                deadlines.append(self._leasing.renew(turn, ident, live, duration) if live else None)
        return deadlines

    async def release(self, leases: Sequence[tuple[Host, Token]]) -> None:
        with Turn.begin(self._book, self._clock.now()) as turn:
            for host, token in leases:
                ident = host_id(host)
                row = turn.touch(ident)
                if row is not None and _holds(row, token):
                    self._leasing.release(turn, ident, row)

    async def reap(self, now: float) -> int:
        with Turn.begin(self._book, now) as turn:
            ended = self._leasing.expire(turn, all_of_them=False)
            turn.tally.leases_expired += ended
        return ended

    async def promote(self, now: float) -> int:
        self._relearn()
        if await self._book.blocklists.refresh():
            with Turn.begin(self._book, now) as turn:
                note_lists(turn, self._book.blocklists)
        with Turn.begin(self._book, now) as turn:
            # what is emptied is read from the store: before anything is put into its queues that is not there yet
            moved = self._health.empty_abandoned(turn) + promote(turn) + release_some(turn)
            return moved + rejudge_listed(turn, self._admission)

    # -- the archive's part

    async def first_copies(self, digests: Sequence[bytes]) -> list[Copy | None]:
        found = (self._store.get("copies", digest) for digest in digests)
        return [decode_copy(raw) if raw else None for raw in found]

    async def marks(self) -> list[SegmentMark]:
        found = (_decode_mark(raw) for _, raw in self._store.scan("meta", _MARK, _MARK + b"\xff"))
        held = self._book.tally.held
        return [msgspec.structs.replace(mark, held=True) if mark.segment in held else mark for mark in found]

    async def stored(self, segment: str) -> None:
        with Turn.begin(self._book, self._clock.now()) as turn:
            if raw := self._store.get("meta", _MARK + segment.encode()):
                mark = msgspec.structs.replace(_decode_mark(raw), stored=True)
                turn.put("meta", _MARK + segment.encode(), _encode(mark))
                let_go(turn, segment)

    async def lost(self, segment: str) -> int:
        fetches, done = 0, segment not in self._book.tally.held
        while not done:
            with Turn.begin(self._book, self._clock.now()) as turn:
                some, done = give_back_some(turn, segment)
                if done:
                    turn.delete("meta", _MARK + segment.encode())
            fetches += some
        return fetches

    # -- the operator's part

    async def set_policy(self, host: Host, policy: HostPolicy) -> None:
        with Turn.begin(self._book, self._clock.now()) as turn:
            _, row = turn.host(host)
            before, row.policy = row.policy, None if policy == HostPolicy() else policy
            cancel_appointment(row)
            if policy.verify_tls is False and not (before and before.verify_tls is False):
                forgive_certificate(row)

    async def requeue(self, *, host: Host | None = None, url: str | None = None) -> int:
        if url is not None:
            fetch_url = normalise(url)
            if fetch_url is None:
                return 0
            with Turn.begin(self._book, self._clock.now()) as turn:
                return revive(turn, self._keys.key_of(fetch_url))
        await self._in_slices(pardon_some, host)
        return await self._in_slices(requeue_dead, host)

    async def refresh(self, *, host: Host | None = None, url: str | None = None) -> int:
        if url is None:
            return await self._in_slices(refresh_some, host)
        fetch_url = normalise(url)
        if fetch_url is None:
            return 0
        with Turn.begin(self._book, self._clock.now()) as turn:
            return refresh_one(turn, self._keys.key_of(fetch_url))

    async def _in_slices(self, move: _Move, host: Host | None) -> int:
        """One turn each, so that a million URLs take no more memory than a slice, and others get theirs."""
        moved, start = 0, b""
        while True:
            with Turn.begin(self._book, self._clock.now()) as turn:
                some, go_on = move(turn, start, host)
            moved += some
            if go_on is None:
                return moved
            start = go_on
            await asyncio.sleep(0)

    async def horizon(self) -> Horizon:
        return self._views.horizon()

    async def stats(self) -> Stats:
        return self._views.stats()

    async def explain(self, url: str) -> Explanation:
        fetch_url = normalise(url)
        if fetch_url is None:
            return Explanation(asked=url, reason="this is not an http or https URL")
        return self._views.explain(url, fetch_url)

    async def url_of(self, key: UrlKey) -> str | None:
        row = self._book.url(key)
        return None if row is None else row.url

    async def host(self, host: Host) -> HostView | None:
        return self._views.host(host)

    async def robots_of(self, host: Host) -> bytes | None:
        return self._store.get("robots", host_id(host))

    async def hosts(
        self, *, limit: int, standing: HostStanding | None = None, matching: str = ""
    ) -> list[HostView]:
        chosen: list[HostRow] = []
        start: bytes | None = b""
        while start is not None:
            # in slices, as the others: ten million hosts are looked through while the crawl goes on
            chosen, start = self._views.some_hosts(chosen, start, limit, standing, matching)
            await asyncio.sleep(0)
        return [self._views.host_view(row) for row in chosen]

    async def explain_host(self, host: Host, *, fetches: int) -> HostExplanation | None:
        return self._views.explain_host(host, fetches)

    async def leases(self, *, limit: int) -> list[LeaseView]:
        return live_leases(self._book, limit)

    async def dead_letters(self, *, limit: int, host: Host | None = None) -> list[DeadLetter]:
        return self._views.dead_letters(limit, host)

    async def traps(self, *, limit: int) -> list[TrapView]:
        return trap_views(self._book, limit)

    async def undo_trap(self, number: int) -> int:
        with Turn.begin(self._book, self._clock.now()) as turn:
            if not end(turn, number, UNDONE):
                return 0
        released = 0
        while True:
            with Turn.begin(self._book, self._clock.now()) as turn:
                some = release_some(turn, number)
            if not some:
                return released
            released += some
            await asyncio.sleep(0)

    async def sync(self) -> None:
        if self._witness is not None:
            self._witness.syncing()
        await asyncio.to_thread(self._store.sync)
        if self._witness is not None:
            self._witness.synced()

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if not self._read_only:
                self._keep_tables()
        except (OSError, SkitterError):
            # Only an optimisation is lost: without a stamped file the filter learns again from the store.
            self._filter_file.unlink(missing_ok=True)
        finally:
            self._store.close()


def _holds(row: HostRow, token: Token) -> bool:
    return row.lease is not None and row.lease.token == token


def _keys_words(made: KeySettings, asked: KeySettings) -> str:
    names = [name for name in KeySettings.__struct_fields__ if getattr(made, name) != getattr(asked, name)]
    return ", ".join(f"{name} = {toml_value(getattr(made, name))}" for name in names)
