"""What an operator asks of WebSub: that topics be subscribed to at their hubs, or no longer.

Makes what is to be sent to a hub; whoever gave the order sends it, because a server fetches nothing itself.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from skitter.clock import SystemClock
from skitter.service.http.problem import Problem, Trouble
from skitter.service.steering.order import Order, Steered
from skitter.service.subscriptions import Subscription, Subscriptions
from skitter.urls.canonical import normalise

Url = Annotated[str, Meta(min_length=1, max_length=2048)]
PATH = "/v1/subscriptions"


class SubscribeAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`topic` is the feed or page as its publisher names it, `hub` who tells of it. `callback` is where the hub
    reaches this server from outside, such as https://crawler.example.org. `end` ends it; then only the topic
    counts."""

    topic: Url
    hub: str = ""
    callback: str = ""
    end: bool = False


class ToSend(msgspec.Struct, frozen=True, kw_only=True):
    """A POST to the hub with this form (application/x-www-form-urlencoded). It holds the secret."""

    id: str
    topic: str
    hub: str
    callback: str
    form: str


class SubscribeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    send: tuple[ToSend, ...]


async def subscribe(crawl: Steered, asked: SubscribeAsked) -> SubscribeAnswer:
    return subscribed(Subscriptions(crawl.folder), asked, SystemClock().now())


def subscribed(known: Subscriptions, asked: SubscribeAsked, now: float) -> SubscribeAnswer:
    topic = _url(asked.topic, "topic")
    if asked.end:
        ended = known.end(topic)
        if not ended:
            raise Problem(Trouble.UNKNOWN_SUBSCRIPTION, f"nobody subscribed to {topic}")
        return SubscribeAnswer(send=tuple(_to_send(one) for one in ended))
    made = known.ask(topic, _url(asked.hub, "hub"), _url(asked.callback, "callback"), now)
    return SubscribeAnswer(send=(_to_send(made),))


def _to_send(one: Subscription) -> ToSend:
    return ToSend(id=one.id, topic=one.topic, hub=one.hub, callback=one.callback, form=one.form)


def _url(text: str, what: str) -> str:
    url = normalise(text)
    if url is None:
        raise Problem(Trouble.BAD_URL, f"{what}: give an http or https URL")
    return url


def subscribe_order(asked: SubscribeAsked) -> Order[SubscribeAnswer]:
    return Order(
        method="POST",
        path=PATH,
        body=asked,
        answer=SubscribeAnswer,
        act=lambda crawl: subscribe(crawl, asked),
    )
