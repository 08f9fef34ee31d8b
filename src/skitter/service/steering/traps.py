"""The operator's word against a verdict."""

from __future__ import annotations

import msgspec

from skitter.service.steering.order import Order, Steered


class Undone(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`released` is how many URLs went back to their queues; 0 when the verdict was not in force. `skeleton` is
    what it was about, absent when there is none of this number; `ended` says why it was over before."""

    released: int
    skeleton: str = ""
    ended: str = ""


async def undo_trap(crawl: Steered, number: int) -> Undone:
    known = {view.id: view for view in await crawl.frontier.traps(limit=1 << 30)}
    if number not in known:
        return Undone(released=0)
    view = known[number]
    released = await crawl.frontier.undo_trap(number)
    return Undone(released=released, skeleton=view.skeleton, ended=view.ended)


def undo_order(number: int) -> Order[Undone]:
    return Order(
        method="POST",
        path=f"/v1/traps/{number}/undo",
        answer=Undone,
        act=lambda crawl: undo_trap(crawl, number),
    )
