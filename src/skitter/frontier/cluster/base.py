"""What a cluster needs of each of its partitions: a frontier of its own hosts, and the post to the others.

`EngineFrontier` is one, opened with a `Partition`; `calls.py` reaches one that another node has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from skitter.frontier.base import Frontier
from skitter.frontier.posts import WaitingPost
from skitter.model import Host


class Part(Frontier, Protocol):
    async def parts_with_posts(self) -> list[int]:
        """Partitions that are to be told something."""
        ...

    async def waiting_posts(self, part: int, after: int, most: int) -> list[WaitingPost]:
        """What a partition is to be told, in order, from the post after this number on."""
        ...

    async def take_posts(self, source: int, posts: Sequence[WaitingPost]) -> int:
        """What another partition tells, in one act: how many are new. Telling it twice changes nothing."""
        ...

    async def posts_taken(self, posts: Sequence[WaitingPost]) -> None:
        """Others have committed these: they leave the outbox."""
        ...


class NodeState(msgspec.Struct, frozen=True, kw_only=True):
    """A node as any node knows it: `silent` is for how many seconds it was not heard of, by the database."""

    node: str
    url: str
    place: str
    version: str
    silent: float
    live: bool
    draining: bool
    partitions: int


class PartState(msgspec.Struct, frozen=True, kw_only=True):
    """A partition: `url` is where its owner is, empty while nobody has it. `sequence` is its last commit,
    `checkpoint` the one that its last checkpoint has."""

    partition: int
    url: str
    node: str
    epoch: int
    sequence: int
    checkpoint: int
    silent: float | None


class ClusterState(msgspec.Struct, frozen=True, kw_only=True):
    """`idle`: nothing is leased, nothing is to come and nothing is in the post; null while a partition cannot be
    asked."""

    crawl: str
    idle: bool | None
    nodes: list[NodeState]
    partitions: list[PartState]


class ClusterHere(Protocol):
    """What the service of a node may ask of it."""

    def part_here(self, number: int) -> Part | None: ...

    def place_of(self, host: Host) -> str:
        """Where the partition of a host is; empty while nobody has it."""
        ...

    async def state(self) -> ClusterState: ...
