"""Where the partitions of a cluster are: those of this node, and the others by the nodes that have them.

Between a node and whoever asks something of a partition. What another node has is asked over HTTP, and asked
again where it has moved to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

import msgspec

from skitter.errors import SkitterError
from skitter.frontier.cluster.base import Part
from skitter.frontier.cluster.calls import PartCall, RemotePart
from skitter.frontier.posts import WaitingPost
from skitter.service.api.partitions import CALL
from skitter.worker.remote.http_link import Away, HttpLink, Refused

_TRIES = 12
_BETWEEN_TRIES = 0.5
_MISDIRECTED = 421


class PartAway(SkitterError):
    """Nobody answers for a partition now."""


class Peers:
    """Links to the other nodes, by their URLs."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._links: dict[str, HttpLink] = {}

    async def call(self, url: str, call: PartCall) -> bytes:
        if url not in self._links:
            self._links[url] = HttpLink(url, self._token, patience=30.0)
        return await self._links[url].post(CALL, msgspec.msgpack.encode(call))

    async def close(self) -> None:
        for link in self._links.values():
            await link.close()


class Places(Mapping[int, Part]):
    """All partitions, as a `Router` sees them. `here` are those of this node; `url_of` says where the others are,
    empty while nobody has one."""

    def __init__(
        self, parts: int, here: Mapping[int, Part], url_of: Callable[[int], str], peers: Peers
    ) -> None:
        self._here = here
        self._url_of = url_of
        self._peers = peers
        self._remote = {number: cast(Part, RemotePart(number, self._ask)) for number in range(parts)}

    def __getitem__(self, number: int) -> Part:
        return self._here.get(number) or self._remote[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._remote)

    def __len__(self) -> int:
        return len(self._remote)

    async def _ask(self, number: int, name: str, arguments: bytes) -> bytes:
        """Until somebody who has the partition answers, or for some seconds."""
        call, why = PartCall(number, name, arguments), "nobody has it"
        for _ in range(_TRIES):
            if url := self._url_of(number):
                try:
                    return await self._peers.call(url, call)
                except Refused as error:
                    if error.status != _MISDIRECTED:
                        raise PartAway(f"partition {number}: {error.detail}") from None
                    why = f"{url} does not have it any more"
                except Away as error:
                    why = f"{url}: {error}"
            await asyncio.sleep(_BETWEEN_TRIES)
        raise PartAway(f"partition {number} cannot be asked now ({why}): try again in some seconds")

    async def tell(self, source: int, target: int, posts: Sequence[WaitingPost]) -> None:
        """From a partition's outbox to another partition, wherever it is. Tried once."""
        if (part := self._here.get(target)) is not None:
            await part.take_posts(source, posts)
            return
        url = self._url_of(target)
        if not url:
            raise PartAway(f"nobody has partition {target} now")
        arguments = msgspec.msgpack.encode((source, posts))
        try:
            await self._peers.call(url, PartCall(target, "take_posts", arguments))
        except (Away, Refused) as error:
            raise PartAway(f"partition {target} at {url}: {error}") from None
