"""Proxies and client certificates: the proxy is asked for the address that the guard saw, never for a name."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from skitter.fetch.base import Route, Sending
from skitter.model import Exchange, Failed, FailureKind
from skitter.settings import FetchSettings
from tests.certificates import Certificates
from tests.fetching import SHORT, run
from tests.raw_server import page, sends, serving

PAGE = sends(page(b"x"), keep=True)


class Proxy:
    """Speaks CONNECT, or SOCKS5 without authentication; notes what it is asked for."""

    def __init__(self, scheme: str) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        self._is_socks = scheme.startswith("socks")
        self.asked: list[str] = []
        self.heads: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            where = self._socks(client) if self._is_socks else self._connect(client)
            with socket.create_connection(where) as server:
                client.sendall(b"\x05\0\0\x01" + bytes(6) if self._is_socks else b"HTTP/1.1 200 OK\r\n\r\n")
                threading.Thread(target=_pump, args=(server, client), daemon=True).start()
                _pump(client, server)

    def _connect(self, client: socket.socket) -> tuple[str, int]:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += client.recv(65_536)
        self.heads.append(head)
        target = head.split()[1].decode()
        self.asked.append(target)
        name, _, port = target.rpartition(":")
        return name, int(port)

    def _socks(self, client: socket.socket) -> tuple[str, int]:
        client.recv(262)
        client.sendall(b"\x05\0")
        asked = client.recv(262)
        kind = asked[3]
        name = socket.inet_ntoa(asked[4:8]) if kind == 1 else asked[5 : 5 + asked[4]].decode()
        port = int.from_bytes(asked[-2:], "big")
        self.asked.append(f"{name}:{port}")
        return "127.0.0.1", port


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)


@pytest.fixture(params=["http", "socks5"])
def proxy(request: pytest.FixtureRequest) -> Iterator[Proxy]:
    proxy = Proxy(request.param)
    yield proxy
    proxy.close()


def fetch(url: str, limits: FetchSettings, route: Route, *, allow_private: bool = True) -> Exchange | Failed:
    sending = Sending(route=route)
    return run(lambda fetcher: fetcher.fetch(url, sending=sending), limits, allow_private=allow_private)


def test_a_proxy_is_given_the_guarded_address_and_the_host_its_name(proxy: Proxy) -> None:
    with serving(PAGE) as server:
        limits = FetchSettings(resolve=(f"site.test:80:127.0.0.1:{server.port}",))
        found = fetch("http://site.test/p", limits, Route(proxy=proxy.url))
        assert isinstance(found, Exchange), found
        assert (found.body, found.status, found.address) == (b"x", 200, "127.0.0.1")
        assert proxy.asked == [f"127.0.0.1:{server.port}"]
        assert server.requests[0].raw == found.request
        assert b"Host: site.test\r\n" in found.request


def test_the_guard_refuses_an_address_before_the_proxy_hears_of_it(proxy: Proxy) -> None:
    found = fetch("http://127.0.0.1:8080/", SHORT, Route(proxy=proxy.url), allow_private=False)
    assert isinstance(found, Failed)
    assert found.kind is FailureKind.ADDRESS_REFUSED
    assert proxy.asked == []


def test_socks5h_leaves_the_name_to_the_proxy() -> None:
    proxy = Proxy("socks5h")
    with serving(PAGE) as server:
        route = Route(proxy=proxy.url, names_by_proxy=True)
        found = fetch(f"http://only.there.test:{server.port}/", SHORT, route)
        assert isinstance(found, Exchange), found
        assert (proxy.asked, found.address) == ([f"only.there.test:{server.port}"], "")
    proxy.close()


def test_a_password_is_for_the_proxy_and_not_for_the_host() -> None:
    proxy = Proxy("http")
    with serving(PAGE) as server:
        route = Route(proxy=proxy.url, proxy_user="me", proxy_password="hush")
        found = fetch(f"{server.url}/", SHORT, route)
        assert isinstance(found, Exchange), found
        assert b"Proxy-Authorization: Basic " in proxy.heads[0]
        assert b"authorization" not in server.requests[0].raw.lower()
    proxy.close()


def test_a_proxy_that_is_gone_is_a_fault_of_its_own_kind(proxy: Proxy) -> None:
    proxy.close()
    with serving(PAGE) as server:
        found = fetch(f"{server.url}/", SHORT, Route(proxy=proxy.url))
    assert isinstance(found, Failed)
    assert found.kind is FailureKind.PROXY_FAILED


def test_a_client_certificate_is_shown_to_a_host_that_asks_for_it(tmp_path: Path) -> None:
    certificates, ours = Certificates(tmp_path), trustme.CA()
    context = certificates.good("mine.test")
    context.verify_mode = ssl.CERT_REQUIRED
    ours.configure_trust(context)
    pem = tmp_path / "client.pem"
    ours.issue_cert("me@mine.test").private_key_and_cert_chain_pem.write_to_path(str(pem))
    with serving(PAGE, tls=context) as server:
        limits = FetchSettings(
            ca_file=certificates.ca_file, resolve=(f"*:443:127.0.0.1:{server.port}",), total_timeout=10.0
        )
        found = fetch("https://mine.test/", limits, Route(certificate=str(pem)))
        assert isinstance(found, Exchange), found
        refused = fetch("https://mine.test/", limits, Route())
        assert isinstance(refused, Failed)
