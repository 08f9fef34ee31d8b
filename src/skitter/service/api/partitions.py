"""A cluster, as any of its nodes knows it: who has which partition; and what nodes ask each other."""

from __future__ import annotations

from starlette.responses import Response

from skitter.committer.worker_messages import LARGEST_BATCH, MEDIA
from skitter.frontier.cluster.base import ClusterHere, ClusterState
from skitter.frontier.cluster.calls import PartCall, answer_call
from skitter.service.api_context import ApiContext
from skitter.service.http.access import Role
from skitter.service.http.problem import Problem, Trouble
from skitter.service.http.routes import Call, Route

CALL = "/v1/cluster/call"
_GROUP = "cluster"


async def partitions(context: ApiContext, call: Call[None, None]) -> ClusterState:
    return await _cluster(context).state()


async def call_part(context: ApiContext, call: Call[PartCall, None]) -> Response:
    part = _cluster(context).part_here(call.body.part)
    if part is None:
        raise Problem(Trouble.MISDIRECTED, f"partition {call.body.part} is not on this node: look again")
    return Response(await answer_call(part, call.body), media_type=MEDIA)


def _cluster(context: ApiContext) -> ClusterHere:
    if context.cluster is None:
        raise Problem(Trouble.NO_CLUSTER, "start nodes with skitter serve DIR --cluster URL")
    return context.cluster


ROUTES = (
    Route(
        method="GET",
        path="/v1/partitions",
        role=Role.READ,
        group=_GROUP,
        summary="The nodes of the cluster, and which of them has which partition",
        call=partitions,
        answer=ClusterState,
        problems=(Trouble.NO_CLUSTER,),
    ),
    Route(
        method="POST",
        path=CALL,
        role=Role.OPERATOR,
        group=_GROUP,
        summary="What one node asks another",
        call=call_part,
        body=PartCall,
        body_media=MEDIA,
        answer_media=MEDIA,
        largest_body=LARGEST_BATCH,
        documented=False,
    ),
)
