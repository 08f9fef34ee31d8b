"""Pages that changed, told by who changed them, in the form of IndexNow (indexnow.org).

Known URLs go back to their queues, unknown ones go through admission like links. Politeness and robots.txt hold
as ever: a push makes nothing faster than its host allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from skitter.model import Discovered, Host, VerdictKind, Via
from skitter.service.api_context import ApiContext
from skitter.service.http.access import Role
from skitter.service.http.routes import Call, Route
from skitter.urls.canonical import host_of, normalise

MOST_CHANGES = 10_000
_SHOWN = 500
_SHOWN_REFUSED = 100


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """`key` and `keyLocation` are taken and not looked at: the token of the call says who may tell."""

    host: Annotated[str, Meta(min_length=1, max_length=300)]
    url_list: Annotated[tuple[str, ...], Meta(min_length=1, max_length=MOST_CHANGES)] = msgspec.field(
        name="urlList"
    )
    key: str = ""
    key_location: str = msgspec.field(name="keyLocation", default="")


class RefusedChange(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    reason: str


class ChangesTaken(msgspec.Struct, frozen=True, kw_only=True):
    """`due` were known and are asked for again, `added` are new, `waiting` were in a queue already. `refused` are
    told up to a hundred, `refusals` counts them all."""

    due: int
    added: int
    waiting: int
    refusals: int
    refused: tuple[RefusedChange, ...]


async def tell_changes(context: ApiContext, call: Call[Changes, None]) -> ChangesTaken:
    found: dict[str, Discovered] = {}
    refused: list[RefusedChange] = []
    for text in call.body.url_list:
        one = _discovered(context, text, call.body.host.lower())
        if isinstance(one, Discovered):
            found[one.url] = one
        else:
            refused.append(one)
    return await take_changes(context, found, refused)


async def take_changes(
    context: ApiContext, found: dict[str, Discovered], refused_before: Sequence[RefusedChange] = ()
) -> ChangesTaken:
    """Known URLs become due, unknown ones are admitted like links."""
    refused = list(refused_before)
    verdicts = await context.frontier.admit(list(found.values()))
    due = added = waiting = 0
    for url, verdict in zip(found, verdicts, strict=True):
        if verdict.kind is VerdictKind.ADDED:
            added += 1
        elif verdict.kind is VerdictKind.REFUSED:
            refused.append(RefusedChange(url=url[:_SHOWN], reason=f"{verdict.reason}: {verdict.rule}"))
        elif await context.frontier.refresh(url=url):
            due += 1
        else:
            waiting += 1
    shown = tuple(refused[:_SHOWN_REFUSED])
    return ChangesTaken(due=due, added=added, waiting=waiting, refusals=len(refused), refused=shown)


def _discovered(context: ApiContext, text: str, host: str) -> Discovered | RefusedChange:
    url = normalise(text)
    if url is None:
        return RefusedChange(url=text[:_SHOWN], reason="not an http or https URL")
    origin = host_of(url)
    if not _is_of(origin, host):
        return RefusedChange(url=url[:_SHOWN], reason=f"not of the host {host}")
    return Discovered(url=url, key=context.keys.key_of(url), host=origin, depth=1, via=Via.PUSH)


def _is_of(origin: Host, host: str) -> bool:
    """With or without the port."""
    authority = origin.partition("://")[2]
    return host in (authority, authority.rpartition(":")[0])


ROUTES = (
    Route(
        method="POST",
        path="/v1/changed",
        role=Role.OPERATOR,
        group="seeds",
        summary="Tell of pages that have changed",
        detail="The form is IndexNow's. Known URLs are asked for again as soon as their host allows; others are "
        "admitted like links, so scope decides.",
        call=tell_changes,
        body=Changes,
        answer=ChangesTaken,
        status=202,
        keyed=True,
    ),
)
