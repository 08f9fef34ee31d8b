from collections.abc import Callable, Sequence
from typing import TypeVar

from skitter.model import Host, Link, UrlKey

_Made = TypeVar("_Made")
_Resolved = tuple[str, UrlKey, Host]

def resolve(
    links: Sequence[Link], folder: str, host: str, prefix: bytes, known: dict[str, _Resolved | None], /
) -> tuple[list[_Resolved | None], list[int]]: ...
def followed(
    page: UrlKey,
    url: str,
    depth_of_links: int,
    links: Sequence[Link],
    resolved: Sequence[_Resolved | None],
    make: Callable[..., _Made],
    /,
) -> tuple[_Made, ...]: ...
def told(links: Sequence[Link], resolved: Sequence[_Resolved | None], /) -> tuple[tuple[str, Link], ...]: ...
