"""`skitter subscribe`: asks hubs to tell of what changes (WebSub), renews that, and lists what there is.

The crawl's own server answers hubs (`service/api/websub.py`); the request to a hub is made here, through the same
guard and limits as a page, because an operator asked for it. One hub after the other, a second apart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import msgspec

from skitter.clock import SystemClock
from skitter.console.display.table import table
from skitter.console.display.wording import plain, span
from skitter.console.steer.carry_out import carry_out
from skitter.errors import SkitterError, UsageError
from skitter.fetch.base import Sending
from skitter.fetch_stack import open_fetch_stack
from skitter.folder import CrawlFolder
from skitter.model import Failed
from skitter.service.steering.subscriptions import SubscribeAsked, ToSend, subscribe_order
from skitter.service.subscriptions import CALLBACK, Subscription, Subscriptions, SubscriptionState
from skitter.settings import Settings

_BETWEEN = 1.0
# A promise that ends within so many days is asked for again.
_RENEWED = 3 * 86_400


async def subscribe(
    folder: CrawlFolder,
    settings: Settings,
    asked: SubscribeAsked | None,
    *,
    renew: bool,
    as_json: bool,
) -> str:
    known = Subscriptions(folder.path)
    if asked is not None:
        orders = [asked]
    elif renew:
        orders = list(_to_renew(known.all(), SystemClock().now()))
    else:
        return _listed(known.all(), as_json=as_json)
    sent: list[ToSend] = []
    for order in orders:
        done = await carry_out(folder, settings, subscribe_order(order))
        sent += done.answer.send
    answers = await _send(settings, sent)
    if as_json:
        told = [{"topic": one.topic, "hub": one.hub, "answer": said} for one, said in answers]
        return msgspec.json.format(msgspec.json.encode(told), indent=2).decode()
    return (
        "\n".join(f"{plain(one.hub)}: {said} for {plain(one.topic)}" for one, said in answers)
        or "none is due"
    )


def _to_renew(known: Sequence[Subscription], now: float) -> Iterator[SubscribeAsked]:
    for one in known:
        ends_soon = one.until is None or one.until < now + _RENEWED
        if one.state in (SubscriptionState.ASKED, SubscriptionState.CONFIRMED) and ends_soon:
            callback = one.callback.partition(CALLBACK)[0]
            yield SubscribeAsked(topic=one.topic, hub=one.hub, callback=callback)


async def _send(settings: Settings, forms: Sequence[ToSend]) -> list[tuple[ToSend, str]]:
    answers: list[tuple[ToSend, str]] = []
    if not forms:
        return answers
    async with open_fetch_stack(settings, SystemClock()) as stack:
        for number, one in enumerate(forms):
            if number:
                await asyncio.sleep(_BETWEEN)
            exchange = await stack.fetcher.fetch(one.hub, sending=Sending(form=one.form.encode()))
            if isinstance(exchange, Failed):
                answers.append((one, f"failed ({exchange.kind}: {exchange.detail})"))
                continue
            stack.fetcher.release(exchange)
            taken = 200 <= exchange.status < 300
            answers.append((one, f"{'accepted' if taken else 'refused'} with {exchange.status}"))
    if not any(said.startswith("accepted") for _, said in answers):
        raise SkitterError("; ".join(f"{one.hub}: {said}" for one, said in answers))
    return answers


def _listed(known: Sequence[Subscription], *, as_json: bool) -> str:
    now = SystemClock().now()
    if as_json:
        shown = [{**msgspec.to_builtins(one), "secret": None} for one in known]
        return msgspec.json.format(msgspec.json.encode(shown), indent=2).decode()
    if not known:
        return "nobody subscribed to anything: skitter subscribe DIR TOPIC --hub URL --callback URL"
    rows = [(one.topic, one.state, _until(one, now), f"{one.notified:,} notifications") for one in known]
    return "\n".join(table(rows, right=(3,)))


def _until(one: Subscription, now: float) -> str:
    if one.state is not SubscriptionState.CONFIRMED or one.until is None:
        return one.reason
    return f"for {span(one.until - now)}" if one.until > now else "ended: skitter subscribe DIR --renew"


def asked_of(topic: str, hub: str, callback: str, *, end: bool) -> SubscribeAsked:
    if not end and not (hub and callback):
        raise UsageError(
            "give --hub (the feed names it: a link of rel=hub) and --callback (where the hub reaches this server)"
        )
    return SubscribeAsked(topic=topic, hub=hub, callback=callback, end=end)
