"""WebSub (W3C): hubs tell of new content of topics. What they send makes the topic and what it names due.

A hub first asks whether we meant it (verification of intent), then sends content, signed with the secret that it
was given. Strangers can call here: nothing is believed without a signature, and a push says only where to look.
Pages come from their own hosts, through the frontier, politely.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from skitter.model import Discovered, Host, TaskKind, Via
from skitter.parse.sitemaps.sitemap import Entry, Format, Limits, SitemapReader
from skitter.service.api.changes import take_changes
from skitter.service.api_context import ApiContext
from skitter.service.http.access import Role
from skitter.service.http.problem import Problem, Trouble
from skitter.service.http.routes import ANY, TEXT, Call, Route
from skitter.service.steering.subscriptions import PATH, SubscribeAnswer, SubscribeAsked, subscribed
from skitter.service.subscriptions import CALLBACK, Subscription, SubscriptionState
from skitter.urls.canonical import host_of, normalise

_GROUP = "websub"
_LARGEST = 5_000_000
_MOST_ENTRIES = 500
_SHORTEST_LEASE, _LONGEST_LEASE = 300, 366 * 86_400
_LONGEST_REASON = 200


class SubscriptionShown(msgspec.Struct, frozen=True, kw_only=True):
    """`state` is asked, confirmed, denied or ending; `until` is when the hub's promise ends. `notified` counts
    what came signed, `refused` what did not."""

    id: str
    topic: str
    hub: str
    state: str
    asked_at: float
    until: float | None
    reason: str
    notified: int
    refused: int
    last_at: float | None


class SubscriptionList(msgspec.Struct, frozen=True, kw_only=True):
    subscriptions: list[SubscriptionShown]


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What a hub asks back. Unknown parameters are its own affair."""

    mode: Annotated[str, Meta(max_length=20)] = msgspec.field(name="hub.mode")
    topic: Annotated[str, Meta(max_length=4096)] = msgspec.field(name="hub.topic", default="")
    challenge: Annotated[str, Meta(max_length=4096)] = msgspec.field(name="hub.challenge", default="")
    lease_seconds: int = msgspec.field(name="hub.lease_seconds", default=0)
    reason: str = msgspec.field(name="hub.reason", default="")


async def subscribe(context: ApiContext, call: Call[SubscribeAsked, None]) -> SubscribeAnswer:
    return subscribed(context.subscriptions, call.body, context.clock.now())


async def subscriptions(context: ApiContext, call: Call[None, None]) -> SubscriptionList:
    shown = [
        SubscriptionShown(
            id=one.id,
            topic=one.topic,
            hub=one.hub,
            state=one.state,
            asked_at=one.asked_at,
            until=one.until,
            reason=one.reason,
            notified=one.notified,
            refused=one.refused,
            last_at=one.last_at,
        )
        for one in context.subscriptions.all()
    ]
    return SubscriptionList(subscriptions=shown)


async def verify_intent(context: ApiContext, call: Call[None, Intent]) -> Response:
    """The challenge back, where the hub asks for what we asked of it; else 404, which means no."""
    one, intent, known = _known(context, call.path["id"]), call.query, context.subscriptions
    if intent.topic != one.topic:
        raise Problem(Trouble.UNKNOWN_SUBSCRIPTION, "nobody here asked for that topic")
    if intent.mode == "denied":
        one.state, one.reason = SubscriptionState.DENIED, intent.reason[:_LONGEST_REASON]
        known.write()
        return Response(status_code=200)
    is_wanted = one.state in (SubscriptionState.ASKED, SubscriptionState.CONFIRMED)
    if intent.mode == "subscribe" and is_wanted and intent.challenge:
        lease = min(max(intent.lease_seconds, _SHORTEST_LEASE), _LONGEST_LEASE)
        one.state, one.until = SubscriptionState.CONFIRMED, context.clock.now() + lease
        known.write()
    elif intent.mode == "unsubscribe" and one.state is SubscriptionState.ENDING and intent.challenge:
        known.forget(one.id)
    else:
        raise Problem(Trouble.UNKNOWN_SUBSCRIPTION, f"nobody here asked to {intent.mode[:20]} it")
    return Response(intent.challenge, media_type=TEXT)


