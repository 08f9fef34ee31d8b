"""What a frontier needs of a log: commits in their order, kept elsewhere, behind a fence.

Beside the stores: `stores/logged.py` appends every commit here before it writes it to its own tables, so a crawl
can be gone on with on another machine. An owner has an epoch, and whoever claims the log later has a higher one.
From then on nothing of the earlier owner is appended: `append` raises `Fenced`, and the owner must stop at once
and answer nothing. Safety is the epoch alone; that an owner is silent only says who may try.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import msgspec


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants to append. `ident` is of one folder on one machine: the folder's own lock says that an earlier
    process with this ident is dead."""

    ident: str
    place: str
    """For people: which machine and folder."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What an owner is told when the log is its own."""

    crawl: str
    """The crawl that the log is of, made up when the log was begun."""
    epoch: int
    sequence: int
    """Of the last commit; 0 when there was none."""
    has_moved: bool
    """Whether the last commit is another owner's."""


class Entry(msgspec.Struct, frozen=True):
    """One commit, packed."""

    sequence: int
    epoch: int
    body: bytes


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The log as anybody may see it."""

    crawl: str
    epoch: int
    sequence: int
    first: int
    """The oldest commit that was not trimmed; one more than `sequence` when all were."""
    owner: str
    place: str
    silent: float
    """Seconds since the owner was last heard of; infinite when there is none, or it has let go."""
    is_free: bool
    """Whether another owner may claim it."""
    settings: str


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Tables as they were after a commit, kept in an object store: each file's name and its object's."""

    sequence: int
    epoch: int
    files: dict[str, str]


class Log(Protocol):
    def claim(self, owner: Owner) -> Claim:
        """Become the owner, with a new epoch. Raises `OwnedElsewhere` while another one is alive."""
        ...

    def append(self, sequence: int, body: bytes) -> None:
        """The next commit. It is kept when this returns, whatever dies. Raises `Fenced` when somebody else has
        claimed the log; waits while the log is away, until `give_up`."""
        ...

    def give_up(self) -> None:
        """Whoever waits in `append` need not wait any longer: it raises `LogFailed`, and the outcome is unknown.
        May be called from any thread."""
        ...

    def heartbeat(self) -> None:
        """The owner is alive. Raises `Fenced` when it is no longer the owner."""
        ...

    def read_from(self, sequence: int) -> Iterator[Entry]:
        """Commits from this one on, in their order, up to the last. For owners and for those who follow."""
        ...

    def standing(self) -> Standing | None:
        """None where no crawl has been logged."""
        ...

    def keep_settings(self, settings: str) -> None:
        """The crawl's settings, for machines that go on with it."""
        ...

    def add_checkpoint(self, checkpoint: Checkpoint) -> None:
        """It counts from now on: all its files must be in the object store. Raises `Fenced`."""
        ...

    def checkpoints(self) -> list[Checkpoint]:
        """Newest first."""
        ...

    def trim(self, keep: int) -> list[Checkpoint]:
        """Forget all checkpoints but the newest ones, and the commits that the oldest of those has. Returns what
        was forgotten. Raises `Fenced`."""
        ...

    def release(self) -> None:
        """The owner has ended: another one may claim the log at once."""
        ...

    def close(self) -> None: ...
