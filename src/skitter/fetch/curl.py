"""One request over libcurl: resolve, guard the address, dial exactly that address, read within limits.

Third step of the path. Returns what crossed the wire (`Exchange`) or why nothing usable did (`Failed`); it never
raises for what a server does, never follows a redirect, never decodes a body, and never dials an address that
the guard did not see: the resolved address is pinned for the transfer with CONNECT_TO, which keeps Host and
SNI and reuses warm connections.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import certifi
import pycurl

from skitter import __version__
from skitter.clock import Clock
from skitter.fetch.coding import ACCEPT_ENCODING
from skitter.fetch.guard import AddressGuard
from skitter.fetch.lull import Lull, Lulls
from skitter.fetch.resolver import Answer, Resolver
from skitter.model import Exchange, Failed, FailureKind
from skitter.settings import FetchSettings, IdentitySettings

_IDLE_CONNECTIONS = 1024
_READ_BUFFER = 256 * 1024
_SENDING_GRACE = 10_000  # microseconds
_ACCEPT = b"Accept: text/html,application/xhtml+xml,text/plain;q=0.9,application/xml;q=0.8,*/*;q=0.1"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SPLIT = re.compile(r"(https?)://(\[[^\]]+\]|[^/:]+)(?::(\d+))?(/.*)", re.DOTALL)
_FIELD_VALUE = re.compile(r"[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?")

_K = FailureKind
_CODES: dict[int, FailureKind] = {
    pycurl.E_COULDNT_CONNECT: _K.CONNECT_REFUSED,
    pycurl.E_INTERFACE_FAILED: _K.CONNECT_REFUSED,
    pycurl.E_GOT_NOTHING: _K.CONNECTION_LOST,
    pycurl.E_SEND_ERROR: _K.CONNECTION_LOST,
    pycurl.E_RECV_ERROR: _K.CONNECTION_LOST,
    pycurl.E_PARTIAL_FILE: _K.CONNECTION_LOST,
    pycurl.E_SSL_CONNECT_ERROR: _K.TLS,
    pycurl.E_PEER_FAILED_VERIFICATION: _K.TLS,
    pycurl.E_SSL_CERTPROBLEM: _K.TLS,
    pycurl.E_SSL_CIPHER: _K.TLS,
    pycurl.E_SSL_CACERT_BADFILE: _K.TLS,
    pycurl.E_SSL_ISSUER_ERROR: _K.TLS,
    pycurl.E_SSL_INVALIDCERTSTATUS: _K.TLS,
    pycurl.E_SSL_SHUTDOWN_FAILED: _K.TLS,
    pycurl.E_SSL_ENGINE_INITFAILED: _K.TLS,
    100: _K.HEADERS_TOO_LARGE,  # CURLE_TOO_LARGE, which pycurl does not name
}
# libcurl calls bad framing a failed read; only its words tell it from a connection that broke
_BAD_READS = (("chunk", _K.PROTOCOL), ("Too large response headers", _K.HEADERS_TOO_LARGE))
_TRY_NEXT_ADDRESS = (_K.CONNECT_REFUSED, _K.CONNECT_TIMEOUT)


class Transfer:
    """What one request has received so far; its callbacks enforce the limits while bytes arrive.

    `stopped` is why we ended a transfer ourselves: None, a failure kind, or `truncated`.
    """

    def __init__(self, settings: FetchSettings) -> None:
        self._settings = settings
        self.curl = pycurl.Curl()

    def begin(self, wanted: Callable[[int, str], bool]) -> None:
        self._wanted = wanted
        self.lines: list[bytes] = []
        self.head_bytes = 0
        self.head_done = False
        self.chunks: list[bytes] = []
        self.size = 0
        self.truncated = False
        self.stopped: FailureKind | None = None
        self._headers: tuple[tuple[str, str], ...] | None = None

    @property
    def received(self) -> int:
        return self.head_bytes + self.size

    def on_header(self, line: bytes) -> int | None:
        if self.head_done:
            if not line.startswith(b"HTTP/") or self.size:
                return None  # a trailer: not part of the head, and nothing we use
            self.lines.clear()  # an interim 1xx answer came first
            self._headers = None
            self.head_done = False
        self.lines.append(line)
        self.head_bytes += len(line)
        limits = self._settings
        if self.head_bytes > limits.max_header_bytes or len(self.lines) > limits.max_header_count + 2:
            self.stopped = FailureKind.HEADERS_TOO_LARGE
            return -1
        if line in (b"\r\n", b"\n"):
            self.head_done = True
            if self.lines[0][8:12] == b" 101":
                # we never ask for an upgrade; libcurl would wait for the answer behind it
                self.stopped = FailureKind.PROTOCOL
                return -1
        return None

    def on_body(self, chunk: bytes) -> int | None:
        if not self.size and not self._is_wanted():
            self.stopped = FailureKind.TYPE_UNWANTED
            return -1
        room = self._settings.max_body - self.size
        if len(chunk) > room:
            self.chunks.append(chunk[:room])
            self.size += room
            self.truncated = True
            return -1
        self.chunks.append(chunk)
        self.size += len(chunk)
        return None

    def _is_wanted(self) -> bool:
        content_type = next((v for k, v in self.headers() if k == "content-type"), "")
        return self._wanted(self._status(), content_type)

    def _status(self) -> int:
        # libcurl may not be asked from inside its own callbacks
        words = self.lines[0].split(None, 2) if self.lines else []
        return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Names in lower case; asked for twice a page, so kept once the head is whole."""
        if self._headers is None or not self.head_done:
            pairs = (line.decode("latin-1").partition(":") for line in self.lines[1:])
            self._headers = tuple(
                (name.strip().lower(), value.strip()) for name, colon, value in pairs if colon
            )
        return self._headers