async def take_notification(context: ApiContext, call: Call[bytes, None]) -> Response:
    """2xx also for what is not believed, as the standard has it: who guesses at secrets learns nothing."""
    one, now = _known(context, call.path["id"]), context.clock.now()
    if one.state is not SubscriptionState.CONFIRMED or (one.until or 0.0) < now:
        return Response(status_code=410)
    if not one.is_signed(call.request.headers.get("x-hub-signature", ""), call.body):
        one.refused += 1
        context.subscriptions.write()
        return Response(status_code=202)
    one.notified, one.last_at = one.notified + 1, now
    context.subscriptions.write()
    await take_changes(context, await _news(context, one, call.body))
    return Response(status_code=202)


def _known(context: ApiContext, ident: str) -> Subscription:
    one = context.subscriptions.get(ident)
    if one is None:
        raise Problem(Trouble.UNKNOWN_SUBSCRIPTION, "nobody here subscribed to anything under this address")
    return one


async def _news(context: ApiContext, one: Subscription, body: bytes) -> dict[str, Discovered]:
    """The topic itself, and what it names of its own host that is new, or dated after our last visit."""
    is_feed, entries = _read(body)
    host = host_of(one.topic)
    kind = TaskKind.FEED if is_feed else TaskKind.PAGE
    found = {one.topic: _discovered(context, one.topic, host, kind)}
    for entry in entries[:_MOST_ENTRIES]:
        url = normalise(entry.loc, one.topic)
        if url is not None and host_of(url) == host and await _is_news(context, url, entry):
            found[url] = _discovered(context, url, host, TaskKind.PAGE)
    return found


def _read(body: bytes) -> tuple[bool, list[Entry]]:
    reader = SitemapReader(Limits(bytes=_LARGEST, entries=_MOST_ENTRIES))
    entries = reader.feed(body) + reader.close()
    # any text may look like a list of URLs; only a feed or a sitemap is taken for one
    return reader.format not in (Format.UNKNOWN, Format.TEXT), (
        [] if reader.format in (Format.UNKNOWN, Format.TEXT, Format.INDEX) else entries
    )


async def _is_news(context: ApiContext, url: str, entry: Entry) -> bool:
    """A feed repeats its latest entries: what we have seen since is none."""
    known = await context.frontier.explain(url)
    if not known.known or not known.fetches:
        return True
    return entry.lastmod is not None and entry.lastmod > max(fetch.at for fetch in known.fetches)


def _discovered(context: ApiContext, url: str, host: Host, kind: TaskKind) -> Discovered:
    return Discovered(url=url, key=context.keys.key_of(url), host=host, depth=1, via=Via.PUSH, kind=kind)


ROUTES = (
    Route(
        method="POST",
        path=PATH,
        role=Role.OPERATOR,
        group=_GROUP,
        summary="Subscribe to a topic at its hub, or end that",
        detail="Answers what is to be sent to the hub, which asks back at the callback: see docs/freshness.md.",
        call=subscribe,
        body=SubscribeAsked,
        answer=SubscribeAnswer,
        problems=(Trouble.UNKNOWN_SUBSCRIPTION, Trouble.BAD_URL),
    ),
    Route(
        method="GET",
        path=PATH,
        role=Role.READ,
        group=_GROUP,
        summary="Topics that are subscribed to, and what came of it",
        call=subscriptions,
        answer=SubscriptionList,
    ),
    Route(
        method="GET",
        path=f"{CALLBACK}{{id}}",
        role=None,
        group=_GROUP,
        summary="For hubs: was this subscription meant?",
        detail="Verification of intent: the challenge is answered where the crawl asked for just that.",
        call=verify_intent,
        query=Intent,
        answer_media=TEXT,
        problems=(Trouble.UNKNOWN_SUBSCRIPTION,),
    ),
    Route(
        method="POST",
        path=f"{CALLBACK}{{id}}",
        role=None,
        group=_GROUP,
        summary="For hubs: new content of a topic",
        detail="Signed (`X-Hub-Signature`) with the subscription's secret; else it is taken and has no effect.",
        call=take_notification,
        body=bytes,
        body_media=ANY,
        answer_media=TEXT,
        largest_body=_LARGEST,
        status=202,
        problems=(Trouble.UNKNOWN_SUBSCRIPTION,),
    ),
)
