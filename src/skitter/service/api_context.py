"""All that the routes of the service may touch, in one value.

A route never opens a file or a store of its own. The context outlives every request; whoever opened the crawl's
folder owns it. Leases go through the committer, never to the frontier directly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from skitter.clock import Clock
from skitter.committer.door import CommitterDoor
from skitter.committer.work_source import Delivery, Standing
from skitter.committer.worker_registry import WorkerRegistry
from skitter.folder import CrawlFolder
from skitter.frontier.base import Frontier, Settlement
from skitter.frontier.cluster.base import ClusterHere
from skitter.model import Host, Outcome
from skitter.service.disk_use import DiskUse
from skitter.service.http.problem import Problem, Trouble
from skitter.service.metrics.watch import Watch
from skitter.service.steering.order import Steered
from skitter.service.steering.settings import SettingsInForce, Take
from skitter.service.subscriptions import Subscriptions
from skitter.service.tickets import Seal
from skitter.settings import Settings
from skitter.telemetry import Telemetry
from skitter.urls.keys import Keys
from skitter.urls.links import LinkReader


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiContext:
    frontier: Frontier
    """For questions, and for what operators decide; its own lock orders what is written."""
    settings: Settings
    folder: CrawlFolder
    telemetry: Telemetry
    clock: Clock
    committer: CommitterDoor
    """The door for everything about a lease: it gives none while it is closing, paused or broken."""
    registry: WorkerRegistry | None = None
    """Of our own workers; None where the service takes none."""
    cluster: ClusterHere | None = None
    """Of a node: the cluster that it is in."""
    watch: Watch = field(default_factory=Watch)
    measure: Callable[[], None] = lambda: None
    """Brings the gauges of `telemetry` up to date; called before they are told, once a second at most."""
    seal: Seal = field(default_factory=Seal)
    takers: Callable[[], Mapping[str, Take]] = dict
    """Who has to be told of settings that change while it runs, by their names."""
    in_force: SettingsInForce = field(init=False)
    disk_use: DiskUse = field(init=False)
    keys: Keys = field(init=False)
    links: LinkReader = field(init=False)
    subscriptions: Subscriptions = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", Keys(self.settings.keys))
        in_force = SettingsInForce(self.settings, self.folder.path, self.takers)
        object.__setattr__(self, "in_force", in_force)
        object.__setattr__(self, "disk_use", DiskUse(self.folder.path))
        object.__setattr__(self, "links", LinkReader(self.keys))
        object.__setattr__(self, "subscriptions", Subscriptions(self.folder.path))
        self.frontier.attend(self.watch)

    @property
    def steered(self) -> Steered:
        """What an operator's orders may touch."""
        return Steered(
            frontier=self.frontier, settings=self.settings, keys=self.keys, folder=self.folder.path
        )

    @property
    def is_open(self) -> bool:
        """Whether work may be handed out now."""
        return self.committer.standing is Standing.OPEN

    async def settle(self, outcomes: Sequence[Outcome]) -> list[Settlement]:
        """Of foreign workers; their pages have no record in our archive. All or, where a node lacks a partition,
        none of them."""
        divided = self.committer.divide([outcome.host for outcome in outcomes])
        here = {place for places in divided for place in places}
        for place, outcome in enumerate(outcomes):
            if place not in here:
                raise misdirected(self.cluster, outcome.host)
        settled: dict[int, Settlement] = {}
        for places in divided:
            told = await self.committer.commit_batch([Delivery(outcomes[place]) for place in places])
            settled.update(zip(places, told, strict=True))
        return [settled[place] for place in range(len(outcomes))]


def misdirected(cluster: ClusterHere | None, host: Host) -> Problem:
    """Another node has the partition of a host, or nobody has it now."""
    place = cluster.place_of(host) if cluster is not None else ""
    where = f"it is at {place}: ask there" if place else "nobody has it now: ask again in some seconds"
    return Problem(Trouble.MISDIRECTED, f"the partition of {host} is not on this node; {where}")
