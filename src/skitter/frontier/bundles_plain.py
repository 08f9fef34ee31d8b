"""Links picked out of a bundle, or left out of it, in Python: defines what the kernel `skitter.native.bundles`
does, and does it where none was built (`bundles.py` chooses). Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from skitter.model import UrlKey, Via
from skitter.schedule.traps import MARK
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


def parted(
    keys: bytes, urls: str, numbers: Sequence[int], section: str, page: str
) -> tuple[bytes, str, bytes]:
    """Keys and URLs of the links at these places, in the bundle's order; of the others the last bytes of keys, of
    those within the section that are none of the folders that the page lies in."""
    each, lines = [keys[at : at + _KEY] for at in range(0, len(keys), _KEY)], urls.split("\n")
    if len(lines) != len(each):
        raise ValueError("as many URLs as keys")
    kept = set(numbers)
    if not kept.issubset(range(len(each))):
        raise IndexError("no such link")
    marks = [
        key[-MARK:]
        for number, (key, url) in enumerate(zip(each, lines, strict=True))
        if page and number not in kept and url.startswith(section) and not page.startswith(url)
    ]
    left = sorted(kept)
    return b"".join([each[i] for i in left]), "\n".join([lines[i] for i in left]), b"".join(marks)
