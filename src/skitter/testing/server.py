"""The server of the synthetic web: one process, one thread, non-blocking sockets under epoll (Linux).

It answers what `render.py` says, after the host's think time, and keeps the request log that an audit can
rely on. It must never wait for one client while others could be served, never hold more than a bounded
buffer per client, and never lose a row of the log.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
from collections import OrderedDict
from email.utils import formatdate
from heapq import heappop, heappush

from skitter.testing.features import MOVED_ROBOTS, RobotsKind
from skitter.testing.http_request import BadRequest, Head, read_head
from skitter.testing.plan import WebPlan
from skitter.testing.render import Answer, Renderer, error_answer, plain_answer
from skitter.testing.request_log import Request, RequestLog
from skitter.testing.sites import mix
from skitter.testing.tls import SecureSocket

TICK = 0.1
SLOW = 0.5
INBOX_LIMIT = 16_384
CACHE_BYTES = 64_000_000
ACCEPTS_AT_ONCE = 256
GONE = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR
READING = select.EPOLLIN | select.EPOLLRDHUP
WRITING = select.EPOLLOUT | select.EPOLLRDHUP

# Linux delivers the receive time with the bytes (socket(7)); `socket` does not name the option.
SO_TIMESTAMPNS = 35


class Connection:
    """A client. `current` is its request under way; while there is one, the next is not looked at.

    A client that closes its sending half counts as gone: for a killed crawler the kernel does just that.
    """

    __slots__ = ("closing", "current", "inbox", "number", "outbox", "repeat", "sock", "stamp", "writing")

    def __init__(self, sock: socket.socket | SecureSocket, number: int) -> None:
        self.sock = sock
        self.number = number
        self.inbox = b""
        self.outbox = memoryview(b"")
        self.current: Request | None = None
        self.repeat: tuple[int, str] | None = None
        self.stamp = 0.0
        self.closing = False
        self.writing = False


class Server:
    """Runs from construction, when it already listens, until `stopping` is set; then the log is complete.

    Measured with two busy cores shared with others: 11,000 answers/s of pages already rendered, 4,600 of
    pages asked for once, as in a crawl; the same with 2,000 connections.
    """

    def __init__(
        self,
        plan: WebPlan,
        log: RequestLog,
        *,
        latency: tuple[float, float] = (0.0, 0.0),
        address: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        secure_port: int = 0,
    ) -> None:
        self.plan = plan
        self.stopping = False
        self._log = log
        self._latency = latency
        self._renderer = Renderer(plan)
        self._listener = _listen(address, port)
        self._epoll = select.epoll()
        self._epoll.register(self._listener, select.EPOLLIN)
        self._tls = tls
        self._secure_listener = _listen(address, secure_port) if tls else None
        if self._secure_listener:
            self._epoll.register(self._secure_listener, select.EPOLLIN)
        self._connections: dict[int, Connection] = {}
        self._in_flight: dict[str, list[Connection]] = {}
        self._last_end: dict[str, float] = {}
        self._failures: dict[tuple[int, str], int] = {}
        self._timers: list[tuple[float, int, Connection, Request, Answer]] = []
        self._cache: OrderedDict[tuple[int, str, bool], Answer] = OrderedDict()
        self._cached_bytes = 0
        self._requests = 0
        self._accepted = 0
        self._next_tick = 0.0
        self._reported: set[int] = set()
        self._date = (0, b"")
        self._parent: int | None = None

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def secure_port(self) -> int:
        """For the hosts with https; 0 without a certificate."""
        return self._secure_listener.getsockname()[1] if self._secure_listener else 0

    def stop_with(self, parent: int) -> None:
        """Stop when the other end of this pipe is closed: no server outlives the test that started it."""
        self._epoll.register(parent, select.EPOLLHUP)
        self._parent = parent

    def run(self) -> None:
        while not self.stopping:
            ready = dict(self._epoll.poll(self._patience()))
            listeners = filter(None, (self._listener, self._secure_listener))
            arrivals = [listener for listener in listeners if ready.pop(listener.fileno(), 0)]
            if self._parent in ready:
                self.stopping = True
            for fd, events in ready.items():
                if fd in self._connections:
                    self._serve(self._connections[fd], events)
            for listener in arrivals:
                # Last, so that no new client gets a descriptor for which an old event is still in `ready`.
                self._accept(listener)
            self._fire()
            self._tick()
        self._close()

    def _patience(self) -> float:
        if not self._timers:
            return TICK
        return min(TICK, max(0.0, self._timers[0][0] - time.monotonic()))

    def _fire(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            _, _, connection, request, answer = heappop(self._timers)
            if connection.current is request:
                self._send_answer(connection, request, answer)
                self._advance(connection)

    def _tick(self) -> None:
        now = time.time()
        if now < self._next_tick:
            return
        self._next_tick = now + TICK
        self._report_open(now - SLOW)
        self._log.flush()

    def _report_open(self, before: float) -> None:
        """Write a first row, without an end, for each request that has been under way since `before`."""
        for connection in self._connections.values():
            request = connection.current
            if request and request.start < before and request.id not in self._reported:
                self._reported.add(request.id)
                self._log.add(request)

    def _close(self) -> None:
        self._report_open(float("inf"))
        for connection in self._connections.values():
            connection.sock.close()
        self._listener.close()
        if self._secure_listener:
            self._secure_listener.close()
        self._epoll.close()
        self._log.close()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                sock, _ = listener.accept()
            except OSError:
                # Nothing more to accept, or the client has left the queue, or no descriptor is free.
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._accepted += 1
            secure = self._tls if listener is self._secure_listener else None
            client = SecureSocket(sock, secure) if secure else sock
            self._connections[sock.fileno()] = Connection(client, self._accepted)
            self._epoll.register(sock, READING)

    def _serve(self, connection: Connection, events: int) -> None:
        """What has arrived is read even when the client is gone: its request was made and is logged."""
        if events & select.EPOLLIN and not self._receive(connection):
            return
        if events & select.EPOLLOUT:
            self._flush(connection)
        self._advance(connection)
        if events & GONE:
            self._leave(connection, time.time())

    def _receive(self, connection: Connection) -> bool:
        try:
            received, ancillary, _, _ = connection.sock.recvmsg(INBOX_LIMIT, 64)
        except BlockingIOError:
            return True
        except OSError:
            received, ancillary = b"", []
        if not received:
            self._leave(connection, time.time())
            return False
        connection.stamp = _receive_time(ancillary)
        connection.inbox += received
        if connection.current and len(connection.inbox) > INBOX_LIMIT:
            self._leave(connection, time.time())
            return False
        return True

    def _advance(self, connection: Connection) -> None:
        """Take up the requests that have arrived whole, one after the other."""
        while connection.current is None and connection.inbox and not connection.closing:
            head, end, rest = connection.inbox.partition(b"\r\n\r\n")
            if not end and len(head) <= INBOX_LIMIT:
                return
            connection.inbox = rest
            try:
                self._begin(connection, read_head(head) if end else None)
            except BadRequest:
                self._begin(connection, None)
        if connection.closing and connection.current is None:
            self._leave(connection, time.time())

    def _begin(self, connection: Connection, head: Head | None) -> None:
        """None stands for what is no HTTP request: answered with 400, and the connection is closed."""
        self._requests += 1
        request = Request(
            id=self._requests,
            start=connection.stamp,
            host=head.host if head else "",
            path=head.target if head else "",
            connection=connection.number,
        )
        connection.current = request
        connection.closing = head is None or head.close
        self._enter(connection, request)
        host = self.plan.index(request.host)
        answer = plain_answer(400) if head is None else self._answer(connection, head, host)
        request.status = answer.status
        think = self._think(host)
        if think:
            heappush(self._timers, (time.monotonic() + think, request.id, connection, request, answer))
        else:
            self._send_answer(connection, request, answer)

    def _enter(self, connection: Connection, request: Request) -> None:
        """Note the request as in flight. Another of its host may only seem so: then its client has left."""
        others = self._in_flight.get(request.host)
        for other in tuple(others or ()):
            if _has_left(other.sock):
                self._leave(other, min(time.time(), request.start))
            else:
                request.overlapped = True
        if self._last_end.get(request.host, 0.0) > request.start:
            request.overlapped = True
        self._in_flight.setdefault(request.host, []).append(connection)

    def _think(self, host: int | None) -> float:
        low, high = self._latency
        if not high or host is None:
            return 0.0
        return low + (high - low) * mix(self.plan.seed, host, 2) / 2**32

    def _answer(self, connection: Connection, head: Head, host: int | None) -> Answer:
        if head.method != "GET":
            connection.closing = True
            return plain_answer(405)
        if host is None:
            return plain_answer(404)
        if head.target == "/robots.txt" or self._is_moved_robots(host, head.target):
            return self._renderer.robots(host, head.target)
        answer = self._page(connection, head, host)
        if answer.etag and answer.etag in head.if_none_match:
            return Answer(304, [("ETag", answer.etag.decode())], b"", bare=True)
        return answer

    def _is_moved_robots(self, host: int, path: str) -> bool:
        return path == MOVED_ROBOTS and self.plan.robots_kind(host) is RobotsKind.MOVED

    def _page(self, connection: Connection, head: Head, host: int) -> Answer:
        page = self.plan.site(host).page(head.target)
        if page is None:
            return plain_answer(404)
        if page.fails > 0 and self._failures.get((host, page.path), 0) < page.fails:
            # Counted when the answer is complete: an aborted one taught the client nothing.
            connection.repeat = (host, page.path)
            return error_answer(500)
        key = (host, page.path, head.gzip)
        cached = self._cache.get(key)
        if cached is None:
            cached = self._renderer.page(host, page, gzipped=head.gzip)
            self._keep(key, cached)
        return cached

    def _keep(self, key: tuple[int, str, bool], answer: Answer) -> None:
        self._cache[key] = answer
        self._cached_bytes += len(answer.body)
        while self._cached_bytes > CACHE_BYTES:
            self._cached_bytes -= len(self._cache.popitem(last=False)[1].body)

    def _send_answer(self, connection: Connection, request: Request, answer: Answer) -> None:
        request.status = answer.status
        connection.outbox = memoryview(answer.on_wire(self._today(), close=connection.closing))
        self._flush(connection)

    def _flush(self, connection: Connection) -> None:
        request = connection.current
        if request is None:
            return
        before = time.time()
        try:
            sent = connection.sock.send(connection.outbox)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._leave(connection, before)
            return
        request.size += sent
        connection.outbox = connection.outbox[sent:]
        self._want(connection, writing=bool(connection.outbox))
        if not connection.outbox:
            self._finish(connection, request, before)

    def _want(self, connection: Connection, *, writing: bool) -> None:
        if writing != connection.writing:
            connection.writing = writing
            self._epoll.modify(connection.sock, WRITING if writing else READING)

    def _finish(self, connection: Connection, request: Request, end: float) -> None:
        if connection.repeat is not None:
            self._failures[connection.repeat] = self._failures.get(connection.repeat, 0) + 1
        self._last_end[request.host] = end
        self._record(connection, request, end)

    def _leave(self, connection: Connection, at: float) -> None:
        """The client is gone, or is let go: a request under way ends here, aborted."""
        if connection.current is not None:
            connection.current.aborted = True
            self._record(connection, connection.current, at)
        self._connections.pop(connection.sock.fileno(), None)
        connection.inbox = b""
        connection.sock.close()

    def _record(self, connection: Connection, request: Request, end: float) -> None:
        request.end = end
        connection.current = connection.repeat = None
        others = self._in_flight[request.host]
        others.remove(connection)
        if not others:
            del self._in_flight[request.host]
        self._reported.discard(request.id)
        self._log.add(request)

    def _today(self) -> bytes:
        now = int(time.time())
        if now != self._date[0]:
            self._date = (now, formatdate(now, usegmt=True).encode())
        return self._date[1]


def _listen(address: str, port: int) -> socket.socket:
    listener = socket.create_server((address, port), backlog=4096)
    listener.setblocking(False)
    # Accepted sockets inherit it, so that even a first request that came with the handshake is stamped.
    listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    return listener


def _receive_time(ancillary: list[tuple[int, int, bytes]]) -> float:
    for level, kind, value in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS and len(value) == 16:
            seconds = int.from_bytes(value[:8], "little")
            return seconds + int.from_bytes(value[8:], "little") / 1e9
    return time.time()


def _has_left(sock: socket.socket | SecureSocket) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLRDHUP)
    return bool(poll.poll(0))
