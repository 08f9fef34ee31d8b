"""One transfer with libcurl: what it has received so far, the limits while bytes arrive, and its times.

Under `fetch/curl.py`, which starts it and makes the result of it. A transfer never grows beyond the limits of
`FetchSettings` and never outlasts them, whatever the server sends or keeps back.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable

import certifi
import pycurl

from skitter.clock import Clock
from skitter.fetch.base import Judge, Route, Sending
from skitter.fetch.body_budget import SHORT, BodyBudget
from skitter.fetch.curl_pools import CurlPool
from skitter.fetch.response_head import Headers, is_switching, read_head
from skitter.fetch.tls import Tls, agreed_in
from skitter.model import FailureKind
from skitter.settings import FetchSettings

_READ_BUFFER = 256 * 1024
# libcurl writes `%0a` as `%0A`, unless it is told what to ask for.
_LOWER_ESCAPE = re.compile("%(?:[a-f]|.[a-f])")
_PAUSE: int = pycurl.WRITEFUNC_PAUSE
_LEAST_FINAL = 200
_JUDGED_BY = 1445  # bytes, MIME Sniffing 5.2


class Transfer:
    """What one request has received so far; its callbacks enforce the limits while bytes arrive. Used again and
    again: `begin`, then `dial`, and `forget` when its result was made.

    `stopped` is why we ended the transfer ourselves; None when we did not, or when the body was `truncated`.
    """

    def __init__(self, settings: FetchSettings, user_agent: str, bodies: BodyBudget, clock: Clock) -> None:
        self._settings = settings
        self._bodies = bodies
        self._clock = clock
        self._headers_sent: list[bytes] = []
        self._says_target = False
        self._dialled = ("", 0)
        self._patience = settings.connect_timeout
        self._verifies = settings.verify_tls
        self._listens = False
        self._raw = bytearray()
        self._most = settings.max_body
        self._short = min(SHORT, self._most)
        self.curl = pycurl.Curl()
        self._configure(self.curl, user_agent)

    def _configure(self, curl: pycurl.Curl, user_agent: str) -> None:
        limits = self._settings
        versions = pycurl.CURL_HTTP_VERSION_2TLS if limits.http2 else pycurl.CURL_HTTP_VERSION_1_1
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.HTTP_VERSION, versions)
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.PROXY, "")
        curl.setopt(pycurl.NOPROXY, "*")  # or libcurl looks for one in the environment, twice a request
        curl.setopt(pycurl.PATH_AS_IS, 1)
        curl.setopt(pycurl.HTTP_CONTENT_DECODING, 0)
        curl.setopt(pycurl.USERAGENT, user_agent)
        curl.setopt(pycurl.BUFFERSIZE, _READ_BUFFER)
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, int(limits.connect_timeout * 1000))
        curl.setopt(pycurl.TIMEOUT_MS, int(limits.total_timeout * 1000))
        curl.setopt(pycurl.CAINFO, limits.ca_file or certifi.where())
        curl.setopt(pycurl.SSL_VERIFYPEER, int(limits.verify_tls))
        curl.setopt(pycurl.SSL_VERIFYHOST, 2 if limits.verify_tls else 0)
        # Not a function of ours, since it is called for every line. libcurl takes 300 KB at most.
        curl.setopt(pycurl.HEADERFUNCTION, self._raw.extend)
        curl.setopt(pycurl.WRITEFUNCTION, self.on_body)
        curl.setopt(pycurl.PREREQFUNCTION, self._on_ready)
        curl.setopt(pycurl.SOCKOPTFUNCTION, self._on_socket)

    def dial(self, url: str, headers: list[bytes], address: str, port: int, patience: float) -> None:
        curl = self.curl
        curl.setopt(pycurl.URL, url)
        if self._says_target or ("%" in url and _LOWER_ESCAPE.search(url)):
            self._says_target = True  # cannot be unset again
            curl.setopt(pycurl.REQUEST_TARGET, url[url.index("/", len("https://")) :])
        if (address, port) != self._dialled and address:
            self._dialled = (address, port)
            curl.setopt(
                pycurl.CONNECT_TO, [f"::[{address}]:{port}" if ":" in address else f"::{address}:{port}"]
            )
        if headers != self._headers_sent:
            self._headers_sent = headers
            curl.setopt(pycurl.HTTPHEADER, headers)
        if patience != self._patience:
            self._patience = patience
            curl.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, int(patience * 1000)))

    def take_route(self, route: Route) -> None:
        """Once, before the first request: a handle belongs to one route."""
        curl = self.curl
        if route.proxy:
            from skitter.fetch.proxies import use_proxy  # of a crawl without proxies nothing of it is loaded

            use_proxy(curl, route, self._settings.ca_file or certifi.where())
        if route.certificate:
            curl.setopt(pycurl.SSLCERT, route.certificate)
            curl.setopt(pycurl.SSLKEY, route.key or route.certificate)
        if route.key_password:
            curl.setopt(pycurl.KEYPASSWD, route.key_password)

    def send_as(self, sending: Sending, user_agent: str) -> None:
        self.curl.setopt(pycurl.USERAGENT, user_agent)
        # A connection that another request left open may be dead: libcurl would send the form twice.
        self.curl.setopt(pycurl.FRESH_CONNECT, int(sending.is_once))
        if sending.form is None:
            self.curl.setopt(pycurl.HTTPGET, 1)
        else:
            self.curl.setopt(pycurl.POSTFIELDS, sending.form)

    def secure(self, *, verify: bool, listen: bool) -> None:
        """For https. Only options that change are set: each call costs time."""
        if verify != self._verifies:
            self._verifies = verify
            self.curl.setopt(pycurl.SSL_VERIFYPEER, int(verify))
            self.curl.setopt(pycurl.SSL_VERIFYHOST, 2 if verify else 0)
        if listen != self._listens:
            self._listen(listen)

    def _listen(self, listen: bool) -> None:
        self._listens = listen
        self.curl.setopt(pycurl.VERBOSE, int(listen))
        if listen:
            self.curl.setopt(pycurl.DEBUGFUNCTION, self._on_debug)
        else:
            # or OpenSSL would go on to describe every record of the connection to libcurl
            self.curl.unsetopt(pycurl.DEBUGFUNCTION)

    def begin(
        self, unwanted: Judge, may_start: Callable[[], bool], pool: CurlPool, max_body: int = 0
    ) -> None:
        """`max_body` stands in for the setting if it is not 0."""
        most = max_body or self._settings.max_body
        if most != self._most:
            self._most, self._short = most, min(SHORT, most)
        self._unwanted = unwanted
        self._may_start = may_start
        self._pool = pool
        self.has_dialled = False
        self.sent_by: float | None = None
        self.is_too_late = False
        self.refusal = ""
        self.head = b""
        self.headers: Headers = ()
        self.chunks: list[bytes] = []
        self.size = 0
        self.truncated = False
        self.stopped: FailureKind | None = None
        self.tls: Tls | None = None

    def forget(self) -> None:
        """Keep nothing until the next request: 256 handles with a body each would take gigabytes."""
        self._raw.clear()
        self.headers = ()
        self.chunks = []

    def resume(self) -> None:
        """libcurl delivers what it held back before this returns. When that ends the transfer it also raises
        here; the error is in the transfer's own future then."""
        with contextlib.suppress(pycurl.error):
            self.curl.pause(pycurl.PAUSE_CONT)

    @property
    def received(self) -> int:
        return len(self._raw) + self.size

    @property
    def is_paused(self) -> bool:
        """Whether we have paused it: then the host is not to blame that nothing comes."""
        return self._bodies.is_waiting(self)

    def _on_socket(self, descriptor: int, purpose: int) -> int:
        self.has_dialled = True
        return self._pool.note_connection(descriptor)

    def _on_ready(self, *addresses: object) -> int:
        """There is a connection, new or kept, and nothing has been sent on it."""
        self.is_too_late = not self._may_start()
        self._pool.sending[self.curl] = self
        return int(pycurl.PREREQFUNC_ABORT if self.is_too_late else pycurl.PREREQFUNC_OK)

    def note_if_sent(self) -> bool:
        """Whether the whole request has left; notes when. libcurl's own time is not used: it is read before
        the last byte is sent, and a process may lose its processor in between."""
        if not self.curl.getinfo(pycurl.POSTTRANSFER_TIME_T):
            return False
        self.sent_by = self._clock.now()
        return True

    def read_head(self) -> bool:
        """Read the head, once. False when it is not complete or beyond a limit. Header lines that come after
        the first byte of the body are trailers."""
        if not self.head:
            self.head, self._status, self.headers = read_head(self._raw)
            if self.is_head_too_large() or self.head.count(b"\n") > self._settings.max_header_count + 2:
                self.stopped = FailureKind.HEADERS_TOO_LARGE
            elif self._status < _LEAST_FINAL and is_switching(self.head):
                self.stopped = FailureKind.PROTOCOL
        return bool(self.head) and self.stopped is None

    def is_head_too_large(self) -> bool:
        return not self.size and len(self._raw) > self._settings.max_header_bytes

    def is_switching(self) -> bool:
        """101: libcurl would wait for another answer after this one."""
        return is_switching(self._raw)

    def on_body(self, chunk: bytes) -> int | None:
        if self.size < _JUDGED_BY and not self._accept(chunk):
            return -1
        size = self.size + len(chunk)
        if size > self._short:
            return self._on_long_body(chunk)
        self.chunks.append(chunk)
        self.size = size
        return None

    def _on_long_body(self, chunk: bytes) -> int | None:
        if self.truncated:
            return -1  # refused before, but libcurl had been resumed and delivers once more
        room = self._most - self.size
        if len(chunk) > room:
            if not self._bodies.reserve(self, room):
                return _PAUSE
            self.chunks.append(chunk[:room])
            self.size += room
            self.truncated = True
            return -1
        if not self._bodies.reserve(self, len(chunk)):
            return _PAUSE
        self.chunks.append(chunk)
        self.size += len(chunk)
        return None

    def _on_debug(self, kind: int, text: bytes) -> None:
        if kind == pycurl.INFOTYPE_TEXT and self.tls is None:
            self.tls = agreed_in(text)

    def _accept(self, chunk: bytes) -> bool:
        """Ask the judge about the beginning of the body; False ends the transfer."""
        if not self.size and not self.read_head():
            return False
        start = b"".join((*self.chunks, chunk)) if self.chunks else chunk
        # libcurl may not be asked from inside its own callbacks
        self.refusal = self._unwanted(self._status, self.headers, start)
        if self.refusal:
            self.stopped = FailureKind.TYPE_UNWANTED
        return not self.refusal


def sent_at(sent_by: float | None, ended_at: float, first_us: int, total_us: int) -> float:
    """The latest time at which the host can have seen the whole request. The delay to its next request counts
    from it.

    It is the time at which we saw that all was sent, or the time of the first byte of the answer, whichever is
    earlier. The latter is computed back from the end of the transfer.
    """
    proven = ended_at - max(0, total_us - first_us) / 1e6 if first_us else ended_at
    return proven if sent_by is None else min(sent_by, proven)


def connect_times(curl: pycurl.Curl, secure: bool) -> tuple[float, float]:
    """Milliseconds until a new connection was made, and milliseconds of TLS after that."""
    connected = curl.getinfo(pycurl.CONNECT_TIME_T)
    if not secure:
        return connected / 1000, 0.0
    return connected / 1000, max(0, curl.getinfo(pycurl.APPCONNECT_TIME_T) - connected) / 1000