class Watch:
    """Gives up a transfer that waits too long for its first byte or stalls after it.

    libcurl's own stall limit counts the wait for the first byte as well, and the longer patience that a slow
    page deserves could not be given.
    """

    def __init__(
        self, transfer: Transfer, future: asyncio.Future[pycurl.Curl], settings: FetchSettings
    ) -> None:
        self._transfer = transfer
        self._future = future
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.time()
        self._seen = 0
        self._wait(min(settings.stall_timeout, settings.first_byte_timeout))

    def end(self) -> None:
        self._timer.cancel()

    def _wait(self, seconds: float) -> None:
        self._timer = self._loop.call_later(seconds, self._look)

    def _look(self) -> None:
        received, limits = self._transfer.received, self._settings
        if not received:
            left = self._until_first_byte()
            if left <= 0:
                self._give_up(FailureKind.FIRST_BYTE_TIMEOUT)
            else:
                self._wait(min(left, limits.stall_timeout))
        elif self._seen and received - self._seen < limits.stall_rate * limits.stall_timeout:
            self._give_up(FailureKind.STALLED)
        else:
            self._seen = received
            self._wait(limits.stall_timeout)

    def _until_first_byte(self) -> float:
        """Counted from the request; while there is no connection yet, from the latest that there may be one."""
        limits = self._settings
        connected = self._transfer.curl.getinfo(pycurl.PRETRANSFER_TIME_T) / 1e6 or limits.connect_timeout
        return self._begun + connected + limits.first_byte_timeout - self._loop.time()

    def _give_up(self, kind: FailureKind) -> None:
        if not self._future.done():
            self._transfer.stopped = kind
            self._future.cancel()


