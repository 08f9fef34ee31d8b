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


class Generations(Generic[K, V]):
    """A dict that forgets in halves: when the younger is full the older is dropped. What is read again is young
    again. An entry takes a third of what one of `Lru` does beside key and value."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        value = self._young.get(key)
        if value is None and (value := self._old.get(key)) is not None:
            self[key] = value
        return value

    def __setitem__(self, key: K, value: V) -> None:
        self._young[key] = value
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}

    def drop(self, key: K) -> None:
        self._young.pop(key, None)
        self._old.pop(key, None)

    def items(self) -> list[tuple[K, V]]:
        """The younger last: what it says counts."""
        return [*self._old.items(), *self._young.items()]

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()


class RecentKeys:
    """Keys that other hosts than their own were lately heard to link, with marks of those. Two generations: when
    the younger is full the older is dropped. Absence means nothing."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        # whom `CertainKeys.unheard` asks
        self.young: dict[bytes, bytes] = {}
        self.old: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        marks = self.young.get(key)
        return self.old.get(key) if marks is None else marks

    def put(self, key: bytes, marks: bytes) -> None:
        self.young[key] = marks
        if len(self.young) >= self._half:
            self.old, self.young = self.young, {}

    def clear(self) -> None:
        self.young.clear()
        self.old.clear()
