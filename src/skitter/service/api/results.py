"""What became of tasks: results and failures, one or many at a time.

Settling is idempotent: what is told twice, or after its lease, is `stale` and changes nothing; but a good
page that comes late for a URL that nobody has fetched since is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from skitter.frontier.base import Settled, Settlement
from skitter.model import Outcome, UrlState
from skitter.service.api.tasks import TaskId, ticket_of
from skitter.service.api_context import ApiContext
from skitter.service.foreign_reports import Failure, Report, outcome_of
from skitter.service.http.access import Caller, Role
from skitter.service.http.problem import Problem, Trouble
from skitter.service.http.routes import Call, Route
from skitter.service.tickets import Ticket
from skitter.worker.kinds import KINDS

MOST_REPORTS = 500
_GROUP = "work"

Standing = Literal["accepted", "stale"]
StandingOrNot = Literal["accepted", "stale", "refused"]


class ResultTaken(msgspec.Struct, frozen=True, kw_only=True):
    """Of the distinct http(s) URLs among `extracted_urls`: how many are new, were known, and are not wanted."""

    status: Standing
    new_urls_enqueued: int = 0
    duplicates_skipped: int = 0
    urls_refused: int = 0


class FailureTaken(msgspec.Struct, frozen=True, kw_only=True):
    """`retry_count` is how often it was tried. For robots.txt it is the host that waits."""

    status: Standing
    will_retry: bool = False
    retry_count: int = 0
    next_attempt_at: float | None = None


class TaskReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    task_id: TaskId


class TaskFailure(Failure, frozen=True, kw_only=True, forbid_unknown_fields=True):
    task_id: TaskId


class Reports(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    results: Annotated[tuple[TaskReport, ...], Meta(min_length=1, max_length=MOST_REPORTS)]


class Failures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    failures: Annotated[tuple[TaskFailure, ...], Meta(min_length=1, max_length=MOST_REPORTS)]


class ReportTaken(msgspec.Struct, frozen=True, kw_only=True):
    """`refused` is a report with a fault of its own, which `detail` names; the others are settled."""

    status: StandingOrNot
    detail: str = ""
    new_urls_enqueued: int = 0
    duplicates_skipped: int = 0
    urls_refused: int = 0


class FailureOfBatch(msgspec.Struct, frozen=True, kw_only=True):
    status: StandingOrNot
    detail: str = ""
    will_retry: bool = False
    retry_count: int = 0
    next_attempt_at: float | None = None


class ReportsTaken(msgspec.Struct, frozen=True, kw_only=True):
    """In the order in which they were sent."""

    results: tuple[ReportTaken, ...]


class FailuresTaken(msgspec.Struct, frozen=True, kw_only=True):
    failures: tuple[FailureOfBatch, ...]


async def result(context: ApiContext, call: Call[Report, None]) -> ResultTaken:
    ticket = ticket_of(context, call.path["task_id"], call.caller)
    (settlement,) = await context.settle((outcome_of(context, ticket, call.body),))
    return ResultTaken(status=_standing(settlement), **_links(settlement))


async def fail(context: ApiContext, call: Call[Failure, None]) -> FailureTaken:
    ticket = ticket_of(context, call.path["task_id"], call.caller)
    (settlement,) = await context.settle((outcome_of(context, ticket, call.body),))
    next_one = await _next_attempt(context, ticket, settlement)
    return msgspec.structs.replace(next_one, status=_standing(settlement))


async def results(context: ApiContext, call: Call[Reports, None]) -> ReportsTaken:
    taken: list[ReportTaken] = []
    for _, settlement in await _settle_all(context, call.body.results, call.caller):
        if isinstance(settlement, Problem):
            taken.append(ReportTaken(status="refused", detail=settlement.detail))
        else:
            standing = _standing(settlement)
            taken.append(ReportTaken(status=standing, detail="", **_links(settlement)))
    return ReportsTaken(results=tuple(taken))


async def failures(context: ApiContext, call: Call[Failures, None]) -> FailuresTaken:
    taken: list[FailureOfBatch] = []
    for ticket, settlement in await _settle_all(context, call.body.failures, call.caller):
        if isinstance(settlement, Problem) or ticket is None:
            taken.append(FailureOfBatch(status="refused", detail=str(settlement)))
            continue
        following = await _next_attempt(context, ticket, settlement)
        taken.append(FailureOfBatch(**{**msgspec.structs.asdict(following), "status": _standing(settlement)}))
    return FailuresTaken(failures=tuple(taken))


_One = tuple[Ticket | None, Settlement | Problem]


async def _settle_all(
    context: ApiContext, said: Sequence[TaskReport | TaskFailure], caller: Caller
) -> list[_One]:
    """One commit for all that can be settled; what is wrong with the others, in their places."""
    answers: list[_One] = []
    outcomes: list[Outcome] = []
    places: list[int] = []
    for number, one in enumerate(said):
        try:
            ticket = ticket_of(context, one.task_id, caller)
            outcomes.append(outcome_of(context, ticket, one))
        except Problem as problem:
            answers.append((None, problem))
        else:
            answers.append((ticket, _PENDING))
            places.append(number)
    for number, settlement in zip(places, await context.settle(outcomes), strict=True):
        answers[number] = (answers[number][0], settlement)
    return answers


_PENDING = Settlement(Settled.STALE)


def _standing(settlement: Settlement) -> Standing:
    return "stale" if settlement.settled is Settled.STALE else "accepted"


def _links(settlement: Settlement) -> dict[str, int]:
    return {
        "new_urls_enqueued": settlement.added,
        "duplicates_skipped": settlement.known,
        "urls_refused": settlement.refused,
    }


async def _next_attempt(context: ApiContext, ticket: Ticket, settlement: Settlement) -> FailureTaken:
    if settlement.settled is Settled.STALE:
        return FailureTaken(status="stale")
    if KINDS[ticket.kind].is_rules:
        host = await context.frontier.host(ticket.host)
        if host is None or settlement.gave_up:
            return FailureTaken(status="accepted", retry_count=host.failures_in_a_row if host else 0)
        return FailureTaken(
            status="accepted",
            will_retry=True,
            retry_count=host.failures_in_a_row,
            next_attempt_at=host.next_start,
        )
    known = await context.frontier.explain(ticket.url)
    return FailureTaken(
        status="accepted",
        will_retry=settlement.state is UrlState.FAILED,
        retry_count=known.attempts,
        next_attempt_at=known.next_at if settlement.state is UrlState.FAILED else None,
    )


ROUTES = (
    Route(
        method="POST",
        path="/v1/tasks/{task_id}/result",
        role=Role.WORKER,
        group=_GROUP,
        summary="An answer came, whatever its status",
        detail=(
            "Redirects need `location`, robots tasks their `body`. Relative `extracted_urls` are resolved "
            "against the task's URL (or `base_url`). Told twice, it is stale the second time."
        ),
        call=result,
        body=Report,
        answer=ResultTaken,
        problems=(
            Trouble.UNKNOWN_TASK,
            Trouble.NOT_YOUR_TASK,
            Trouble.CONTRADICTORY,
            Trouble.MISDIRECTED,
        ),
        keyed=True,
    ),
    Route(
        method="POST",
        path="/v1/tasks/{task_id}/fail",
        role=Role.WORKER,
        group=_GROUP,
        summary="No usable answer came",
        call=fail,
        body=Failure,
        answer=FailureTaken,
        problems=(
            Trouble.UNKNOWN_TASK,
            Trouble.NOT_YOUR_TASK,
            Trouble.CONTRADICTORY,
            Trouble.MISDIRECTED,
        ),
        keyed=True,
    ),
    Route(
        method="POST",
        path="/v1/tasks/results",
        role=Role.WORKER,
        group=_GROUP,
        summary="Many answers at once",
        call=results,
        body=Reports,
        answer=ReportsTaken,
        problems=(Trouble.MISDIRECTED,),
        keyed=True,
    ),
    Route(
        method="POST",
        path="/v1/tasks/failures",
        role=Role.WORKER,
        group=_GROUP,
        summary="Many failures at once",
        call=failures,
        body=Failures,
        answer=FailuresTaken,
        problems=(Trouble.MISDIRECTED,),
        keyed=True,
    ),
)
