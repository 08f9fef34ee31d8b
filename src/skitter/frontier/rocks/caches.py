"""Bounded memories: what is forgotten here is still on disk."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Container
from struct import Struct
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

    def items(self) -> list[tuple[K, V]]:
        """The younger last: what it says counts."""
        return [*self._old.items(), *self._young.items()]

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()


class RecentKeys:
    """Keys known to be known, so that most links a page repeats never reach the store; with each the marks of the
    other hosts heard to link it. Two generations: when the younger is full the older is dropped. Absence means
    nothing."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._young: dict[bytes, bytes] = {}
        self._old: dict[bytes, bytes] = {}

    @property
    def young(self) -> Container[bytes]:
        """Some of them, for a look at many at once; not to be kept."""
        return self._young

    def get(self, key: bytes) -> bytes | None:
        marks = self._young.get(key)
        return self._old.get(key) if marks is None else marks

    def add(self, key: bytes) -> None:
        """Known, by what no other host's link told; what is remembered of it stays."""
        if key not in self._young:
            self.put(key, self._old.get(key, b""))

    def put(self, key: bytes, marks: bytes) -> None:
        self._young[key] = marks
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()


class CertainKeys:
    """Keys known to be known, by the million: 8 bytes each, where `RecentKeys` takes 130 for what it tells more.

    A table in which a key has two places, and the younger takes the elder's when both are taken. What lies there
    is both halves in one: two URLs of one host are never mistaken for each other, and of two hosts once in 2**64.
    The places are by both halves too: by the URL's alone the front pages of all hosts shared them, and of a
    million keys a tenth was kept. A look is 0.3 us, a read of the store 5 to 20. Absence means nothing."""

    def __init__(self, limit_bytes: int) -> None:
        self._pairs = max(512, limit_bytes // 16)
        self._table = array("Q", bytes(16 * self._pairs))

    def __contains__(self, key: bytes) -> bool:
        host, rest = _halves(key)
        both = host ^ rest or 1
        at, table = both % self._pairs * 2, self._table
        return table[at] == both or table[at + 1] == both  # 0 is an empty place

    def add(self, key: bytes) -> None:
        host, rest = _halves(key)
        both = host ^ rest or 1
        at, table = both % self._pairs * 2, self._table
        if table[at] != both:
            table[at + 1] = table[at]
            table[at] = both

    def clear(self) -> None:
        self._table = array("Q", bytes(8 * len(self._table)))


_halves: Callable[[bytes], tuple[int, int]] = Struct(">QQ").unpack
