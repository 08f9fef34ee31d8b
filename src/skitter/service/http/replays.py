"""Answers kept for a while, so that a call that is sent again is answered again and not carried out again.

A client that lost an answer repeats the request with the same `Idempotency-Key`; the first one's answer
comes back, also while the first is still under way. Kept in memory, bounded in number and bytes; after a
restart a repeated call is carried out, which for results is harmless and for a lease costs the first one's
tasks their lease time.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import blake2b

from starlette.responses import Response

from skitter.service.http.problem import Problem, Trouble

LONGEST_KEY = 200
KEY = "^[!-~]+$"
_MOST = 4_096
_MOST_BYTES = 32_000_000


@dataclass(slots=True)
class _Kept:
    asked: bytes
    answer: asyncio.Future[Response]
    size: int = 0


class Replays:
    def __init__(self, most: int = _MOST, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        self._bytes = 0

    async def once(
        self, whose: str, key: str, body: bytes, act: Callable[[], Awaitable[Response]]
    ) -> Response:
        """`whose` parts callers and routes from each other. Only what was done is kept: a call that failed may be
        sent again."""
        if len(key) > LONGEST_KEY or not re.fullmatch(KEY, key):
            raise Problem(
                Trouble.INVALID, f"an Idempotency-Key has 1 to {LONGEST_KEY} visible ASCII characters"
            )
        place = _digest(f"{whose}\0{key}".encode("utf-8", "surrogateescape"))
        asked = _digest(body)
        kept = self._kept.get(place)
        if kept is None:
            return await self._first(place, asked, act)
        if kept.asked != asked:
            raise Problem(
                Trouble.KEY_REUSED, "repeat the very same request with this key, or use a fresh key"
            )
        return await asyncio.shield(kept.answer)

    async def _first(self, place: bytes, asked: bytes, act: Callable[[], Awaitable[Response]]) -> Response:
        kept = self._kept[place] = _Kept(asked, asyncio.get_running_loop().create_future())
        try:
            answer = await act()
        except BaseException as error:
            self._kept.pop(place, None)
            if isinstance(error, Exception):
                kept.answer.set_exception(error)
                kept.answer.exception()  # whoever waits for it is told; nobody need
            else:
                kept.answer.cancel()
            raise
        kept.answer.set_result(answer)
        if self._kept.get(place) is kept:
            kept.size = len(answer.body)
            self._bytes += kept.size
            self._forget()
        return answer

    def _forget(self) -> None:
        while len(self._kept) > self._most or self._bytes > self._most_bytes:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= oldest.size


def _digest(raw: bytes) -> bytes:
    return blake2b(raw, digest_size=16).digest()
