from collections.abc import Callable, Sequence
from typing import TypeVar

from skitter.model import UrlKey, Via

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
    /,
) -> list[_Made]: ...
def parted(
    keys: bytes, urls: str, numbers: Sequence[int], section: str, page: str, /
) -> tuple[bytes, str, bytes]: ...
