"""A node of a cluster: one process that has several partitions, takes over from the dead and hands over to
others.

It says that it is alive, looks who else is, and has the partitions that are its share
(`frontier/cluster/shares.py`). What it wishes for decides nothing: a partition is its own when it has claimed the
log. What it must give up it lets go of in order. A partition that another node has taken ends at once, and the
others go on. Never trusts its own clock: who is alive is said by the database.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from hashlib import blake2b

from skitter.committer.committer import Committer
from skitter.committer.part_committers import PartCommitters
from skitter.errors import LogFailed, OwnedElsewhere, SkitterError
from skitter.folder import CrawlFolder
from skitter.frontier.base import Witness
from skitter.frontier.cluster.base import ClusterState, NodeState, Part, PartState
from skitter.frontier.cluster.beats import PartBeats
from skitter.frontier.cluster.router import Router
from skitter.frontier.cluster.shares import share_out
from skitter.frontier.log.base import Owner
from skitter.frontier.log.members import ClusterCrawl, Member, Members, PartRow
from skitter.frontier.log.postgres import Link, PostgresLog
from skitter.frontier.opening import PartOpening, shared_memory
from skitter.model import Host
from skitter.runtime.cluster.grants import Grants
from skitter.runtime.cluster.owned_part import OwnedPart, settings_of_part
from skitter.runtime.cluster.places import Peers, Places
from skitter.settings import Settings
from skitter.settings.load import dump_toml, load
from skitter.telemetry import Telemetry
from skitter.urls.partitions import Partition, part_of

# Connections for appends: the partitions of a node share them, so that 256 partitions need no 256 connections.
_APPENDING = 4
_LOOKS_A_LAPSE = 10
_BEATS_A_LAPSE = 3
# Folders that are opened at once: each reads and replays.
_OPENED_AT_ONCE = 2


class Node:
    """`here` are the partitions that can be asked on this node now, by their numbers."""

    def __init__(
        self,
        folder: CrawlFolder,
        settings: Settings,
        crawl: ClusterCrawl,
        database: str,
        owner: Owner,
        url: str,
        note: Callable[[str], None],
    ) -> None:
        lapse = settings.frontier.log_lapse
        self.crawl, self.owner, self.url = crawl, owner, url
        self.telemetry: Telemetry | None = None
        self._folder, self._settings, self._note = folder, settings, note
        self._database = database
        self._lapse = lapse
        self._links = [Link(database, note if number == 0 else None) for number in range(_APPENDING)]
        self._asking, self._beating = Link(database, None), Link(database, None)
        self.members = Members(self._asking)
        self._heart = Members(self._beating)
        self._beats = PartBeats()
        self._shared = shared_memory(settings.frontier)
        self._owned: dict[int, OwnedPart] = {}
        self._running: dict[int, asyncio.Task[None]] = {}
        self._opening = asyncio.Semaphore(_OPENED_AT_ONCE)
        self._rows: list[PartRow] = []
        self._nodes: list[Member] = []
        self.here: dict[int, Part] = {}
        self.committers: dict[int, Committer] = {}
        self.door = PartCommitters(self.committers, crawl.parts)
        self._peers = Peers(node_token(crawl.key))
        self.places = Places(crawl.parts, self.here, self._url_of, self._peers)
        self.router = Router(self.places, number=crawl.parts)
        self._grants = Grants(self.members, settings.crawl.max_pages, crawl.parts)
        self._witness: Witness | None = None
        self.is_draining = False
        self.settings_version = crawl.settings_version

    # -- what the service asks

    def part_here(self, number: int) -> Part | None:
        return self.here.get(number)

    def place_of(self, host: Host) -> str:
        return self._url_of(part_of(host, self.crawl.parts))

    def url_by_part(self) -> list[str]:
        """Where each partition is, by its number; empty while nobody has it."""
        return [self._url_of(number) for number in range(self.crawl.parts)]

    async def state(self) -> ClusterState:
        nodes = await asyncio.to_thread(self.members.nodes)
        rows = await asyncio.to_thread(self.members.parts)
        return ClusterState(
            crawl=self.crawl.crawl,
            idle=await self._is_idle(rows),
            nodes=[
                NodeState(
                    node=one.ident,
                    url=one.url,
                    place=one.place,
                    version=one.version,
                    silent=one.silent,
                    live=one.is_live,
                    draining=one.is_draining,
                    partitions=sum(row.owner == one.ident and not row.is_free for row in rows),
                )
                for one in nodes
            ],
            partitions=[
                PartState(
                    partition=row.part,
                    url="" if row.is_free else row.url,
                    node="" if row.is_free else row.owner,
                    epoch=row.epoch,
                    sequence=row.sequence,
                    checkpoint=row.checkpoint,
                    silent=row.silent,
                )
                for row in rows
            ],
        )

    async def _is_idle(self, rows: list[PartRow]) -> bool | None:
        """Not unless nothing was committed while all of them were asked: one may have told another something."""
        if any(row.is_free for row in rows):
            return None
        try:
            horizon = await self.router.horizon()
        except SkitterError:
            return None
        after = await asyncio.to_thread(self.members.parts)
        is_still = [row.sequence for row in rows] == [row.sequence for row in after]
        return is_still and not horizon.leased_hosts and horizon.next_at is None

    def attend(self, witness: Witness) -> None:
        self._witness = witness
        for part in self.here.values():
            part.attend(witness)

    def broadcast(self, settings: Settings) -> None:
        """Changed settings, for this node at once and for the others with their next beat."""
        self.settings_version = self.members.change_settings(dump_toml(settings))
        self._take_settings(settings)

    def _take_settings(self, settings: Settings) -> None:
        self._settings = settings
        self._grants.change_limit(settings.crawl.max_pages)
        for owned in self._owned.values():
            owned.change_settings(settings)

    async def _hear_settings(self, version: int) -> None:
        if version <= self.settings_version:
            return
        crawl = await asyncio.to_thread(self.members.crawl)
        if crawl is not None:
            self.settings_version = crawl.settings_version
            file = self._folder.path / "cluster.toml"
            file.write_text(crawl.settings)
            self._take_settings(load(crawl_file=file, environ={}).settings)
            self._note(f"settings have changed (version {version})")

    def _url_of(self, number: int) -> str:
        if number in self.here:
            return self.url
        if number >= len(self._rows) or (row := self._rows[number]).is_free:
            return ""
        # one that is being opened or let go of here: who asked for it would be sent to us again and again
        return "" if row.owner == self.owner.ident else row.url

    # -- its life

    async def run(self, stopped: asyncio.Event) -> None:
        """Until it is stopped or drained: then all partitions are let go of."""
        await asyncio.to_thread(
            self.members.announce, self.owner.ident, self.url, self.owner.place, self._lapse
        )
        beating = asyncio.create_task(self._keep_beating())
        try:
            while not stopped.is_set() and not self.is_draining:
                await self._step()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._lapse / _LOOKS_A_LAPSE):
                        await stopped.wait()
                if beating.done():
                    beating.result()
        finally:
            self.door.drain()
            await self._let_go_of_all()
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
            with contextlib.suppress(LogFailed):
                await asyncio.to_thread(self.members.leave, self.owner.ident)
            await self._peers.close()
            for link in (*self._links, self._asking, self._beating):
                link.close()

    async def _keep_beating(self) -> None:
        while True:
            asked = self._beats.epochs()
            with contextlib.suppress(LogFailed):
                heard = await asyncio.to_thread(self._heart.beat, self.owner.ident, asked)
                self._beats.heard(asked, heard.ours)
                self.is_draining = self.is_draining or heard.is_draining
                await self._hear_settings(heard.settings_version)
            for number, owned in [*self._owned.items()]:
                if number in asked and self._beats.fault_of(number, asked[number]) is not None:
                    self._forget(owned)
                    self._running[number].cancel()
            await asyncio.sleep(self._lapse / _BEATS_A_LAPSE)

    async def _step(self) -> None:
        try:
            self._nodes = await asyncio.to_thread(self.members.nodes)
            self._rows = await asyncio.to_thread(self.members.parts)
        except LogFailed:
            return  # the database is away: nothing changes hands
        self._bury()
        live = [one.ident for one in self._nodes if one.is_live and not one.is_draining]
        owners = {row.part: row.owner for row in self._rows if not row.is_free}
        wished = share_out(range(self.crawl.parts), live, owners)
        for row in self._rows:
            is_mine = wished.get(row.part) == self.owner.ident
            owned = self._owned.get(row.part)
            if is_mine and owned is None and (row.is_free or row.owner == self.owner.ident):
                self._take(row.part, len(live))
            elif not is_mine and owned is not None and not owned.is_letting_go and wished:
                self._note(f"partition {row.part} goes to {self._name_of(wished[row.part])}")
                self._forget(owned)
                owned.let_go()

    def _name_of(self, ident: str) -> str:
        return next((one.url for one in self._nodes if one.ident == ident), ident)

    def _take(self, number: int, nodes: int) -> None:
        settings = settings_of_part(self._settings, number, -(-self.crawl.parts // max(1, nodes)))
        link = self._links[number % len(self._links)]
        opening = PartOpening(
            partition=Partition(number, self.crawl.parts),
            log=PostgresLog(
                self._database,
                lapse=self._lapse,
                is_unreplicated=settings.frontier.log_unreplicated,
                part=number,
                links=(link, self._asking),
            ),
            owner=self.owner,
            beat=self._beats.of(number),
            shared=self._shared,
        )
        folder = CrawlFolder(self._folder.path / "parts" / f"p{number:04}")
        assert self.telemetry is not None
        owned = OwnedPart(number, folder, settings, self.telemetry, opening, self.places.tell, self._grants)
        self._owned[number] = owned
        self._running[number] = asyncio.create_task(self._keep(owned))

    async def _keep(self, owned: OwnedPart) -> None:
        async with self._opening:
            opened = asyncio.Event()
            running = asyncio.create_task(owned.run(partial(self._opened, owned, opened)))
            waiting = asyncio.create_task(opened.wait())
            try:
                await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                raise
            finally:
                waiting.cancel()
        try:
            await running
        except asyncio.CancelledError:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            raise

    def _opened(self, owned: OwnedPart, opened: asyncio.Event) -> None:
        services = owned.services
        assert services is not None
        assert owned.part is not None
        self.here[owned.number] = owned.part
        self.committers[owned.number] = services.committer
        if self._witness is not None:
            owned.part.attend(self._witness)
        opened.set()
        self._note(f"partition {owned.number} is here")

    def _forget(self, owned: OwnedPart) -> None:
        """Nobody finds it here from now on."""
        self.here.pop(owned.number, None)
        self.committers.pop(owned.number, None)

    def _bury(self) -> None:
        """Those that are over: they are taken again if they are still our share."""
        for number, task in [*self._running.items()]:
            if not task.done():
                continue
            owned = self._owned.pop(number)
            del self._running[number]
            self._forget(owned)
            error = None if task.cancelled() else task.exception() or owned.fault
            if error is not None and not isinstance(error, OwnedElsewhere):
                self._note(f"partition {number} ended: {error}")

    async def _let_go_of_all(self) -> None:
        for owned in self._owned.values():
            self._forget(owned)
            owned.let_go()
        await asyncio.gather(*self._running.values(), return_exceptions=True)


def node_token(key: bytes) -> str:
    """By which nodes know each other."""
    return blake2b(b"node", key=key, digest_size=24, person=b"skitter-node").hexdigest()
