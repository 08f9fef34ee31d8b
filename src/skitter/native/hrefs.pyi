from collections.abc import Iterable

from skitter.model import Host, Link, UrlKey

def resolve(
    links: Iterable[Link], folder: str, host: str, prefix: bytes, /
) -> list[tuple[str, UrlKey, Host] | None]: ...
