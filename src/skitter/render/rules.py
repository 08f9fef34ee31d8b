"""Which requests of a page are refused, and what of an answer reaches the page. Pure.

Looked up by `tab.py` for every request, before anybody is asked for the answer. A rendering wants text and links:
what only looks, sounds or guesses is left out. Prefetching above all: some frameworks ask for the data of every
link in sight, 52 requests instead of 11.
"""

from __future__ import annotations

from skitter.render.base import Asked, Headers

_LOOKS = frozenset(("Image", "Media", "Font", "TextTrack"))
_NEVER = frozenset(
    (
        "Prefetch",
        "Ping",
        "Manifest",
        "EventSource",
        "WebSocket",
        "SignedExchange",
        "CSPViolationReport",
        "FedCM",
    )
)
_GUESSES = ("purpose", "sec-purpose", "x-purpose", "x-moz")
_ROUTER_GUESSES = ("next-router-prefetch", "x-middleware-prefetch", "next-router-segment-prefetch")
# These speak of the message as it was sent, of connections that the browser does not have, or start requests.
_DROPPED = frozenset(
    """content-encoding content-length transfer-encoding connection keep-alive strict-transport-security alt-svc
    nel report-to reporting-endpoints link speculation-rules expect-ct public-key-pins refresh clear-site-data
    accept-ch critical-ch origin-agent-cluster""".split()
)
# Of the page itself, and read by the browser without a request.
_INSIDE = ("data:", "blob:", "about:")
_WEB = ("http://", "https://")


def is_inside(url: str) -> bool:
    return url.startswith(_INSIDE)


def refusal(asked: Asked, *, with_looks: bool) -> str:
    """Why it is never asked for; empty when it may be."""
    if not asked.url.startswith(_WEB):
        return "scheme"
    if asked.kind in _NEVER or (asked.kind in _LOOKS and not with_looks):
        return asked.kind.lower()
    if asked.method not in ("GET", "HEAD"):
        return f"method {asked.method[:10]}"
    if _is_guess({name.lower(): value for name, value in asked.headers.items()}):
        return "prefetch"
    return ""


def _is_guess(headers: dict[str, str]) -> bool:
    said = any("prefetch" in headers.get(name, "").lower() for name in _GUESSES)
    return said or any(headers.get(name) for name in _ROUTER_GUESSES)


def headers_for_page(headers: Headers) -> list[dict[str, str]]:
    """In the protocol's form. What a value may not hold is dropped with it."""
    return [
        {"name": name, "value": value}
        for name, value in headers
        if name.lower() not in _DROPPED and value.isprintable() and name.isascii() and name.isprintable()
    ]
