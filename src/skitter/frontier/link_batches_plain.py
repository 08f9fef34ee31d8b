"""Links selected from a batch, or left out of it, in Python. Defines what the kernel does, and is used where
none was built (`link_batches.py` chooses). Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from skitter.model import TaskKind, UrlKey, Via
from skitter.schedule.traps import TAG
from skitter.urls.canonical import host_of

_KEY = 16
_Made = TypeVar("_Made")


def select_links(
    keys: bytes,
    urls: str,
    numbers: Sequence[int],
    make: Callable[..., _Made],
    depth: int,
    via: Via,
    parent: UrlKey | None,
    hops: int,
    priority: int | None,
    kind: TaskKind,
    nesting: int,
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
            kind=kind,
            nesting=nesting,
        )
        for number in numbers
    ]


def split_batch(
    keys: bytes, urls: str, numbers: Sequence[int], section: str, page: str
) -> tuple[bytes, str, bytes]:
    """Keys and URLs of the links at these places, in the batch's order; of the others the last bytes of the
    keys, of those within the section that are none of the folders that the page lies in."""
    each, lines = [keys[at : at + _KEY] for at in range(0, len(keys), _KEY)], urls.split("\n")
    if len(lines) != len(each):
        raise ValueError("as many URLs as keys")
    kept = set(numbers)
    if not kept.issubset(range(len(each))):
        raise IndexError("no such link")
    marks = [
        key[-TAG:]
        for number, (key, url) in enumerate(zip(each, lines, strict=True))
        if page and number not in kept and url.startswith(section) and not page.startswith(url)
    ]
    left = sorted(kept)
    return b"".join([each[i] for i in left]), "\n".join([lines[i] for i in left]), b"".join(marks)