class Fetcher:
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
        self._multi = pycurl.AsyncCurlMulti()
        self.lulls = Lulls(self._keep_connections)
        self._keep_connections(0)
        self._free: list[Transfer] = []
        self.in_flight = 0

    def _keep_connections(self, quiet: int) -> None:
        """libcurl counts connections in use as kept ones: those that drip must not push out the warm ones."""
        idle = max(_IDLE_CONNECTIONS, 2 * self._settings.concurrency)
        self._multi.setopt(pycurl.M_MAXCONNECTS, min(idle + quiet, self._settings.connections))

    async def close(self) -> None:
        await self._multi.aclose()
        for transfer in self._free:
            transfer.curl.close()

    async def fetch(
        self,
        url: str,
        *,
        etag: str = "",
        last_modified: str = "",
        wanted: Callable[[int, str], bool] = lambda status, content_type: True,
    ) -> Exchange | Failed:
        """`wanted(status, content_type)` is asked before the first byte of a body is kept."""
        match = _SPLIT.match(url)
        if match is None:
            return Failed(kind=FailureKind.BAD_REDIRECT, detail="not a URL that can be dialled")
        scheme, name, port, target = match.groups()
        with Lull(self.lulls, lambda: 0):
            answer = await self._resolver.resolve(name, int(port) if port else _DEFAULT_PORTS[scheme])
        if not isinstance(answer, Answer):
            return Failed(kind=answer.kind, detail=answer.detail)
        addresses, refusal = self._allowed(answer)
        if not addresses:
            return Failed(kind=FailureKind.ADDRESS_REFUSED, detail=refusal)
        headers = _conditions(etag, last_modified)
        request = self._request_block(name, port, target, headers)
        result: Exchange | Failed = Failed(kind=FailureKind.CONNECT_REFUSED)
        for address in addresses:
            result = await self._transfer(url, request, headers, address, answer.port, wanted)
            if not (isinstance(result, Failed) and result.kind in _TRY_NEXT_ADDRESS):
                break
        return result

    def _allowed(self, answer: Answer) -> tuple[list[str], str]:
        if answer.pinned:
            return list(answer.addresses), ""
        reasons = {address: self._guard.refusal(address) for address in answer.addresses}
        allowed = [address for address, reason in reasons.items() if reason is None]
        return allowed[:2], "; ".join(reason for reason in reasons.values() if reason)

    def _request_block(self, name: str, port: str | None, target: str, headers: list[bytes]) -> bytes:
        """The request as libcurl writes it for HTTP/1.1; a test compares it with what a server received."""
        host = f"{name}:{port}" if port else name
        lines = f"GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {self.user_agent}"
        return b"\r\n".join([lines.encode("latin-1", "replace"), *headers, b"\r\n"])

    async def _transfer(
        self,
        url: str,
        request: bytes,
        headers: list[bytes],
        address: str,
        port: int,
        wanted: Callable[[int, str], bool],
    ) -> Exchange | Failed:
        transfer = self._free.pop() if self._free else self._new_transfer()
        curl = transfer.curl
        transfer.begin(wanted)
        curl.setopt(pycurl.URL, url)
        dialled = f"[{address}]" if ":" in address else address
        curl.setopt(pycurl.CONNECT_TO, [f"::{dialled}:{port}"])
        curl.setopt(pycurl.HTTPHEADER, headers)
        self.in_flight += 1
        try:
            # When we are cancelled here the handle is still libcurl's: it is dropped, not reused.
            with Lull(self.lulls, lambda: transfer.received):
                error = await self._perform(transfer)
        finally:
            self.in_flight -= 1
        ended_at = self._clock.now()
        result = self._conclude(transfer, error, url, request, address, ended_at)
        self._free.append(transfer)
        return result

    async def _perform(self, transfer: Transfer) -> pycurl.error | None:
        future = self._multi.add_handle(transfer.curl)
        watch = Watch(transfer, future, self._settings)
        try:
            await future
        except pycurl.error as error:
            return error
        except asyncio.CancelledError:
            if transfer.stopped is not None:
                return pycurl.error(pycurl.E_OPERATION_TIMEDOUT, f"gave up: {transfer.stopped}")
            raise
        finally:
            watch.end()
        return None

    def _conclude(
        self,
        transfer: Transfer,
        error: pycurl.error | None,
        url: str,
        request: bytes,
        address: str,
        ended_at: float,
    ) -> Exchange | Failed:
        curl = transfer.curl
        status: int = curl.getinfo(pycurl.RESPONSE_CODE)
        if transfer.stopped is FailureKind.TYPE_UNWANTED:
            content_type = next((v for k, v in transfer.headers() if k == "content-type"), "")
            return Failed(kind=transfer.stopped, detail=content_type[:200], status=status)
        if error is not None and not transfer.truncated:
            return Failed(
                kind=self._kind_of(transfer, error), detail=str(error.args[-1])[:300], status=status
            )
        if not transfer.head_done:
            # libcurl takes a head that breaks off for a whole one
            return Failed(kind=FailureKind.CONNECTION_LOST, detail="the headers break off", status=status)
        return Exchange(
            url=url,
            request=request,
            head=b"".join(transfer.lines),
            status=status,
            headers=transfer.headers(),
            body=b"".join(transfer.chunks),
            truncated=transfer.truncated,
            address=address,
            sent_at=ended_at - _since_sent(curl),
            ended_at=ended_at,
            first_byte_ms=curl.getinfo(pycurl.STARTTRANSFER_TIME_T) / 1000,
            reused_connection=curl.getinfo(pycurl.NUM_CONNECTS) == 0,
        )

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
        return _CODES.get(code, FailureKind.PROTOCOL)

    def _new_transfer(self) -> Transfer:
        limits = self._settings
        transfer = Transfer(limits)
        curl = transfer.curl
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.PROXY, "")
        curl.setopt(pycurl.PATH_AS_IS, 1)
        curl.setopt(pycurl.HTTP_CONTENT_DECODING, 0)
        curl.setopt(pycurl.USERAGENT, self.user_agent)
        curl.setopt(pycurl.BUFFERSIZE, _READ_BUFFER)
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, int(limits.connect_timeout * 1000))
        curl.setopt(pycurl.TIMEOUT_MS, int(limits.total_timeout * 1000))
        curl.setopt(pycurl.CAINFO, certifi.where())
        curl.setopt(pycurl.SSL_VERIFYPEER, int(limits.verify_tls))
        curl.setopt(pycurl.SSL_VERIFYHOST, 2 if limits.verify_tls else 0)
        curl.setopt(pycurl.HEADERFUNCTION, transfer.on_header)
        curl.setopt(pycurl.WRITEFUNCTION, transfer.on_body)
        return transfer


