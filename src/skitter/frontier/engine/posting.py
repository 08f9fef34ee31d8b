"""The post between partitions, as one of them sees it: its outbox, and what it is told.

A post leaves the outbox when the other partition has committed it, so it may be told twice: each partition keeps
the number of the last post that it took from each other one, in the transaction that took it. So what is posted
counts once, whoever dies in between. Posts of one partition to another are taken in their order.
"""

from __future__ import annotations

from collections.abc import Sequence

from skitter.frontier.engine.settling import Settling
from skitter.frontier.posts import WaitingPost, decode_post
from skitter.frontier.tables import queries
from skitter.frontier.tables.transaction import Transaction


def take_posts(tx: Transaction, settling: Settling, source: int, posts: Sequence[WaitingPost]) -> int:
    """How many of them are new."""
    taken = queries.last_taken(tx.cache, source)
    new = [post for post in posts if post.number > taken]
    for post in new:
        settling.take_post(tx, decode_post(post.body))
    if new:
        tx.note_taken(source, new[-1].number)
    return len(new)
