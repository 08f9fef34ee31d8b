"""Seeds: where a crawl begins, given while it runs."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from skitter.errors import NoContact
from skitter.model import Discovered, VerdictKind, Via
from skitter.schedule.priority import SEED_PRIORITY
from skitter.seeds import require_contact
from skitter.service.access import Role
from skitter.service.brain import Brain
from skitter.service.routes import Call, Route
from skitter.urls.canonical import host_of, normalise

MOST_SEEDS = 10_000
_NAMED = {"high": 95, "normal": SEED_PRIORITY, "low": 30}
_SHOWN = 500


class Seeds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`priority` from 0 to 100, higher is more urgent (95 high, 80 normal, 30 low); links have 65 and less."""

    urls: Annotated[tuple[str, ...], Meta(min_length=1, max_length=MOST_SEEDS)]
    priority: Annotated[int, Meta(ge=0, le=100)] | Literal["high", "normal", "low"] = "normal"


class RefusedSeed(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    reason: str


class SeedsTaken(msgspec.Struct, frozen=True, kw_only=True):
    accepted: int
    duplicates_skipped: int
    refused: tuple[RefusedSeed, ...]


async def seed(brain: Brain, call: Call[Seeds, None]) -> SeedsTaken:
    priority = call.body.priority
    urgency = _NAMED[priority] if isinstance(priority, str) else priority
    refused: list[RefusedSeed] = []
    found: list[Discovered] = []
    for text in call.body.urls:
        one = _discovered(brain, text, urgency)
        if isinstance(one, Discovered):
            found.append(one)
        else:
            refused.append(one)
    verdicts = await brain.frontier.admit(found)
    refused += [
        RefusedSeed(url=one.url, reason=f"{verdict.reason}: {verdict.rule}")
        for one, verdict in zip(found, verdicts, strict=True)
        if verdict.kind is VerdictKind.REFUSED
    ]
    return SeedsTaken(
        accepted=sum(verdict.kind is VerdictKind.ADDED for verdict in verdicts),
        duplicates_skipped=sum(verdict.kind is VerdictKind.KNOWN for verdict in verdicts),
        refused=tuple(refused),
    )


def _discovered(brain: Brain, text: str, priority: int) -> Discovered | RefusedSeed:
    url = normalise(text)
    if url is None:
        return RefusedSeed(url=text[:_SHOWN], reason="not an http or https URL")
    found = Discovered(
        url=url, key=brain.keys.key_of(url), host=host_of(url), depth=0, via=Via.SEED, priority=priority
    )
    try:
        require_contact(brain.settings, (found,))
    except NoContact as error:
        return RefusedSeed(url=url[:_SHOWN], reason=str(error))
    return found


ROUTES = (
    Route(
        method="POST",
        path="/v1/seeds",
        role=Role.OPERATOR,
        group="seeds",
        summary="Add URLs to crawl from",
        detail="A seed brings its host into scope. Sending the same ones again is harmless.",
        call=seed,
        body=Seeds,
        answer=SeedsTaken,
        status=202,
        keyed=True,
    ),
)