def _since_sent(curl: pycurl.Curl) -> float:
    """Seconds from the request's last byte to the end; rather too few than too many, because the host's next
    request is spaced from there.

    Counted back from the end, which we see late if at all. libcurl looks at its clock just before it sends and
    may lose the processor in between (on a loaded machine over 1 ms in 1 of 10,000 requests), hence the grace;
    but the first byte of the answer proves that the request had arrived.
    """
    sent = curl.getinfo(pycurl.POSTTRANSFER_TIME_T)
    proven = curl.getinfo(pycurl.STARTTRANSFER_TIME_T)
    latest = min(sent + _SENDING_GRACE, proven) if sent and proven else proven or sent
    return max(0.0, (curl.getinfo(pycurl.TOTAL_TIME_T) - latest) / 1e6) if latest else 0.0


def user_agent(identity: IdentitySettings) -> str:
    contact = f" (+{identity.contact})" if identity.contact else ""
    return f"{identity.product}/{__version__}{contact}"


def _conditions(etag: str, last_modified: str) -> list[bytes]:
    headers = [_ACCEPT, f"Accept-Encoding: {ACCEPT_ENCODING}".encode()]
    for name, value in ((b"If-None-Match: ", etag), (b"If-Modified-Since: ", last_modified)):
        # A server's own words go back to it only where they can be a field's value (RFC 9110 5.5); bytes,
        # because they may be beyond ASCII and pycurl takes no such text.
        if _FIELD_VALUE.fullmatch(value):
            headers.append(name + value.encode("latin-1"))
    return headers
