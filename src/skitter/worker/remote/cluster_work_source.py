"""The work source of a worker of a cluster: the nodes that have its partitions, each a server of its own.

Above `remote_work_source.py`, below the loop. Hosts are leased from all nodes in turn. What came of them goes to
whoever has their partition now, with the proof of the lease that another node may have given: an owner that dies
in the middle of a lease costs nothing. Where the partitions are is asked of any node that answers.

    a partition has a place    its leases are renewed and settled there
    it has none                nobody can tell: what was fetched waits, and its leases end by themselves
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skitter.clock import Clock
from skitter.committer.render_source import NoRenders, RenderSource
from skitter.committer.work_source import Delivery, Standing, nobody
from skitter.errors import SkitterError
from skitter.model import Host, HostLease, Token
from skitter.settings import Settings
from skitter.urls.partitions import part_of
from skitter.worker.remote.http_link import Away, HttpLink
from skitter.worker.remote.kept_seals import KeptSeals
from skitter.worker.remote.remote_work_source import RemoteWorkSource
from skitter.worker.remote.server_notes import ServerNotes

# Seconds between two looks at where the partitions are, and when something has just moved.
_LOOK, _LOOK_SOON = 1.0, 0.2
# Leases whose deadlines are remembered, for when nobody can tell.
_MOST_DEADLINES = 20_000

Open = Callable[[str], RemoteWorkSource]
"""Makes the source of one node, by its URL."""


class ClusterWorkSource:
    """`_places` is where each partition is, `_nodes` the sources by URL. `_homeless` are deliveries of partitions
    that nobody has now, with the time until which they are kept."""

    def __init__(self, first: RemoteWorkSource, where: str, open_node: Open, clock: Clock) -> None:
        """`first` is the node that was joined, at `where`."""
        self._clock = clock
        self._open = open_node
        self._parts = first.parts
        self._places: list[str] = [""] * self._parts
        self._seals = KeptSeals()
        self._nodes: dict[str, RemoteWorkSource] = {}
        self._joined: set[str] = set()
        self._first = first
        self._where = where
        self._look_at = 0.0
        self._turn = 0
        self._deadlines: dict[tuple[Host, Token], float] = {}
        self._homeless: list[tuple[float, Delivery]] = []
        self._patience = 60.0
        self.in_flight: Callable[[], int] = lambda: 0
        self.held: Callable[[], int] = lambda: 0
        self.take_concurrency: Callable[[int], None] = lambda _: None
        self.notes: ServerNotes | None = first.notes
        self._is_lost = False
        # that one node is away is no news while others answer
        first.notes = None
        self._renders = NoRenders()
        self._adopt(first)

    def take_settings(self, settings: Settings) -> None:
        """What is fetched is kept as long as its lease could have lasted, and a while more."""
        self._patience = 2 * settings.frontier.lease_duration + 60.0

    def _adopt(self, source: RemoteWorkSource) -> None:
        source.use_seals(self._seals)
        source.is_unsure = self._deadlines.get
        source.in_flight = lambda: self.in_flight()
        source.held = lambda: -(-self.held() // max(1, len(self._live())))
        source.take_concurrency = lambda number: self.take_concurrency(number)

    # -- where the partitions are

    async def _look(self) -> None:
        """Asked of one node after the other, until one answers."""
        now = self._clock.now()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK
        self._turn += 1
        known = [*self._nodes.values()] or [self._first]
        for offset in range(len(known)):
            places = await known[(self._turn + offset) % len(known)].ask_places()
            if places is not None and len(places) == self._parts:
                self._note_answer()
                await self._take_places(places)
                return
        if self._first not in known:
            places = await self._first.ask_places()
            if places is not None and len(places) == self._parts:
                self._note_answer()
                await self._take_places(places)
                return
        if self.notes is not None:
            self._is_lost = True
            self.notes.lost("no node of the cluster answers")

    def _note_answer(self) -> None:
        if self._is_lost and self.notes is not None:
            self.notes.found(self.undelivered)
        self._is_lost = False

    async def _take_places(self, places: list[str]) -> None:
        if not all(places):
            self._look_at = self._clock.now() + _LOOK_SOON
        self._places = places
        for url in sorted({*places} - {""}):
            if url not in self._nodes:
                source = self._open(url)
                self._adopt(source)
                self._nodes[url] = source
            if url not in self._joined:
                await self._join(url)
        for url in [one for one in self._nodes if one not in places]:
            # a node without partitions may come back; what it holds of ours is taken back below
            if not self._nodes[url].undelivered:
                self._joined.discard(url)
                del self._nodes[url]

    async def _join(self, url: str) -> None:
        try:
            await self._nodes[url].join()
            self._joined.add(url)
        except (Away, SkitterError):
            self._look_at = self._clock.now() + _LOOK_SOON

    def _place_of(self, host: Host) -> str:
        return self._places[part_of(host, self._parts)]

    def _source_of(self, host: Host) -> RemoteWorkSource | None:
        url = self._place_of(host)
        return self._nodes.get(url) if url in self._joined else None

    def _live(self) -> list[RemoteWorkSource]:
        """Those that have partitions, as far as is known."""
        return [self._nodes[url] for url in sorted({*self._places} & self._joined) if url in self._nodes]

    # -- the source

    @property
    def standing(self) -> Standing:
        return (
            Standing.OPEN if any(one.standing is Standing.OPEN for one in self._live()) else Standing.PAUSED
        )

    @property
    def renders(self) -> RenderSource:
        return self._renders

    @property
    def uncommitted(self) -> int:
        return self.undelivered

    @property
    def undelivered(self) -> int:
        return len(self._homeless) + sum(one.undelivered for one in self._nodes.values())

    async def lease(self, worker: str, capacity: int, duration: float) -> list[HostLease]:
        await self._look()
        live = [one for one in self._live() if one.standing is Standing.OPEN]
        self._turn += 1
        leases: list[HostLease] = []
        for offset in range(len(live)):
            room = capacity - len(leases)
            if room <= 0:
                break
            source = live[(self._turn + offset) % len(live)]
            leases += await source.lease(worker, -(-room // (len(live) - offset)), duration)
        for lease in leases:
            self._deadlines[lease.host, lease.token] = lease.deadline
        while len(self._deadlines) > _MOST_DEADLINES:
            del self._deadlines[next(iter(self._deadlines))]
        return leases

    async def settle(self, deliveries: Sequence[Delivery], committed: Callable[[], None] = nobody) -> None:
        await self._deliver([*deliveries], committed)

    async def _deliver(self, deliveries: list[Delivery], committed: Callable[[], None] = nobody) -> None:
        until = self._clock.now() + self._patience
        by_node: dict[str, list[Delivery]] = {}
        for delivery in deliveries:
            url = self._place_of(delivery.outcome.host)
            if url in self._joined and url in self._nodes:
                by_node.setdefault(url, []).append(delivery)
            else:
                self._homeless.append((until, delivery))
        for url, some in by_node.items():
            await self._nodes[url].settle(some, committed)

    async def renew(self, leases: Sequence[tuple[Host, Token]], duration: float) -> list[float | None] | None:
        by_node: dict[str, list[int]] = {}
        for number, (host, _) in enumerate(leases):
            by_node.setdefault(self._place_of(host), []).append(number)
        deadlines: list[float | None] = [self._deadlines.get(lease) for lease in leases]
        # those that wait to be delivered are renewed too, by each node's own source
        for url in {*by_node, *self._joined}:
            source = self._nodes.get(url) if url in self._joined else None
            numbers = by_node.get(url, [])
            told = await source.renew([leases[n] for n in numbers], duration) if source else None
            if told is None:
                continue
            for number, deadline in zip(numbers, told, strict=False):
                deadlines[number] = deadline
                if deadline is not None:
                    self._deadlines[leases[number]] = deadline
        return deadlines

    async def release(self, leases: Sequence[tuple[Host, Token]]) -> None:
        for host, token in leases:
            if (source := self._source_of(host)) is not None:
                await source.release([(host, token)])

    async def beat(self, as_of: float | None = None) -> None:
        await self._look()
        await self._move_strays()
        for source in [*self._nodes.values()]:
            await source.beat(as_of)

    async def _move_strays(self) -> None:
        """What is with a node that does not have its partition any more goes to the one that has."""
        moved: list[Delivery] = []
        for url, source in self._nodes.items():
            moved += source.take_back(lambda host, url=url: self._place_of(host) not in (url, ""))  # type: ignore[misc]
        now = self._clock.now()
        waiting, self._homeless = self._homeless, []
        dropped = [delivery for until, delivery in waiting if until <= now]
        if dropped and self.notes is not None:
            self.notes.dropped(len(dropped), "nobody had their partition for too long")
        moved += [delivery for until, delivery in waiting if until > now]
        if moved:
            self._look_at = min(self._look_at, now + _LOOK_SOON)
            kept_until = {id(delivery): until for until, delivery in waiting}
            await self._deliver(moved)
            self._homeless = [
                (kept_until.get(id(delivery), until), delivery) for until, delivery in self._homeless
            ]

    async def leave(self) -> None:
        for source in [*self._nodes.values()]:
            await source.leave()


def open_nodes(
    token: str,
    clock: Clock,
    name: str,
    notes: ServerNotes | None,
    links: list[HttpLink],
    *,
    verifies_tls: bool,
) -> Open:
    """Sources of further nodes; their links are added to `links`, to be closed in the end."""

    def open_node(url: str) -> RemoteWorkSource:
        link = HttpLink(url, token)
        links.append(link)
        source = RemoteWorkSource(link, clock, name)
        source.verifies_tls = verifies_tls
        return source

    return open_node
