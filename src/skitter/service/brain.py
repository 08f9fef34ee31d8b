"""What the routes of the service may touch: the crawl's brain, behind one value.

Everything that a request asks or changes goes through it; a route never opens a file or a store of its own. The
brain outlives every request and is owned by whoever opened the crawl's folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from skitter.clock import Clock
from skitter.desk.brain import Delivery, Standing
from skitter.desk.crew import Crew
from skitter.desk.desk import Desk
from skitter.folder import CrawlFolder
from skitter.frontier.base import Frontier, Settlement
from skitter.model import Outcome
from skitter.service.tickets import Seal
from skitter.service.watch import Watch
from skitter.settings import Settings
from skitter.telemetry import Telemetry
from skitter.urls.keys import Keys
from skitter.urls.links import LinkReader


class Control:
    """Whether work may be handed out. A paused crawl takes results and answers questions, and leases nothing.
    It lasts as long as the process: who starts a crawl means it to run."""

    def __init__(self) -> None:
        self.is_paused = False

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Brain:
    frontier: Frontier
    settings: Settings
    folder: CrawlFolder
    telemetry: Telemetry
    clock: Clock
    control: Control = field(default_factory=Control)
    crew: Crew | None = None
    """Who takes what workers deliver; None where the service only looks on."""
    watch: Watch = field(default_factory=Watch)
    measure: Callable[[], None] = lambda: None
    """Brings the gauges of `telemetry` up to date; called before they are told, once a second at most."""
    seal: Seal = field(default_factory=Seal)
    keys: Keys = field(init=False)
    links: LinkReader = field(init=False)
    desk: Desk | None = None
    """None where nothing is archived: then the frontier is told directly."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", Keys(self.settings.keys))
        object.__setattr__(self, "links", LinkReader(self.keys))
        self.frontier.attend(self.watch)

    @property
    def is_open(self) -> bool:
        """Whether work may be handed out now."""
        return not self.control.is_paused and (self.desk is None or self.desk.standing is Standing.OPEN)

    async def settle(self, outcomes: Sequence[Outcome]) -> list[Settlement]:
        """What foreign workers report; their pages have no record in our archive."""
        if self.desk is None:
            return await self.frontier.settle(outcomes)
        return await self.desk.settled([Delivery(outcome) for outcome in outcomes])
