"""What a worker needs of a fetcher. `fetch/curl.py` is the one that crawls use.

The seam between the worker and the network: whoever fetches in another way (a browser, a test) implements
`Fetcher`. A fetcher makes one request and follows no redirect; the fault of a server is a value, not an
exception.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from skitter.fetch.response_head import Headers
from skitter.model import Exchange, Failed

Judge = Callable[[int, Headers, bytes], str]
"""Given status, headers and the first bytes of a body as they came: why the rest is not wanted; empty when it
is."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """How a host with an identity is reached. Paths are of PEM files. `names_by_proxy`: the proxy looks up names,
    so no address is known here."""

    certificate: str = ""
    key: str = ""
    key_password: str = ""
    proxy: str = ""
    proxy_user: str = ""
    proxy_password: str = ""
    names_by_proxy: bool = False

    def __repr__(self) -> str:
        return f"Route({self.proxy or 'direct'})"  # it holds passwords


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """What a request has beside what all requests have. `headers` are lines as they are sent, `told` the same
    lines as the archive has them. With a `form` it is a POST, and `is_once` one that libcurl must not repeat by
    itself."""

    headers: tuple[bytes, ...] = ()
    told: tuple[bytes, ...] = ()
    user_agent: str = ""
    form: bytes | None = None
    route: Route = Route()
    is_once: bool = False

    def __repr__(self) -> str:
        return f"Sending({self.told})"


class TooLate(Exception):
    """The right to make this request has ended before it could be made."""


def want_all(status: int, headers: Headers, start: bytes) -> str:
    """The `Judge` that wants every body."""
    return ""


def always() -> bool:
    return True


class Fetcher(Protocol):
    @property
    def in_flight(self) -> int:
        """Requests that have begun and not ended."""

    @property
    def idle(self) -> int:
        """How many of these wait or hardly move."""

    async def fetch(
        self,
        url: str,
        *,
        etag: str = "",
        last_modified: str = "",
        verify_tls: bool | None = None,
        unwanted: Judge = want_all,
        may_start: Callable[[], bool] = always,
        max_body: int = 0,
        sending: Sending | None = None,
    ) -> Exchange | Failed:
        """Make one request. `max_body` stands in for `fetch.max_body` if it is not 0.

        `unwanted` is asked before the first bytes of a body are kept, and again until it has
        seen 1,445 bytes; its first objection ends the transfer. `verify_tls` is the operator's decision for this
        host; None leaves it to the settings. `may_start` is asked at the beginning, after every wait, and a last
        time before the first byte is sent; `TooLate` is raised when it says no. `sending` is what the
        host's identity adds."""

    def release(self, exchange: Exchange) -> None:
        """The body of the exchange is needed no more. Must be called once for every exchange."""

    def prepare(self, url: str) -> None:
        """A request to this URL's host will come soon: its address may be looked up meanwhile."""

    async def close(self) -> None: ...
