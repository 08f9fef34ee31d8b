"""The seen filter says in memory that a URL is new, so that admitting a new URL needs no read from the store.

A Bloom filter in partitions by the first bits of the key (which are its host's). Each partition has layers: when
one is full, a larger one is added, and the old ones are still checked. It answers "definitely new" or "maybe
seen"; after "maybe" the store is asked, so a false positive costs a read and never a URL.

A partition is *trusted* when it holds every known key of its range; an untrusted one answers "maybe" to
everything. Trust is lost when the process dies before `save`, and comes back partition by partition as
`relearn` reads the store's keys in the background. A partition that would outgrow its share of memory is given
up.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from functools import partial
from mmap import mmap
from pathlib import Path

import msgspec

from skitter.frontier.base import FilterFigures
from skitter.frontier.keyset import KnownKeys, Part, add_new_keys, bloom_add, bloom_has
from skitter.frontier.keyset_plain import BUCKET, FEWEST_BUCKETS
from skitter.frontier.tables import stamped

PARTITIONS = 16
_FIRST_LAYER = 16_384
# Every layer is checked for a new key. Growing by four makes four layers for a million keys, growing by two
# seven.
_GROWTH = 4
# Five layers, more than fit in any sensible memory, stay below 1 % together: 13 bits a key.
_ERROR_RATE = 0.002
# A layer that cannot be followed by another is filled beyond its capacity: 8 % false positives at twice, 30 % at
# three times, each of them a read, where giving up would make every new key one.
_OVERFULL = 3
_BITS_A_KEY = -math.log(_ERROR_RATE) / math.log(2) ** 2
_HASHES = round(_BITS_A_KEY * math.log(2))
# Which bits stand for what: a file of another version is not used.
_VERSION = 2


def _capacity(number: int) -> int:
    return _FIRST_LAYER * int(_GROWTH**number)


def _bytes_of(number: int) -> int:
    return math.ceil(_capacity(number) * _BITS_A_KEY / 8)


class _Layer:
    """The bits of one Bloom filter; pages of memory are taken when they are first written. `tally` holds how
    many keys it has and may have, as an array that the kernel can update."""

    def __init__(self, number: int, saved: tuple[int, bytes] | None = None) -> None:
        self.capacity = _capacity(number)
        self.bytes = _bytes_of(number)
        self.bits = mmap(-1, self.bytes)
        self.tally = array("q", (0, self.capacity))
        self.last = False
        if saved is not None:
            self.tally[0], self.bits[:] = saved
        self.has = partial(bloom_has, self.bits, _HASHES)
        self.add = partial(bloom_add, self.bits, _HASHES)

    @property
    def count(self) -> int:
        return self.tally[0]


class _Saved(msgspec.Struct, array_like=True):
    """Per partition: trusted, and each layer's count and bits."""

    stamp: bytes
    partitions: list[tuple[bool, list[tuple[int, bytes]]]]
    version: int = 1


