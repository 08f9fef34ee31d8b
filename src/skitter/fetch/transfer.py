"""One transfer under libcurl: what it has received so far, the limits while bytes arrive, and its times.

Under `fetch/curl.py`, which starts it and draws the conclusion. A transfer never grows beyond the limits of
`FetchSettings` and never outlasts them, whatever the server sends or keeps back.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable

import certifi
import pycurl

from skitter.clock import Clock
from skitter.fetch.bodies import SHORT, Bodies
from skitter.fetch.head import Headers, is_switching, read_head
from skitter.fetch.lanes import Lane
from skitter.fetch.tls import Tls, agreed_in
from skitter.model import FailureKind
from skitter.settings import FetchSettings

_READ_BUFFER = 256 * 1024
# libcurl writes `%0a` as `%0A`, unless it is told what to ask for.
_LOWER_ESCAPE = re.compile("%(?:[a-f]|.[a-f])")
_PAUSE: int = pycurl.WRITEFUNC_PAUSE

Judge = Callable[[int, Headers, bytes], str]
"""Status, headers and the first bytes of a body, as they came: why the rest is not wanted, or nothing."""
_LEAST_FINAL = 200
_JUDGED_BY = 1445  # bytes, MIME Sniffing 5.2


class Transfer:
    """What one request has received so far; its callbacks enforce the limits while bytes arrive.

    `stopped` is why we ended a transfer ourselves: None, a failure kind, or `truncated`.
    """

    def __init__(self, settings: FetchSettings, user_agent: str, bodies: Bodies, clock: Clock) -> None:
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
        self._short = min(SHORT, settings.max_body)
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
        # Not a function of ours: 0.2 to 0.4 us a line instead of 0.4 to 0.9. libcurl takes 300 KB at most.
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
        if (address, port) != self._dialled:
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

    def secure(self, *, verify: bool, listen: bool) -> None:
        """For https. Each option costs 0.3 us to set, so only what changes is set."""
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
            # or OpenSSL would go on to describe every record of the connection to libcurl: 5 us a request
            self.curl.unsetopt(pycurl.DEBUGFUNCTION)

    def begin(self, unwanted: Judge, may_start: Callable[[], bool], lane: Lane) -> None:
        self._unwanted = unwanted
        self._may_start = may_start
        self._lane = lane
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
        """Until the next request begins nothing is kept: 256 handles with a body each would be gigabytes."""
        self._raw.clear()
        self.headers = ()
        self.chunks = []

    def resume(self) -> None:
        """libcurl delivers what it held back before this returns, and complains when that ends the transfer;
        the transfer's own future has the error then."""
        with contextlib.suppress(pycurl.error):
            self.curl.pause(pycurl.PAUSE_CONT)

    @property
    def received(self) -> int:
        return len(self._raw) + self.size

    @property
    def is_paused(self) -> bool:
        """By us: that nothing comes is not the host's doing."""
        return self._bodies.is_waiting(self)

    def _on_socket(self, descriptor: int, purpose: int) -> int:
        self.has_dialled = True
        return self._lane.opened(descriptor)

    def _on_ready(self, *addresses: object) -> int:
        """The connection is there, new or kept, and nothing has been sent on it: 0.3 us a request."""
        self.is_too_late = not self._may_start()
        self._lane.sending[self.curl] = self
        return int(pycurl.PREREQFUNC_ABORT if self.is_too_late else pycurl.PREREQFUNC_OK)

    def has_sent(self) -> bool:
        """libcurl sets the time once the last byte is the kernel's, but to one that it read before it sent, and a
        process may lose its processor in between; so we date it ourselves."""
        if not self.curl.getinfo(pycurl.POSTTRANSFER_TIME_T):
            return False
        self.sent_by = self._clock.now()
        return True

    def read_head(self) -> bool:
        """Whether it is there and within limits. What comes behind a body's first byte are trailers."""
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
        """libcurl would wait for the answer behind it."""
        return is_switching(self._raw)

    def on_body(self, chunk: bytes) -> int | None:
        if self.size < _JUDGED_BY and not self._is_wanted(chunk):
            return -1
        size = self.size + len(chunk)
        if size > self._short:
            return self._on_long_body(chunk)
        self.chunks.append(chunk)
        self.size = size
        return None

    def _on_long_body(self, chunk: bytes) -> int | None:
        if self.truncated:
            return -1  # said before, while libcurl was told to go on, which it did
        room = self._settings.max_body - self.size
        if len(chunk) > room:
            if not self._bodies.has_room(self, room):
                return _PAUSE
            self.chunks.append(chunk[:room])
            self.size += room
            self.truncated = True
            return -1
        if not self._bodies.has_room(self, len(chunk)):
            return _PAUSE
        self.chunks.append(chunk)
        self.size += len(chunk)
        return None

    def _on_debug(self, kind: int, text: bytes) -> None:
        if kind == pycurl.INFOTYPE_TEXT and self.tls is None:
            self.tls = agreed_in(text)

    def _is_wanted(self, chunk: bytes) -> bool:
        if not self.size and not self.read_head():
            return False
        start = b"".join((*self.chunks, chunk)) if self.chunks else chunk
        # libcurl may not be asked from inside its own callbacks
        self.refusal = self._unwanted(self._status, self.headers, start)
        if self.refusal:
            self.stopped = FailureKind.TYPE_UNWANTED
        return not self.refusal


def sent_at(sent_by: float | None, ended_at: float, first_us: int, total_us: int) -> float:
    """When the host can have seen the whole request, at the latest: its next request is spaced from there.

    That is when we saw that all was sent, or when the first byte of the answer came, which proves that it was and
    is counted back from the end, which we see late if at all.
    """
    proven = ended_at - max(0, total_us - first_us) / 1e6 if first_us else ended_at
    return proven if sent_by is None else min(sent_by, proven)


def connecting(curl: pycurl.Curl, secure: bool) -> tuple[float, float]:
    """Milliseconds until a new connection stood, and of TLS after that."""
    connected = curl.getinfo(pycurl.CONNECT_TIME_T)
    if not secure:
        return connected / 1000, 0.0
    return connected / 1000, max(0, curl.getinfo(pycurl.APPCONNECT_TIME_T) - connected) / 1000
