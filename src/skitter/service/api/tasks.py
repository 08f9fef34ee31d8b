"""Work for foreign workers: lease tasks, renew and release them.

The unit of politeness is the host: a lease is of a host, and its tasks are for one worker, one after the other, a
delay apart. Unless a worker asks for more it gets one task of a host, so that a simple loop is polite.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from skitter.fetch.curl import user_agent
from skitter.frontier.base import REMOTE
from skitter.model import Host, HostLease, Task, Token
from skitter.service.api_context import ApiContext
from skitter.service.http.access import Caller, Role
from skitter.service.http.problem import Problem, Trouble
from skitter.service.http.routes import Call, Route
from skitter.service.tickets import LONGEST, Ticket
from skitter.worker.kinds import KINDS

MOST_TASKS = 1_000
_GROUP = "work"
_SOONEST, _LATEST = 0.05, 10.0

TaskId = Annotated[str, Meta(min_length=1, max_length=LONGEST)]
Duration = Annotated[float, Meta(ge=1, le=3600)]


class AskedKind(StrEnum):
    """What a foreign worker has to tell apart: of a robots.txt its body is wanted."""

    ROBOTS = "robots"
    PAGE = "page"


class LeaseAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`tasks_per_host` above 1 is for workers that keep to a host's delay by themselves."""

    worker_id: Annotated[str, Meta(pattern="^[!-~]{1,100}$")]
    batch_size: Annotated[int, Meta(ge=1, le=MOST_TASKS)] = 10
    lease_duration_sec: Duration = 60.0
    tasks_per_host: Annotated[int, Meta(ge=1, le=64)] = 1


class TaskGiven(msgspec.Struct, frozen=True, kw_only=True):
    """One request to make, not before `not_before` (in `wait_ms` by the answer's own time), and at least
    `crawl_delay_ms` after the one before to the same `host`, which must have ended. `etag` and `last_modified`
    are to be sent as If-None-Match and If-Modified-Since. With a `form` it is a POST of that body, of the type
    application/x-www-form-urlencoded, and never sent twice."""

    task_id: str
    url: str
    host: str
    domain: str
    kind: AskedKind
    attempt: int
    not_before: float
    wait_ms: int
    crawl_delay_ms: int
    timeout_at: float
    etag: str
    last_modified: str
    verify_tls: bool
    form: str = ""


class LeaseGiven(msgspec.Struct, frozen=True, kw_only=True):
    """`retry_after_ms` is when to ask again, `next_at` when the next host or retry is ready (null: none waits).
    `finished`: nothing is left to do and nothing is being done, until seeds come or what failed is revived."""

    tasks: tuple[TaskGiven, ...]
    now: float
    next_at: float | None
    retry_after_ms: int
    finished: bool
    paused: bool
    user_agent: str


class RenewAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    task_ids: Annotated[tuple[TaskId, ...], Meta(min_length=1, max_length=MOST_TASKS)]
    lease_duration_sec: Duration = 60.0


class Renewal(msgspec.Struct, frozen=True, kw_only=True):
    """`timeout_at` is null when the lease is over: stop, and do not send what was not sent yet."""

    task_id: str
    timeout_at: float | None


class Renewed(msgspec.Struct, frozen=True, kw_only=True):
    leases: tuple[Renewal, ...]


class ReleaseAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    task_ids: Annotated[tuple[TaskId, ...], Meta(min_length=1, max_length=MOST_TASKS)]


class Released(msgspec.Struct, frozen=True, kw_only=True):
    leases: int


async def lease(context: ApiContext, call: Call[LeaseAsked, None]) -> LeaseGiven:
    asked = call.body
    of_host = min(asked.tasks_per_host, asked.batch_size)
    leases = await context.committer.lease(
        _worker_name(call.caller.name, asked.worker_id),
        asked.batch_size // of_host,
        asked.lease_duration_sec,
        most_tasks=of_host,
    )
    now = context.clock.now()
    horizon = await context.frontier.horizon()
    over = horizon.next_at is None or horizon.limit_reached
    return LeaseGiven(
        tasks=tuple(
            _given(context, one, number, now, call.caller.name)
            for one in leases
            for number in range(len(one.tasks))
        ),
        now=now,
        next_at=horizon.next_at,
        retry_after_ms=0 if leases else _milliseconds(_pause(horizon.next_at, now)),
        finished=over and not horizon.leased_hosts,
        paused=not context.is_open,
        user_agent=user_agent(context.settings.identity),
    )