class SeenFilter:
    def __init__(self, limit_bytes: int, *, empty: bool) -> None:
        """`empty`: the store knows no URL yet, so holding nothing is holding everything."""
        self._limit = limit_bytes // PARTITIONS
        self._layers: list[list[_Layer]] = [[_Layer(0)] for _ in range(PARTITIONS)]
        self._trusted = [empty] * PARTITIONS
        self._believed = self._parts()
        self._cursor: bytes | None = None if empty else b""
        self._scratch: mmap | None = None
        self.asked = self.maybes = self.mistaken = 0

    def is_new(self, key: bytes) -> bool:
        """True only when the key was never added. Counts its answers for `figures`."""
        part = key[0] >> 4
        if not self._trusted[part]:
            return False
        self.asked += 1
        for layer in reversed(self._layers[part]):
            if layer.has(key):
                self.maybes += 1
                return False
        return True

    def add_new(self, keys: list[bytes], known_keys: KnownKeys) -> bytes:
        """Add those of the keys that are certainly new, here and to `known_keys`. For each key 1 when it was
        new and is added, 0 when it must be checked by itself. Many keys at once take half as long: memory is
        prefetched."""
        add_new = known_keys.add_new(self._believed, _HASHES, keys)
        self.asked += add_new.count(1)
        return add_new

    def add_if_new(self, key: bytes) -> bool:
        """Add the key if `is_new`; returns whether it was."""
        if is_new := self.is_new(key):
            self.add(key)
        return is_new

    def count_mistake(self, key: bytes) -> None:
        """Count a "maybe" for a key that the store does not have."""
        if self._trusted[key[0] >> 4]:
            self.mistaken += 1

    def add(self, key: bytes) -> None:
        part = key[0] >> 4
        layers = self._layers[part]
        if not layers:
            return
        top = layers[-1]
        if top.count >= top.capacity:
            if not self._grow(part):
                return
            top = layers[-1]
        top.add(key)
        top.tally[0] += 1

    def _grow(self, part: int) -> bool:
        """True when there is room for one more key, in a layer of its own or in an overfull one."""
        layers = self._layers[part]
        top = layers[-1]
        if not top.last:
            layer = _Layer(len(layers))
            if sum(each.bytes for each in layers) + layer.bytes <= self._limit:
                layers.append(layer)
                self._believed = self._parts()
                return True
            top.last = True
        if top.count < _OVERFULL * top.capacity:
            return True
        layers.clear()
        self._trusted[part] = False
        self._believed = self._parts()
        return False

    def _parts(self) -> list[Part]:
        """The trusted partitions, as the kernel takes them; an untrusted one is empty."""
        parts = zip(self._layers, self._trusted, strict=True)
        return [_part(layers) if trusted else () for layers, trusted in parts]

    # -- after a crash: learning the store's keys again

    @property
    def relearn_from(self) -> bytes | None:
        """The key to go on from; None when every partition is trusted or given up."""
        return self._cursor

    def relearn(self, keys: Iterable[bytes], upto: bytes | None) -> None:
        """`keys` are all that the store has from `relearn_from` to `upto` (None: to its end)."""
        self._add_all(list(keys))
        self._cursor = upto
        if upto is None:
            self._scratch = None
        done = PARTITIONS if upto is None else upto[0] >> 4
        for part in range(done):
            self._trusted[part] = bool(self._layers[part])
        self._believed = self._parts()

    def _add_all(self, keys: list[bytes]) -> None:
        """Nearly all by the kernel, with prefetched memory. It asks a table of certain keys first, which here is
        one that knows none of them. What it leaves out is added by itself: where a layer is full, and where all
        bits are set already."""
        if self._scratch is None:
            self._scratch = mmap(-1, FEWEST_BUCKETS * BUCKET)
        added = add_new_keys(self._scratch, [_part(layers) for layers in self._layers], _HASHES, keys)
        for key, is_added in zip(keys, added, strict=True):
            if not is_added:
                self.add(key)

    # -- files

    def save(self, path: Path, stamp: bytes) -> None:
        partitions = [
            (trusted, [(layer.count, layer.bits[:]) for layer in layers])
            for trusted, layers in zip(self._trusted, self._layers, strict=True)
        ]
        stamped.save(path, b"", msgspec.msgpack.encode(_Saved(stamp, partitions, _VERSION)))

    def restore(self, path: Path, stamp: bytes) -> bool:
        """Load the filter that was saved with exactly this stamp; False when there is none."""
        try:
            saved = msgspec.msgpack.decode(path.read_bytes(), type=_Saved)
        except (OSError, msgspec.MsgspecError):
            return False
        if (saved.stamp, saved.version, len(saved.partitions)) != (stamp, _VERSION, PARTITIONS):
            return False
        if not all(trusted or not layers for trusted, layers in saved.partitions):
            return False
        if not all(_fits(layers) for _, layers in saved.partitions):
            return False
        self._trusted = [trusted for trusted, _ in saved.partitions]
        self._layers = [
            [_Layer(number, layer) for number, layer in enumerate(layers)] for _, layers in saved.partitions
        ]
        self._believed = self._parts()
        self._cursor = None
        return True

    def figures(self) -> FilterFigures:
        layers = [layer for part in self._layers for layer in part]
        new = self.asked - self.maybes + self.mistaken
        return FilterFigures(
            bytes=sum(layer.bytes for layer in layers),
            layers=len(layers),
            trusted=sum(self._trusted) / PARTITIONS,
            asked=self.asked,
            false_positive_rate=self.mistaken / new if new else 0.0,
            fill=sum(layer.count for layer in layers) / max(1, sum(layer.capacity for layer in layers)),
        )


def _part(layers: list[_Layer]) -> Part:
    """Keys are added to the youngest layer."""
    return (layers[-1].tally, *[layer.bits for layer in reversed(layers)]) if layers else ()


def _fits(layers: list[tuple[int, bytes]]) -> bool:
    """False when a layer was sized or filled by another rule."""
    return all(
        len(bits) == _bytes_of(number) and 0 <= count <= _OVERFULL * _capacity(number)
        for number, (count, bits) in enumerate(layers)
    )
