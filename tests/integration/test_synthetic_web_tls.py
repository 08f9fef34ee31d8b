"""The synthetic web's hosts with https: crawled whole and politely, and not shaken by what is no TLS."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trustme
from bench._crawls import start, web_crawl, write_quick_settings

from skitter.testing.audit import compare, violations
from skitter.testing.plan import WebPlan
from skitter.testing.tls import SecureSocket, server_context
from skitter.testing.web import SyntheticWeb

PLAN = WebPlan(hosts=12, pages=8, tls=0.5, robots={}, flaky_failures=1)
DELAY = 0.05
SECURE = next(host for host in range(PLAN.hosts) if PLAN.is_secure(host))


class Pem:
    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        issued = authority.issue_cert("*.web.test", *(f"*.d{number:03d}.test" for number in range(10)))
        self.ca_file, self.server = folder / "ca.pem", folder / "server.pem"
        authority.cert_pem.write_to_path(str(self.ca_file))
        issued.private_key_and_cert_chain_pem.write_to_path(str(self.server))


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Pem:
    return Pem(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def web(pem: Pem, tmp_path: Path) -> Iterator[SyntheticWeb]:
    with SyntheticWeb(PLAN, log=tmp_path / "requests.jsonl", certificate=pem.server) as running:
        yield running


def secure_port(web: SyntheticWeb) -> int:
    return int(web.resolves[1].rpartition(":")[2])


def test_hosts_with_and_without_https_are_crawled_whole_and_politely(
    web: SyntheticWeb, pem: Pem, tmp_path: Path
) -> None:
    config, output = tmp_path / "quick.toml", tmp_path / "output"
    write_quick_settings(config, delay=DELAY)
    config.write_text(f'{config.read_text()}\n[fetch]\nca_file = "{pem.ca_file}"\n')
    command = web_crawl(web, tmp_path / "crawl", config, "--resolve", web.resolves[1])
    with output.open("wb") as stream:
        assert start(command, stream).wait(60) == 0, output.read_text()
    web.stop()
    requests = web.requests()
    assert not compare(requests, PLAN, attempts=5)
    assert not violations(requests, lambda host: DELAY)
    assert {PLAN.is_secure(PLAN.index(row.host) or 0) for row in requests} == {True, False}


class Reader:
    """A client that takes from the wire only what it is told to take."""

    def __init__(self, wire: socket.socket, pem: Pem) -> None:
        self._wire = wire
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.create_default_context(cafile=str(pem.ca_file))
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="a.web.test")

    def shake_hands(self, server: SecureSocket) -> None:
        for _ in range(2):
            with suppress(ssl.SSLWantReadError):
                self._tls.do_handshake()
            self._wire.send(self._outgoing.read())
            with pytest.raises(BlockingIOError):
                server.recvmsg(65_536, 64)
            with suppress(BlockingIOError):
                self._incoming.write(self._wire.recv(65_536))

    def take(self) -> bytes:
        with suppress(BlockingIOError):
            self._incoming.write(self._wire.recv(1_000))
        with suppress(ssl.SSLWantReadError):
            return self._tls.read(1_000_000)
        return b""


def test_an_answer_larger_than_the_wire_holds_arrives_whole_and_once(pem: Pem) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for end in (ours, theirs):
            end.setblocking(False)
        server, reader = SecureSocket(ours, server_context(pem.server)), Reader(theirs, pem)
        reader.shake_hands(server)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        answer, received, waits, sent = bytes(range(256)) * 400, b"", 0, 0
        for _ in range(len(answer) // 500):
            try:
                sent = server.send(memoryview(answer))
                break
            except BlockingIOError:
                waits += 1
                received += reader.take()
        for _ in range(len(answer) // 1_000):
            received += reader.take()
        assert waits > 10
        assert sent == len(answer)
        assert received == answer


def test_what_is_no_tls_ends_its_own_connection_and_no_other(web: SyntheticWeb, pem: Pem) -> None:
    with socket.create_connection(("127.0.0.1", secure_port(web)), timeout=10) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: h00000.web.test\r\n\r\n")
        while client.recv(1000):
            pass  # an alert, then the end
    context = ssl.create_default_context(cafile=str(pem.ca_file))
    name = PLAN.name(SECURE)
    plain = socket.create_connection(("127.0.0.1", secure_port(web)), timeout=10)
    with context.wrap_socket(plain, server_hostname=name) as other:
        other.sendall(f"GET /robots.txt HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
        assert other.recv(12) == b"HTTP/1.1 404"
