"""One request over libcurl: resolve the name, guard the address, dial exactly that address, read within limits.

Third step of the path. Returns the request and the answer as they were sent (`Exchange`), or why there is no
usable answer (`Failed`). It never raises for what a server does, never follows a redirect, never decodes a
body, and never dials an address that the guard did not see: the resolved address is pinned for the transfer
with CONNECT_TO, which keeps Host and SNI and reuses open connections.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import msgspec
import pycurl

from skitter import __version__
from skitter.clock import Clock
from skitter.extras import need
from skitter.fetch.base import Judge, Route, Sending, TooLate, always, want_all
from skitter.fetch.body_budget import BodyBudget
from skitter.fetch.coding import ACCEPT_ENCODING
from skitter.fetch.curl_pools import CurlPool, CurlPools
from skitter.fetch.dial_order import DialOrder
from skitter.fetch.guard import BLOCKED_PORTS, AddressGuard
from skitter.fetch.idle_requests import IdleCheck, IdleRequests
from skitter.fetch.resolver import Answer, Resolver, Unresolved
from skitter.fetch.response_head import version_in
from skitter.fetch.stall_watch import StallWatches
from skitter.fetch.timer_wheel import TimerWheel
from skitter.fetch.tls import Handshakes, Tls, tls_failure
from skitter.fetch.transfer import Transfer, connect_times, sent_at
from skitter.model import Exchange, Failed, FailureKind
from skitter.settings import FetchSettings, IdentitySettings

_TIMER_STEP = 0.05  # seconds that a limit may be late
_ACCEPT = (
    b"Accept: text/html,application/xhtml+xml,"
    b"text/plain;q=0.9,application/xml;q=0.8,application/pdf;q=0.7,*/*;q=0.1"
)
_UNCONDITIONAL = [_ACCEPT, f"Accept-Encoding: {ACCEPT_ENCODING}".encode()]
_FORM_TYPE = b"Content-Type: application/x-www-form-urlencoded"
_AFTER_SCHEME = len("https://")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SPLIT = re.compile(r"(https?)://(\[[^\]]+\]|[^/:]+)(?::(\d+))?(/.*)", re.DOTALL)
_FIELD_VALUE = re.compile(r"[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?")

if TYPE_CHECKING:
    from skitter.fetch.signing import RequestSigner

_K = FailureKind
_CODES: dict[int, FailureKind] = {
    pycurl.E_COULDNT_CONNECT: _K.CONNECT_REFUSED,
    pycurl.E_INTERFACE_FAILED: _K.CONNECT_REFUSED,
    pycurl.E_GOT_NOTHING: _K.CONNECTION_LOST,
    pycurl.E_SEND_ERROR: _K.CONNECTION_LOST,
    pycurl.E_RECV_ERROR: _K.CONNECTION_LOST,
    pycurl.E_PARTIAL_FILE: _K.CONNECTION_LOST,
    100: _K.HEADERS_TOO_LARGE,  # CURLE_TOO_LARGE, which pycurl does not name
}
# libcurl calls bad framing a failed read; only its words tell it from a connection that broke
_BAD_READS = (("chunk", _K.PROTOCOL), ("Too large response headers", _K.HEADERS_TOO_LARGE))
_IN_CLEAR = Tls()
_TRY_NEXT_ADDRESS = (_K.CONNECT_REFUSED, _K.CONNECT_TIMEOUT)


class Origin(msgspec.Struct, frozen=True):
    """What all requests to one origin have in common. `tail` is their header block after the target."""

    text: str
    name: str
    port: int
    secure: bool
    tail: bytes
    pool: CurlPool


class Request(msgspec.Struct, frozen=True):
    """One request, whichever address it goes to. `block` is its header block as it is archived."""

    url: str
    origin: Origin
    block: bytes
    headers: list[bytes]
    unwanted: Judge
    verify: bool
    dns_ms: float
    may_start: Callable[[], bool]
    max_body: int
    sending: Sending | None


class CurlFetcher:
    """Implements `Fetcher` of `fetch/base.py`."""

    def __init__(
        self,
        settings: FetchSettings,
        identity: IdentitySettings,
        resolver: Resolver,
        guard: AddressGuard,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._resolver = resolver
        self._guard = guard
        self._clock = clock
        self.user_agent = user_agent(identity)
        self._from = [f"From: {identity.from_address}".encode()] if identity.from_address else []
        self._signer = _open_signer(identity, clock) if identity.signing_key else None
        self._says_more = bool(self._from or self._signer)
        self._pools = CurlPools(settings.connections)
        self._handshakes = Handshakes(settings.connections)
        self._dial_order = DialOrder(settings.connect_timeout, clock)
        self._timers = TimerWheel(_TIMER_STEP)
        self._idle = IdleRequests(self._timers)
        self._watches = StallWatches(settings, self._idle)
        self._bodies = BodyBudget(settings.body_memory)
        self._origins: dict[str, Origin] = {}
        self._free: list[Transfer] = []
        self._free_by_route: dict[Route, list[Transfer]] = {}
        self.in_flight = 0

    @property
    def idle(self) -> int:
        return self._idle.count

    async def close(self) -> None:
        self._timers.close()
        self._pools.close()
        for transfer in chain(self._free, *self._free_by_route.values()):
            transfer.curl.close()

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
        """See `Fetcher`. `may_start` is asked first, again when an address had to be looked up, and again
        when there is a connection and nothing was sent on it: each takes time, and the process may be stopped
        meanwhile."""
        if not may_start():
            raise TooLate
        origin = self._origin(url)
        if origin is None:
            return Failed(kind=FailureKind.BAD_REDIRECT, detail="not a URL that can be dialled")
        dns_ms = 0.0
        if sending is None or not sending.route.names_by_proxy:
            answer = self._resolver.known(origin.name, origin.port)
        else:
            answer = _asked_of_proxy(origin.port)
        if answer is None:
            answer, dns_ms = await self._resolve(origin)
            if not may_start():
                raise TooLate
        if isinstance(answer, Unresolved):
            return Failed(kind=answer.kind, detail=answer.detail)
        addresses = answer.addresses if answer.pinned else self._allowed(answer)
        if not addresses:
            return Failed(kind=FailureKind.ADDRESS_REFUSED, detail=self._refusals(answer))
        verify = self._settings.verify_tls if verify_tls is None else verify_tls
        headers = _conditions(etag, last_modified) if etag or last_modified else _UNCONDITIONAL
        if self._says_more:
            headers = [*headers, *self._more_lines(origin)]
        if sending is None:
            block = _request_block(url, origin, headers)
        else:
            block = _told_block(url, origin, headers, sending, sending.user_agent or self.user_agent)
            headers = [*headers, *sending.headers]
        request = Request(url, origin, block, headers, unwanted, verify, dns_ms, may_start, max_body, sending)
        if len(addresses) == 1:
            return await self._transfer(request, addresses[0], answer.port, self._settings.connect_timeout)
        return await self._try_each(request, addresses, answer.port)

    def _more_lines(self, origin: Origin) -> list[bytes]:
        """Who asks, beyond the User-Agent: only where the settings say so."""
        signed = self._signer.lines(origin.text.partition("://")[2]) if self._signer is not None else []
        return [*self._from, *signed]

    async def _resolve(self, origin: Origin) -> tuple[Answer | Unresolved, float]:
        """The answer, and the milliseconds that it took."""
        begun = self._clock.now()
        with IdleCheck(self._idle, lambda: 0):
            answer = await self._resolver.resolve(origin.name, origin.port)
        return answer, max(0.0, self._clock.now() - begun) * 1000

    def release(self, exchange: Exchange) -> None:
        self._bodies.release(len(exchange.body))

    def prepare(self, url: str) -> None:
        if (origin := self._origin(url)) is not None:
            self._resolver.prepare(origin.name, origin.port)

    def _origin(self, url: str) -> Origin | None:
        """None for a URL that cannot be fetched."""
        known = self._origins.get(url[: url.find("/", _AFTER_SCHEME)])
        if known is not None and url.startswith("/", len(known.text)):
            return known
        match = _SPLIT.match(url)
        return None if match is None else self._add_origin(match)

    def _add_origin(self, match: re.Match[str]) -> Origin:
        scheme, name, port, _ = match.groups()
        text = match.string[: match.start(4)]
        host = f"{name}:{port}" if port else name
        lines = f" HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {self.user_agent}".encode("latin-1", "replace")
        tail = b"\r\n".join([lines, *_UNCONDITIONAL, b"\r\n"])
        number = int(port or _DEFAULT_PORTS[scheme])
        origin = Origin(text, name, number, scheme == "https", tail, self._pools.assign(text))
        self._origins[text] = origin
        if len(self._origins) > self._settings.connections:
            del self._origins[next(iter(self._origins))]
        return origin

    async def _try_each(self, request: Request, addresses: Sequence[str], port: int) -> Exchange | Failed:
        result: Exchange | Failed = Failed(kind=FailureKind.CONNECT_REFUSED)
        for address, patience in self._dial_order.plan(addresses):
            result = await self._transfer(request, address, port, patience)
            if not (isinstance(result, Failed) and result.kind in _TRY_NEXT_ADDRESS):
                break
            self._dial_order.note_unreached(address)
        return result

    def _allowed(self, answer: Answer) -> Sequence[str]:
        return [address for address in answer.addresses if self._guard.refusal(address, answer.port) is None]

    def _refusals(self, answer: Answer) -> str:
        found = (self._guard.refusal(address, answer.port) for address in answer.addresses)
        return "; ".join(filter(None, found))

    async def _transfer(
        self, request: Request, address: str, port: int, patience: float
    ) -> Exchange | Failed:
        sending = request.sending
        free = self._free if sending is None else self._free_by_route.setdefault(sending.route, [])
        transfer = free.pop() if free else self._new_transfer(sending)
        origin, pool = request.origin, request.origin.pool
        transfer.begin(request.unwanted, request.may_start, pool, request.max_body)
        transfer.dial(request.url, request.headers, address, port, patience)
        if sending is not None:
            transfer.send_as(sending, sending.user_agent or self.user_agent)
        if origin.secure:
            transfer.secure(verify=request.verify, listen=not self._handshakes.knows(origin.text))
        ended = pool.begin(transfer.curl)
        self._watches.begin(transfer, ended)
        self.in_flight += 1
        try:
            # If we are cancelled here, the handle is still libcurl's: it is dropped, not reused.
            error = await ended
            if transfer.is_too_late:
                raise TooLate
        except BaseException:
            pool.remove(transfer.curl)
            self._bodies.drop(transfer)
            raise
        finally:
            self.in_flight -= 1
            self._watches.end(transfer)
        if error is not None:
            pool.remove(transfer.curl)
        result = self._conclude(transfer, error, request, address, self._clock.now())
        if isinstance(result, Failed):
            self._bodies.drop(transfer)
        else:
            self._bodies.end(transfer)
        transfer.forget()
        free.append(transfer)
        return result

    def _new_transfer(self, sending: Sending | None) -> Transfer:
        transfer = Transfer(self._settings, self.user_agent, self._bodies, self._clock)
        if sending is not None:
            transfer.take_route(sending.route)
        return transfer

    def _conclude(
        self,
        transfer: Transfer,
        error: pycurl.error | None,
        request: Request,
        address: str,
        ended_at: float,
    ) -> Exchange | Failed:
        whole = transfer.read_head()
        if error is None and whole:
            return self._exchange(transfer, request, address, ended_at)
        status: int = transfer.curl.getinfo(pycurl.RESPONSE_CODE)
        if transfer.stopped is FailureKind.TYPE_UNWANTED:
            return Failed(kind=transfer.stopped, detail=transfer.refusal[:200], status=status)
        if transfer.truncated:
            return self._exchange(transfer, request, address, ended_at)
        if error is not None:
            kind, words = self._kind_of(transfer, error), str(error.args[-1])
            if request.sending is not None and request.sending.route.proxy:
                kind = _K.PROXY_FAILED if _is_of_proxy(error) else kind
        elif transfer.stopped is not None:
            kind, words = transfer.stopped, f"gave up: {transfer.stopped}"
        else:
            # libcurl takes a head that breaks off for a whole one
            kind, words = FailureKind.CONNECTION_LOST, "the headers break off"
        return Failed(kind=kind, detail=words[:300], status=status)

    def _exchange(self, transfer: Transfer, request: Request, address: str, ended_at: float) -> Exchange:
        getinfo, secure = transfer.curl.getinfo, request.origin.secure
        connect_ms, tls_ms = connect_times(transfer.curl, secure) if transfer.has_dialled else (0.0, 0.0)
        tls = self._tls_of(transfer, request) if secure else _IN_CLEAR
        first, total = getinfo(pycurl.STARTTRANSFER_TIME_T), getinfo(pycurl.TOTAL_TIME_T)
        # By position: a call with more than 15 keywords is several times slower.
        return Exchange(
            request.url,
            request.block,
            transfer.head,
            getinfo(pycurl.RESPONSE_CODE),  # of four digits libcurl reads three, our own reading all
            transfer.headers,
            b"".join(transfer.chunks),
            transfer.truncated,
            address,
            version_in(transfer.head),
            tls.version,
            tls.cipher,
            sent_at(transfer.sent_by, ended_at, first, total),
            ended_at,
            request.dns_ms,
            connect_ms,
            tls_ms,
            first / 1000,
            total / 1000,
            not transfer.has_dialled,
        )

    def _tls_of(self, transfer: Transfer, request: Request) -> Tls:
        origin = request.origin
        connection = self._pools.number_of(origin.pool, transfer.curl.getinfo(pycurl.CONN_ID))
        return self._handshakes.lookup(origin.text, connection, transfer.tls)

    def _kind_of(self, transfer: Transfer, error: pycurl.error) -> FailureKind:
        if transfer.stopped is not None:
            return transfer.stopped
        code = error.args[0]
        if code == pycurl.E_OPERATION_TIMEDOUT:
            # PRETRANSFER_TIME does not tell: libcurl sets it to the moment of the time-out as well
            sent = transfer.curl.getinfo(pycurl.REQUEST_SIZE)
            return FailureKind.TOTAL_TIMEOUT if sent else FailureKind.CONNECT_TIMEOUT
        if code == pycurl.E_RECV_ERROR:
            said = str(error.args[-1])
            return next((kind for words, kind in _BAD_READS if words in said), _CODES[code])
        verify_result = transfer.curl.getinfo(pycurl.SSL_VERIFYRESULT)
        return tls_failure(code, verify_result) or _CODES.get(code, FailureKind.PROTOCOL)


def _open_signer(identity: IdentitySettings, clock: Clock) -> RequestSigner | None:
    need("cryptography")
    from skitter.fetch.signing import open_signer  # of a crawl that signs nothing, nothing of it is loaded

    return open_signer(identity.signing_key, identity.signature_agent, clock)


def user_agent(identity: IdentitySettings) -> str:
    contact = f" (+{identity.contact})" if identity.contact else ""
    return f"{identity.product}/{__version__}{contact}"


def _request_block(url: str, origin: Origin, headers: list[bytes]) -> bytes:
    """The request as libcurl writes it for HTTP/1.1; a test compares it with what a server received."""
    line = b"GET " + url[len(origin.text) :].encode("latin-1", "replace")
    if headers is _UNCONDITIONAL:
        return line + origin.tail
    return b"\r\n".join([line + origin.tail[:-4], *headers[len(_UNCONDITIONAL) :], b"\r\n"])


def _is_of_proxy(error: pycurl.error) -> bool:
    from skitter.fetch.proxies import is_of_proxy  # of a crawl without proxies nothing of it is loaded

    return is_of_proxy(error)


def _asked_of_proxy(port: int) -> Answer | Unresolved:
    """The proxy looks up the name: no address is known here, so none can be guarded. Ports can."""
    if port in BLOCKED_PORTS:
        return Unresolved(kind=_K.ADDRESS_REFUSED, detail=f"port {port} is never dialled")
    return Answer(addresses=("",), port=0, pinned=True)


def _told_block(url: str, origin: Origin, headers: list[bytes], sending: Sending, agent: str) -> bytes:
    """The same with what the host's identity adds, as the archive tells it; of a form with its body."""
    method, form = (b"GET ", b"") if sending.form is None else (b"POST ", sending.form)
    line = method + url[len(origin.text) :].encode("latin-1", "replace")
    host = origin.tail.split(b"\r\n", 2)[1]
    start = [line + b" HTTP/1.1", host, b"User-Agent: " + agent.encode("latin-1", "replace")]
    posted = [] if sending.form is None else [b"Content-Length: %d" % len(form), _FORM_TYPE]
    return b"\r\n".join([*start, *headers, *sending.told, *posted, b"\r\n"]) + form


def _conditions(etag: str, last_modified: str) -> list[bytes]:
    headers = [*_UNCONDITIONAL]
    for name, value in ((b"If-None-Match: ", etag), (b"If-Modified-Since: ", last_modified)):
        # A server's own words go back to it only where they can be a field's value (RFC 9110 5.5); bytes,
        # because they may be beyond ASCII and pycurl takes no such text.
        if _FIELD_VALUE.fullmatch(value):
            headers.append(name + value.encode("latin-1"))
    return headers
