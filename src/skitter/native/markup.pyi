from collections.abc import Callable
from typing import TypeVar

_Link = TypeVar("_Link")
_Triple = tuple[str | None, str | None, str | None]

def read(
    body: bytes,
    with_text: bool,
    with_anchors: bool,
    product: bytes,
    link: Callable[[str, str, str, str], _Link],
    clean: Callable[[str], str],
    /,
) -> (  # the parts of `skitter.parse.html_parts.Parts` but the last, with iframes for frames; declared charsets
    # (charset, content); whether all is ASCII; whether there is a charset at the beginning that is none of those
    tuple[
        str | None,
        str | None,
        str | None,
        str | None,
        list[_Triple],
        list[_Triple],
        list[_Link],
        list[_Triple],
        list[_Triple],
        str,
        bool,
        list[_Triple],
        bool,
        bool,
    ]
    | None
): ...
