"""Links picked out of a bundle's two strings, in Python: defines what the kernel `skitter.native.bundles` does,
and does it where none was built (`bundles.py` chooses). Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from skitter.model import UrlKey, Via
from skitter.urls.canonical import host_of

_KEY = 16
_Made = TypeVar("_Made")


def picked(
    keys: bytes,
    urls: str,
    numbers: Sequence[int],
    make: Callable[..., _Made],
    depth: int,
    via: Via,
    parent: UrlKey | None,
    hops: int,
    priority: int | None,
    requisite: int,
) -> list[_Made]:
    """What `make` says of links at these places, whose other fields are alike."""
    lines = urls.split("\n")
    return [
        make(
            url=(url := lines[number]),
            key=UrlKey(keys[_KEY * number : _KEY * number + _KEY]),
            host=host_of(url),
            depth=depth,
            via=via,
            parent=parent,
            hops=hops,
            priority=priority,
            requisite=requisite,
        )
        for number in numbers
    ]
