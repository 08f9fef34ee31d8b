"""The requests and responses between a committer and its workers in other processes, in msgpack.

Between `worker_rpc.py` and `worker/remote/remote_work_source.py`. Both are of one version: `join` checks it.
Every request names its worker, that worker's incarnation and a number that grows. One that is sent again, because
its response got lost, gets the same response. Times are the server's; a response carries the server's now.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from skitter.committer.work_source import Delivery, Standing
from skitter.frontier.base import Settled
from skitter.model import AnswerAt, Host, HostLease, RecordAt, RenderTask, Token, UrlKey
from skitter.settings import Settings

JOIN, LEASE, SETTLE = "/v1/work/join", "/v1/work/lease", "/v1/work/settle"
RENEW, RELEASE, PARTS = "/v1/work/renew", "/v1/work/release", "/v1/work/partitions"
RENDER_LEASE, RENDER_RELEASE = "/v1/work/render/lease", "/v1/work/render/release"
RENDER_ANSWERS, RENDER_RECORD = "/v1/work/render/answers", "/v1/work/render/record"
MEDIA = "application/msgpack"
# One page of fetch.max_body, its text and its links, or one sitemap with 50,000; more than is sensible.
LARGEST_BATCH = 96_000_000

Number = Annotated[int, Meta(ge=0, le=1 << 53)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]


class WorkerRequest(msgspec.Struct, frozen=True, kw_only=True):
    worker: Name
    incarnation: Name
    sequence: int


class JoinRequest(WorkerRequest, frozen=True, kw_only=True):
    version: str


class LeaseRequest(WorkerRequest, frozen=True, kw_only=True):
    capacity: Annotated[int, Meta(ge=1, le=100_000)]
    in_flight: Number = 0
    held: Number = 0
    """Hosts."""
    busy: float = 0.0
    """Of a core, lately."""


class SettleRequest(WorkerRequest, frozen=True, kw_only=True):
    """`server` is the one by whose clock the deliveries are dated. Another one, started since, takes none of
    them: its answer tells its own time, by which they are sent again."""

    deliveries: list[Delivery]
    seals: list[bytes] = []
    """Of each delivery's lease."""
    server: str = ""
    saved: Number = 0
    """Links that were left out because an earlier page of theirs told of them."""
    capacity: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """Hosts that are wanted when this is settled: those that it frees are the next."""
    in_flight: Number = 0
    held: Number = 0
    busy: float = 0.0


class LeasesRequest(WorkerRequest, frozen=True, kw_only=True):
    """To renew, or to release."""

    leases: list[tuple[Host, Token]]
    seals: list[bytes] = []
    """Of each lease."""


class WorkerResponse(msgspec.Struct, frozen=True, kw_only=True):
    """`server` is new whenever the server was started anew. `concurrency` is how many requests one worker may
    have in flight: it may change while the crawl runs (0: as it was told when it joined)."""

    server: str
    now: float
    standing: Standing
    concurrency: int = 0
    renders: int = 0
    """Pages that wait to be rendered."""


class JoinResponse(WorkerResponse, frozen=True, kw_only=True):
    """Of a cluster `parts` says how many partitions it has; the worker asks where they are."""

    settings: Settings
    parts: int = 0


class LeaseResponse(WorkerResponse, frozen=True, kw_only=True):
    """`seals` prove that the leases are this worker's; the workers that a crawl started itself need none."""

    leases: list[HostLease]
    seals: list[bytes] = []


class SettleResponse(WorkerResponse, frozen=True, kw_only=True):
    settled: list[Settled]
    leases: list[HostLease] = []
    seals: list[bytes] = []
    refused: dict[int, str] = {}
    """Deliveries that no worker could have made, by their place among those sent, and what is wrong with them."""
    elsewhere: list[int] = []
    """Deliveries that were not taken, because another node has their partition, or nobody has now."""


class RenewResponse(WorkerResponse, frozen=True, kw_only=True):
    deadlines: list[float | None]
    elsewhere: list[int] = []
    """Leases of partitions that are not here: nothing is known of them."""


class PartsRequest(WorkerRequest, frozen=True, kw_only=True):
    """Which node has which partition?"""


class PartsResponse(WorkerResponse, frozen=True, kw_only=True):
    """Where each partition is, by its number; empty while nobody has it."""

    places: list[str]


class ReleaseResponse(WorkerResponse, frozen=True, kw_only=True):
    pass


class RenderLeaseRequest(WorkerRequest, frozen=True, kw_only=True):
    capacity: Annotated[int, Meta(ge=1, le=1_000)]


class RenderLeaseResponse(WorkerResponse, frozen=True, kw_only=True):
    tasks: list[RenderTask]
    seals: list[bytes] = []


class RenderReleaseRequest(WorkerRequest, frozen=True, kw_only=True):
    leases: list[tuple[UrlKey, Token]]


class AnswersRequest(WorkerRequest, frozen=True, kw_only=True):
    urls: Annotated[list[Annotated[str, Meta(max_length=20_000)]], Meta(max_length=1_000)]


class AnswersResponse(WorkerResponse, frozen=True, kw_only=True):
    answers: list[AnswerAt]


class RecordRequest(WorkerRequest, frozen=True, kw_only=True):
    """The record at a place, or where the first copy of a body lies."""

    at: RecordAt | None = None
    digest: bytes = b""


class RecordResponse(WorkerResponse, frozen=True, kw_only=True):
    record: bytes | None = None
    place: RecordAt | None = None
