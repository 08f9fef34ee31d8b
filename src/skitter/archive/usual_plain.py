"""What `native/usual.c` does, in Python: it defines what both say, and works where no kernel was built. Pure."""

from __future__ import annotations

import re

# Never looks back: half the time of the same without the second `+`.
CLEAN_HEAD = re.compile(
    rb"HTTP/1\.[01] \d{3}[^\r\n\0]*+\r\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]++:[^\r\n\0]*+\r\n)*+\r\n"
)
# In none of these is the path its own key, but for its case.
_SPECIAL = ("%", " ", "?", "#", "//", "/.", ".aspx")
_BEFORE_PATH = 8


def usual_head(head: bytes, body_length: int, /) -> bool:
    """Whether a head is well-formed HTTP/1 and says once, and rightly, how long its body is: it can be stored as
    it is."""
    return CLEAN_HEAD.fullmatch(head) is not None and _is_framed(head.lower(), body_length)


def _is_framed(lower: bytes, length: int) -> bool:
    return (
        b"\r\ncontent-length: %d\r\n" % length in lower
        and lower.count(b"\r\ncontent-length") == 1
        and b"\r\ntransfer-encoding" not in lower
    )


def usual_path(url: str, /) -> str | None:
    """The path of a URL in lower case, when that is its key: nothing in it to decode, to sort or to fold."""
    slash = url.find("/", _BEFORE_PATH)
    path = url[slash:].lower()
    return path if slash >= 0 and url.isascii() and _is_usual(path) else None


def _is_usual(path: str) -> bool:
    is_folded = path[-1] == "/" and path != "/"
    return path.isprintable() and not is_folded and not any(map(path.__contains__, _SPECIAL))
