"""Strangers at the door cost little: heads, time and connections are bounded before anybody shows a token."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from skitter.service.http import door
from skitter.service.http.access import Access, Role
from tests.service_kit import Service, asked, running_service

TOKEN = "a-token-for-the-door"
MB = 1_000_000


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with running_service(tmp_path, tokens=Access([(Role.READ, TOKEN)])) as running:
        yield running


def connected(service: Service) -> socket.socket:
    place = urlsplit(service.where)
    return socket.create_connection((place.hostname or "", place.port or 0), timeout=30)


def is_heard(service: Service) -> bool:
    return asked(service.where, "GET", "/v1/stats", token=TOKEN).status == 200


def closed_after(sock: socket.socket, sent: bytes, most: int) -> tuple[int, bytes]:
    """How much of it could be sent, up to `most` bytes in all, and what was answered."""
    total = 0
    try:
        while total < most:
            sock.sendall(sent)
            total += len(sent)
    except OSError:
        pass
    try:
        return total, sock.recv(4096)
    except OSError:
        return total, b""


@pytest.mark.parametrize(
    "start",
    [b"GET / HTTP/1.1\r\nX: ", b"GET /", b"", b"GET / HTTP/1.1\r\n"],
    ids=["one field", "a path", "a method", "fields"],
)
def test_an_endless_head_is_refused_after_64_kilobytes(service: Service, start: bytes) -> None:
    piece = b"a: b\r\n" * 10_000 if start.endswith(b"\r\n") else b"a" * 60_000
    with closing(connected(service)) as sock:
        sock.sendall(start)
        sent, answer = closed_after(sock, piece, 100 * MB)
        # What the kernel's buffers take on both sides is sent, and read by nobody.
        assert sent < 30 * MB
        assert answer[9:12] in (b"431", b"400", b"")
    assert is_heard(service)


def test_a_head_of_usual_size_may_come_in_pieces_and_its_body_may_be_large(service: Service) -> None:
    head = (
        b"POST /v1/seeds HTTP/1.1\r\nHost: x\r\nX-Long: "
        + b"y" * 50_000
        + b"\r\nContent-Length: 200000\r\n\r\n"
    )
    with closing(connected(service)) as sock:
        for at in range(0, len(head), 7_000):
            sock.sendall(head[at : at + 7_000])
        sock.sendall(b"z" * 200_000)
        assert sock.recv(4096)[9:12] == b"401"


def test_more_than_100_fields_are_refused(service: Service) -> None:
    with closing(connected(service)) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 101 + b"\r\n")
        assert sock.recv(4096)[9:12] == b"400"
    with closing(connected(service)) as sock:
        sock.sendall(b"GET /v1/stats HTTP/1.1\r\n" + b"a: b\r\n" * 99 + b"host: x\r\n\r\n")
        assert sock.recv(4096)[9:12] == b"401"


def test_a_head_that_does_not_come_is_not_waited_for(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "SECONDS_FOR_A_HEAD", 0.2)
    with closing(connected(service)) as silent, closing(connected(service)) as slow:
        slow.sendall(b"GET / HTT")
        assert [sock.recv(1) for sock in (silent, slow)] == [b"", b""]


def test_strangers_from_one_address_push_each_other_out_and_nobody_who_has_a_token(service: Service) -> None:
    with ExitStack() as open_ones:
        place = urlsplit(service.where).netloc
        known = open_ones.enter_context(closing(HTTPConnection(place, timeout=30)))
        assert answers(known)
        is_the_same = known.sock
        crowd = [
            open_ones.enter_context(closing(connected(service)))
            for _ in range(3 * door.MOST_STRANGERS_AN_ADDRESS)
        ]
        assert is_heard(service)
        assert answers(known)
        assert known.sock is is_the_same
        assert is_closed(crowd[0])


def answers(connection: HTTPConnection) -> bool:
    connection.request("GET", "/v1/stats", headers={"authorization": f"Bearer {TOKEN}"})
    answer = connection.getresponse()
    return bool(answer.read()) and answer.status == 200


def is_closed(sock: socket.socket) -> bool:
    try:
        return sock.recv(1) == b""
    except OSError:
        return True


def test_a_thousand_half_requests_shut_nobody_out(service: Service) -> None:
    with ExitStack() as open_ones:
        for number in range(1_000):
            sock = open_ones.enter_context(closing(connected(service)))
            sock.setblocking(False)
            try:
                sock.send(b"POST /v1/seeds HTTP/1.1\r\nContent-Le")
            except OSError:
                continue
            if number % 250 == 0:
                assert is_heard(service)
        assert is_heard(service)


def test_who_sends_its_head_at_once_is_heard_whatever_crowd_came_with_it(service: Service) -> None:
    """All are accepted in one turn of the loop: 300 strangers after it, before anything of it is read."""
    go_on = threading.Event()
    service.call_soon(lambda: go_on.wait(60))
    with ExitStack() as open_ones:
        honest = open_ones.enter_context(closing(connected(service)))
        head = f"GET /v1/stats HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        honest.sendall(head.encode())
        for _ in range(300):
            open_ones.enter_context(closing(connected(service))).sendall(b"GET / HT")
        go_on.set()
        assert honest.recv(4096)[9:12] == b"200"
