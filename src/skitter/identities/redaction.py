"""An exchange without what would let others in: what the archive, plugins and tables see of one. Pure.

Right behind the fetch, so that nothing later holds a secret. Every line stays, with its name: the record says
that a header was sent or a cookie was set, and not its value.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from skitter.model import Exchange

REDACTED = "redacted"
# With the lines that continue it, as old servers fold them.
_SET_COOKIE = re.compile(
    rb"^(set-cookie2?[ \t]*:)([^\r\n]*(?:\r?\n[ \t][^\r\n]*)*)", re.IGNORECASE | re.MULTILINE
)
_VALUE = re.compile(r"^(\s*[^=;]*=)[^;]*")


def told_line(name: str) -> bytes:
    """A header with a secret value, as request records tell it."""
    return f"{name}: {REDACTED}".encode()


def without_cookies(exchange: Exchange) -> Exchange:
    """Set-Cookie fields keep the names and attributes of their cookies."""
    if not any(name.startswith("set-cookie") for name, _ in exchange.headers):
        return exchange
    head = _SET_COOKIE.sub(lambda found: found[1] + _redacted_bytes(found[2]), exchange.head)
    headers = tuple(
        (name, redacted_cookie(value) if name.startswith("set-cookie") else value)
        for name, value in exchange.headers
    )
    return replace(exchange, head=head, headers=headers)


def redacted_cookie(value: str) -> str:
    if _VALUE.match(value) is None:
        return f" {REDACTED}"
    return _VALUE.sub(rf"\1{REDACTED}", value, count=1)


def _redacted_bytes(value: bytes) -> bytes:
    flat = re.sub(r"\r?\n[ \t]+", " ", value.decode("latin-1"))
    return redacted_cookie(flat).encode("latin-1")
