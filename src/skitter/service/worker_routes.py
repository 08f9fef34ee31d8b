"""The routes for our own workers in other processes: join, lease, settle, renew, release.

Thin: a request is decoded, handed to `committer/worker_rpc.py` and answered. Not a part of the documented API. A
crawl answers the same calls to the workers that it starts (`committer/worker_server.py`).
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from skitter.committer.worker_messages import (
    JOIN,
    LARGEST_BATCH,
    LEASE,
    MEDIA,
    PARTS,
    RELEASE,
    RENDER_ANSWERS,
    RENDER_LEASE,
    RENDER_RECORD,
    RENDER_RELEASE,
    RENEW,
    SETTLE,
    AnswersRequest,
    AnswersResponse,
    JoinRequest,
    JoinResponse,
    LeaseRequest,
    LeaseResponse,
    LeasesRequest,
    PartsRequest,
    PartsResponse,
    RecordRequest,
    RecordResponse,
    ReleaseResponse,
    RenderLeaseRequest,
    RenderLeaseResponse,
    RenderReleaseRequest,
    RenewResponse,
    SettleRequest,
    SettleResponse,
)
from skitter.committer.worker_rpc import Unacceptable, WorkerRpc
from skitter.service.api_context import ApiContext
from skitter.service.http.access import Role
from skitter.service.http.problem import Problem, Trouble
from skitter.service.http.routes import Call, Route


def _route(path: str, summary: str, body: type, answer: type) -> Route:
    async def act(context: ApiContext, call: Call[Any, None]) -> object:
        try:
            return await _rpc(context).calls()[path].act(_named(call))
        except Unacceptable as error:
            raise Problem(Trouble.INVALID, str(error)) from error

    return Route(
        method="POST",
        path=path,
        role=Role.TRUSTED_WORKER,
        group="work",
        summary=summary,
        call=act,
        body=body,
        answer=answer,
        body_media=MEDIA,
        answer_media=MEDIA,
        largest_body=LARGEST_BATCH,
        documented=False,
    )


def _named(call: Call[Any, None]) -> Any:
    """A worker is who its token says. What it calls itself tells apart those that share a token."""
    name = call.caller.name
    return replace(call.body, worker=f"{name}/{call.body.worker}") if name else call.body


def _rpc(context: ApiContext) -> WorkerRpc:
    if context.registry is None:
        raise Problem(Trouble.UNAVAILABLE, "this server takes no workers: start it with skitter serve")
    return WorkerRpc(context.registry, context.in_force.now, context.clock)


ROUTES = (
    _route(JOIN, "The settings a worker works by", JoinRequest, JoinResponse),
    _route(LEASE, "Hosts to ask", LeaseRequest, LeaseResponse),
    _route(SETTLE, "What came of it", SettleRequest, SettleResponse),
    _route(RENEW, "More time for hosts", LeasesRequest, RenewResponse),
    _route(RELEASE, "Hosts back", LeasesRequest, ReleaseResponse),
    _route(RENDER_LEASE, "Pages to render", RenderLeaseRequest, RenderLeaseResponse),
    _route(RENDER_RELEASE, "Pages back", RenderReleaseRequest, ReleaseResponse),
    _route(RENDER_ANSWERS, "What there is of URLs", AnswersRequest, AnswersResponse),
    _route(RENDER_RECORD, "A record of the archive", RecordRequest, RecordResponse),
    _route(PARTS, "Which node has which partition", PartsRequest, PartsResponse),
)
