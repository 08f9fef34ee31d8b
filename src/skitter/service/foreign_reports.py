"""What a foreign worker says of a task, as the outcome that settles it: believed only as far as it can be
checked.

Between the API and the frontier. Sizes and counts are bounded by the types, times by the lease and the
clock, links are resolved and canonicalised here; what a status means is decided as for our own workers.
Whatever is wrong with a report is refused with a sentence, and nothing of it is settled.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated

import msgspec
from msgspec import Meta

from skitter.model import (
    Failed,
    FailureKind,
    Fetched,
    Link,
    Outcome,
    Result,
    RobotsRead,
)
from skitter.robots.rules import MAX_BYTES as MOST_ROBOTS
from skitter.service.api_context import ApiContext
from skitter.service.http.problem import Problem, Trouble
from skitter.service.tickets import Ticket
from skitter.urls.canonical import normalise
from skitter.worker.kinds import KINDS
from skitter.worker.status_rules import StatusLine, result_by_status, robots_refusal

MOST_LINKS = 10_000
# Two clocks that are both right differ by so much.
_SLACK = 1.0
_LONGEST_HREF = 8192

Short = Annotated[str, Meta(max_length=500)]
Seconds = Annotated[float, Meta(ge=0, le=7 * 86_400)]
At = Annotated[float, Meta(ge=0, le=1e11)]


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer came, whatever its status. `content_hash` is SHA-256 of the body in hex; `storage_path` says
    where the worker put the body, and is shown with the fetch. `body` is for robots.txt alone. `sent_at` is when
    the request had left, by the server's clock; without it, the report's arrival counts."""

    http_status: Annotated[int, Meta(ge=200, le=599)]
    content_type: Annotated[str, Meta(max_length=200)] = ""
    content_hash: Annotated[str, Meta(pattern="^(?:sha256:)?[0-9a-fA-F]{64}$|^$")] = ""
    size: Annotated[int, Meta(ge=0, le=1 << 40)] = 0
    truncated: bool = False
    storage_path: Annotated[str, Meta(max_length=1000)] = ""
    etag: Short = ""
    last_modified: Annotated[str, Meta(max_length=100)] = ""
    title: Short = ""
    location: Annotated[str, Meta(max_length=8192)] = ""
    extracted_urls: Annotated[tuple[str, ...], Meta(max_length=MOST_LINKS)] = ()
    base_url: Annotated[str, Meta(max_length=8192)] = ""
    body: str | None = None
    retry_after_sec: Seconds | None = None
    address: Annotated[str, Meta(max_length=45)] = ""
    sent_at: At | None = None
    ended_at: At | None = None


class Failure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No usable answer came. `error` is one of the kinds that docs/failures.md lists."""

    error: FailureKind
    http_status: Annotated[int, Meta(ge=0, le=599)] = 0
    detail: Short = ""
    retry_after_sec: Seconds | None = None
    address: Annotated[str, Meta(max_length=45)] = ""
    sent_at: At | None = None
    ended_at: At | None = None


def outcome_of(context: ApiContext, ticket: Ticket, said: Report | Failure) -> Outcome:
    sent_at, ended_at = _times(ticket, said, context.clock.now())
    result = _failed(said) if isinstance(said, Failure) else _result(context, ticket, said)
    return Outcome(
        host=ticket.host,
        token=ticket.token,
        kind=ticket.kind,
        key=ticket.key,
        sent_at=sent_at,
        ended_at=ended_at,
        result=result,
        address=_address(said.address),
    )


def _times(ticket: Ticket, said: Report | Failure, now: float) -> tuple[float, float]:
    """Politeness counts from these, so they must lie within the lease and in order."""
    ended = now if said.ended_at is None else said.ended_at
    sent = ended if said.sent_at is None else said.sent_at
    if not ticket.granted - _SLACK <= sent <= ended <= now + _SLACK:
        raise _contradictory(
            f"sent_at and ended_at must lie in this order between the lease ({ticket.granted:.3f}) and now "
            f"({now:.3f}) by the server's clock, or be left out"
        )
    sent, ended = max(sent, ticket.granted), max(ended, ticket.granted)
    return min(sent, now), min(ended, now)


def _address(text: str) -> str:
    """Hosts of one address share a rate: only what is an address may count for one."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return ""


def _failed(said: Failure) -> Failed:
    return Failed(
        kind=said.error, detail=said.detail, status=said.http_status, retry_after=said.retry_after_sec
    )


def _result(context: ApiContext, ticket: Ticket, said: Report) -> Result:
    """By the same rules as an answer to our own workers."""
    line = StatusLine(
        status=said.http_status,
        size=said.size,
        location=said.location,
        retry_after=said.retry_after_sec,
        is_conditional=ticket.conditional,
    )
    result = result_by_status(ticket, line, context.keys)
    if result is not None:
        return result
    row = KINDS[ticket.kind]
    return _robots(said) if row.is_rules else _fetched(context, ticket, said, has_links=row.has_links)


def _robots(said: Report) -> Result:
    status, body = said.http_status, b""
    if (refusal := robots_refusal(status)) is not None:
        return refusal
    if status < 300:
        if said.body is None:
            # rules that were forgotten must not pass for a file without rules
            raise _contradictory("a robots task that was answered needs its `body`, as text")
        body = said.body.encode()[: MOST_ROBOTS + 1]
    return RobotsRead(
        status=status,
        body=body,
        digest=_digest(said),
        size=said.size or len(body),
        etag=said.etag,
        last_modified=said.last_modified,
    )


def _fetched(context: ApiContext, ticket: Ticket, said: Report, *, has_links: bool) -> Result:
    base = normalise(said.base_url, ticket.url) if said.base_url else ticket.url
    hrefs = said.extracted_urls if base is not None and has_links else ()
    # what a href leads to is remembered: one of megabytes must not be
    short = [Link(href) for href in hrefs if len(href) <= _LONGEST_HREF]
    links = context.links.discover(ticket.key, ticket.url, ticket.depth, base or ticket.url, short)
    return Fetched(
        status=said.http_status,
        content_type=said.content_type,
        digest=_digest(said),
        size=said.size,
        truncated=said.truncated,
        etag=said.etag,
        last_modified=said.last_modified,
        title=said.title,
        link_batches=links,
        note=f"kept by its worker at {said.storage_path}" if said.storage_path else "",
    )


def _digest(said: Report) -> bytes:
    return bytes.fromhex(said.content_hash.removeprefix("sha256:"))


def _contradictory(detail: str) -> Problem:
    return Problem(Trouble.CONTRADICTORY, detail)