def _worker_name(token_name: str, said: str) -> str:
    """What the frontier calls the worker: who its token says, then what it calls itself."""
    return f"{REMOTE}{token_name}/{said}" if token_name else REMOTE + said


def _given(context: ApiContext, lease: HostLease, number: int, now: float, holder: str) -> TaskGiven:
    task: Task = lease.tasks[number]
    not_before = lease.not_before + number * lease.delay
    verify = context.settings.fetch.verify_tls if lease.verify_tls is None else lease.verify_tls
    return TaskGiven(
        task_id=context.seal.write(lease, task, now, holder),
        url=task.url,
        host=lease.host,
        domain=_domain(lease.host),
        kind=AskedKind.ROBOTS if KINDS[task.kind].is_rules else AskedKind.PAGE,
        attempt=task.attempt,
        not_before=not_before,
        wait_ms=_milliseconds(not_before - now),
        crawl_delay_ms=_milliseconds(lease.delay),
        timeout_at=lease.deadline if lease.closes_at is None else min(lease.deadline, lease.closes_at),
        etag=task.etag,
        last_modified=task.last_modified,
        verify_tls=verify,
        form=task.form,
    )


def _domain(host: Host) -> str:
    name = host.partition("://")[2]
    return name if name.endswith("]") else name.rpartition(":")[0] or name


def _pause(next_at: float | None, now: float) -> float:
    return 1.0 if next_at is None else min(max(next_at - now, _SOONEST), _LATEST)


def _milliseconds(seconds: float) -> int:
    """Rounded up: a worker that waits for it must not be early."""
    return max(0, math.ceil(seconds * 1000))


async def renew(context: ApiContext, call: Call[RenewAsked, None]) -> Renewed:
    asked = [(task_id, ticket_of(context, task_id, call.caller)) for task_id in call.body.task_ids]
    leases = _leases([ticket for _, ticket in asked])
    deadlines = await context.committer.renew(leases, call.body.lease_duration_sec)
    ends = dict(zip(leases, deadlines, strict=True))
    return Renewed(
        leases=tuple(
            Renewal(task_id=task_id, timeout_at=ends[ticket.host, ticket.token]) for task_id, ticket in asked
        )
    )


async def release(context: ApiContext, call: Call[ReleaseAsked, None]) -> Released:
    leases = _leases([ticket_of(context, task_id, call.caller) for task_id in call.body.task_ids])
    await context.committer.release(leases)
    return Released(leases=len(leases))


def _leases(tickets: list[Ticket]) -> list[tuple[Host, Token]]:
    return list(dict.fromkeys((ticket.host, ticket.token) for ticket in tickets))


def ticket_of(context: ApiContext, task_id: str, caller: Caller) -> Ticket:
    ticket = context.seal.read(task_id)
    if ticket is None:
        raise Problem(Trouble.UNKNOWN_TASK, "use a task_id exactly as the lease gave it, on the same crawl")
    if ticket.holder != caller.name:
        context.committer.refuse_lease(REMOTE + caller.name, ticket.host)
        raise Problem(
            Trouble.NOT_YOUR_TASK, "use the token with which it was leased, or leave it to who leased it"
        )
    return ticket


ROUTES = (
    Route(
        method="POST",
        path="/v1/tasks/lease",
        role=Role.WORKER,
        group=_GROUP,
        summary="Get tasks, each a request to make",
        detail=(
            "Tasks of hosts that may be asked now. Tasks of one host are for one worker, one after the other, "
            "`crawl_delay_ms` apart, the previous answer ended; a task that is not settled by `timeout_at` "
            "goes to somebody else. A host's first task is its robots.txt (`kind` is robots): return its body."
        ),
        call=lease,
        body=LeaseAsked,
        answer=LeaseGiven,
        keyed=True,
    ),
    Route(
        method="POST",
        path="/v1/tasks/renew",
        role=Role.WORKER,
        group=_GROUP,
        summary="Hold leases for longer: the heartbeat of a worker",
        detail="The leases of these tasks end the given time from now. One of several tasks of a host is enough.",
        call=renew,
        body=RenewAsked,
        answer=Renewed,
        problems=(Trouble.UNKNOWN_TASK, Trouble.NOT_YOUR_TASK),
    ),
    Route(
        method="POST",
        path="/v1/tasks/release",
        role=Role.WORKER,
        group=_GROUP,
        summary="Give back what will not be fetched",
        detail="Ends the leases of these tasks, with all of their tasks. Harmless for leases that are over.",
        call=release,
        body=ReleaseAsked,
        answer=Released,
        problems=(Trouble.UNKNOWN_TASK, Trouble.NOT_YOUR_TASK),
    ),
)
