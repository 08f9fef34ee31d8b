"""Bounded memories: what is forgotten here is still on disk."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Lru(OrderedDict[K, V], Generic[K, V]):
    """A dict that forgets what was put or read longest ago."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def recall(self, key: K) -> V | None:
        value = self.get(key)
        if value is not None:
            self.move_to_end(key)
        return value

    def trim(self) -> None:
        while len(self) > self._limit:
            self.popitem(last=False)


class RecentKeys:
    """Keys known to be known, so that most links a page repeats never reach the store. Two generations: when
    the younger is full the older is dropped. Absence means nothing."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._young: set[bytes] = set()
        self._old: set[bytes] = set()

    def __contains__(self, key: bytes) -> bool:
        return key in self._young or key in self._old

    def add(self, key: bytes) -> None:
        self._young.add(key)
        if len(self._young) >= self._half:
            self._old, self._young = self._young, set()

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()
