"""The relay: carries what waits in the outboxes of partitions to those that it is for.

Beside the path of a URL, in the process of the partition that posts. A post leaves its outbox only when the other
partition has committed it. One that cannot be told stays, and is told again. Never looks into a post.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from skitter.errors import SkitterError
from skitter.frontier.cluster.base import Part
from skitter.frontier.posts import WaitingPost

# Links of some hundred pages; a batch is one commit there.
_MOST_POSTS = 128
_MOST_BYTES = 1_000_000

Tell = Callable[[int, int, Sequence[WaitingPost]], Awaitable[None]]
"""From a partition, to a partition. Returns when they are committed there; raises when that is not known."""


class Relay:
    """`told` counts posts that others have taken; `trouble` says what is wrong, and is empty when nothing is."""

    def __init__(self, number: int, part: Part, tell: Tell) -> None:
        self._number = number
        self._part = part
        self._tell = tell
        self._behind: dict[int, int] = {}
        self.told = 0
        self.trouble = ""

    async def run_once(self) -> int:
        """A batch for each partition that is to be told something; how many posts left the outbox."""
        moved = 0
        trouble = ""
        for target in await self._part.parts_with_posts():
            after = self._behind.get(target, 0)
            found = await self._part.waiting_posts(target, after, _MOST_POSTS)
            posts = _not_too_much(found)
            if not posts:
                continue
            try:
                await self._tell(self._number, target, posts)
            except SkitterError as error:
                trouble = str(error)
                continue
            await self._part.posts_taken(posts)
            self._behind[target] = posts[-1].number
            moved += len(posts)
        self.told += moved
        self.trouble = trouble
        return moved


def _not_too_much(posts: Sequence[WaitingPost]) -> list[WaitingPost]:
    """The first, and as many more as make no large message."""
    chosen: list[WaitingPost] = []
    size = 0
    for post in posts:
        size += len(post.body)
        if chosen and size > _MOST_BYTES:
            break
        chosen.append(post)
    return chosen
