from collections.abc import Sequence

from skitter.model import Host, Link, UrlKey

_Resolved = tuple[str, UrlKey, Host]

def resolve(
    links: Sequence[Link],
    folder: str,
    host: str,
    prefix: bytes,
    others: bool,
    parameters: set[str],
    known: dict[str, _Resolved | None],
    anywhere: dict[str, _Resolved | None],
    /,
) -> tuple[list[_Resolved | None], list[int]]: ...
def followed(
    url: str, links: Sequence[Link], resolved: Sequence[_Resolved | None], /
) -> tuple[bytes, str]: ...
def told(links: Sequence[Link], resolved: Sequence[_Resolved | None], /) -> tuple[tuple[str, Link], ...]: ...
