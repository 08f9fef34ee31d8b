"""What crosses the wire between a desk and its workers in other processes: the asks and the answers, in msgpack.

Between `reception.py` and `worker/remote.py`, which both are of one version of skitter: `join` sees to it.
Every ask names its worker, that worker's incarnation and a number that grows; one that is sent again, because its
answer got lost, is answered as the first was. Times are the server's; an answer carries the server's now.
"""

from __future__ import annotations

from struct import Struct
from typing import Annotated

import msgspec
from msgspec import Meta

from skitter.desk.brain import Delivery, Standing
from skitter.frontier.base import Settled
from skitter.model import Host, HostLease, Token
from skitter.settings import Settings

JOIN, LEASE, SETTLE = "/v1/work/join", "/v1/work/lease", "/v1/work/settle"
RENEW, RELEASE = "/v1/work/renew", "/v1/work/release"
# In frames: a kind of ask by its number, a status, and how many bytes follow.
KINDS = (JOIN, LEASE, SETTLE, RENEW, RELEASE)
ASK_HEAD, ANSWER_HEAD = Struct("<BI"), Struct("<HI")
# One page of fetch.max_body, its text and its links; more than any sensible setting needs.
LARGEST_BATCH = 64_000_000

Name = Annotated[str, Meta(min_length=1, max_length=200)]


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    worker: Name
    incarnation: Name
    sequence: int


class JoinAsk(Ask, frozen=True, kw_only=True):
    version: str


class LeaseAsk(Ask, frozen=True, kw_only=True):
    capacity: Annotated[int, Meta(ge=1, le=100_000)]
    in_flight: int = 0
    held: int = 0
    """Hosts."""
    busy: float = 0.0
    """Of a core, lately."""


class SettleAsk(Ask, frozen=True, kw_only=True):
    """`server` is the one by whose clock the deliveries are dated. Another one, started since, takes none of
    them: its answer tells its own time, by which they are sent again."""

    deliveries: list[Delivery]
    server: str = ""
    saved: int = 0
    """Links that were left out because an earlier page of theirs told of them."""
    capacity: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """Hosts that are wanted when this is settled: those that it frees are the next."""
    in_flight: int = 0
    held: int = 0
    busy: float = 0.0


class LeasesAsk(Ask, frozen=True, kw_only=True):
    """To renew, or to release."""

    leases: list[tuple[Host, Token]]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """`server` is new whenever the server was started anew."""

    server: str
    now: float
    standing: Standing


class Joined(Answer, frozen=True, kw_only=True):
    settings: Settings


class Given(Answer, frozen=True, kw_only=True):
    leases: list[HostLease]


class Taken(Answer, frozen=True, kw_only=True):
    settled: list[Settled]
    leases: list[HostLease] = []


class Renewed(Answer, frozen=True, kw_only=True):
    deadlines: list[float | None]


class Released(Answer, frozen=True, kw_only=True):
    pass
