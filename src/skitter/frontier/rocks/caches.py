"""Bounded memories: what is forgotten here is still on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Generations(Generic[K, V]):
    """A dict that forgets in halves: when the younger is full the older is dropped. What is read again is young
    again."""

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

    def __contains__(self, key: K) -> bool:
        return key in self._young or key in self._old

    def items(self) -> list[tuple[K, V]]:
        return [*(self._old | self._young).items()]

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()


class Lasting(Generations[K, V]):
    """Forgets only when it is trimmed, between turns: what a turn has read and changed is found again in it. An
    `OrderedDict` in the order of use took three times as long to ask."""

    def __setitem__(self, key: K, value: V) -> None:
        self._young[key] = value

    def update(self, entries: Mapping[K, V]) -> None:
        self._young.update(entries)

    def __len__(self) -> int:
        """What is in both halves counts twice."""
        return len(self._young) + len(self._old)

    def trim(self) -> None:
        if len(self._young) >= self._half:
            # a turn may have brought more than there is room for
            self._old, self._young = dict([*self._young.items()][-self._half :]), {}


class Brimful(Generic[K, V]):
    """A dict that stays as full as it may be: what comes takes the place of what was longest not asked for,
    roughly. Of 15,000 hosts in room for 12,000 it was asked in vain 0.09 times a page, where one that forgets in
    halves was 0.23 times: that keeps half of what it has room for just after it forgot, and much of it twice.

    Whatever is asked for or put is young. When all are young all are old again, and go in the order in which they
    came unless they are asked for before."""

    def __init__(self, limit: int) -> None:
        self._limit = max(1, limit)
        self.clear()

    def get(self, key: K) -> V | None:
        value = self._young.get(key)
        if value is None and (value := self._old.pop(key, None)) is not None:
            self._keep(key, value)
        return value

    def __setitem__(self, key: K, value: V) -> None:
        if key not in self._young and self._old.pop(key, None) is None and len(self) >= self._limit:
            self._make_room()
        self._keep(key, value)

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def items(self) -> list[tuple[K, V]]:
        return [*self._old.items(), *self._young.items()]

    def clear(self) -> None:
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self._leaving: Iterator[K] = iter(())

    def _keep(self, key: K, value: V) -> None:
        self._young[key] = value
        if len(self._young) >= self._limit:
            self._old, self._young = self._young, {}
            # a list: what walks along the dict itself ends with the first that is taken out of it
            self._leaving = iter([*self._old])

    def _make_room(self) -> None:
        for key in self._leaving:
            if self._old.pop(key, None) is not None:
                return


class RecentKeys:
    """Keys that other hosts than their own were lately heard to link, with marks of those. Two generations: when
    the younger is full the older is dropped. Absence means nothing."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        # whom `CertainKeys.unheard` asks, and what it notes in the younger
        self.young: dict[bytes, bytes] = {}
        self.old: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        marks = self.young.get(key)
        return self.old.get(key) if marks is None else marks

    def put(self, key: bytes, marks: bytes) -> None:
        self.young[key] = marks
        self.age()

    def age(self) -> None:
        """After the younger was written to."""
        if len(self.young) >= self._half:
            self.old, self.young = self.young, {}

    def clear(self) -> None:
        self.young.clear()
        self.old.clear()
