"""TLS: verified unless told otherwise, each fault under its own name, sessions resumed, facts recorded."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from skitter.errors import UsageError
from skitter.fetch.curl import CurlFetcher
from skitter.fetch.tls import Handshakes, Tls
from skitter.model import Exchange, Failed, FailureKind
from skitter.settings import FetchSettings
from tests.certificates import Certificates
from tests.fetching import exchange, failure, fetch, run
from tests.raw_server import RawServer, page, sends, serving

_K = FailureKind
KEPT = sends(page(b"x"), keep=True)
CLOSED = sends(page(b"x", b"Connection: close"))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls"))


def limits(certificates: Certificates, server: RawServer, *, verify: bool = True) -> FetchSettings:
    return FetchSettings(
        ca_file=certificates.ca_file,
        verify_tls=verify,
        resolve=(f"*:443:127.0.0.1:{server.port}",),
        total_timeout=10.0,
    )


# -- verified, or a fault of its own kind


def test_a_good_certificate_is_accepted_and_the_server_name_is_sent(certificates: Certificates) -> None:
    with serving(KEPT, tls=certificates.good("good.test")) as server:
        found = exchange("https://good.test/p", limits(certificates, server))
        assert (found.body, server.server_names) == (b"x", ["good.test"])
        assert server.requests[0].raw == found.request
        assert b"\r\nHost: good.test\r\n" in found.request


@pytest.mark.parametrize(
    ("made", "name", "kind", "word"),
    [
        (Certificates.expired, "host.test", _K.TLS_EXPIRED, "expired"),
        (Certificates.not_yet_valid, "host.test", _K.TLS_EXPIRED, "not yet valid"),
        (Certificates.of_a_stranger, "host.test", _K.TLS_UNTRUSTED, "issuer"),
        (Certificates.good, "other.test", _K.TLS_NAME, "host.test"),
        (Certificates.good, "*.host.test", _K.TLS_NAME, "host.test"),
        (Certificates.expired, "other.test", _K.TLS_NAME, "host.test"),
        (Certificates.without_common_cipher, "host.test", _K.TLS_HANDSHAKE, "handshake failure"),
    ],
)
def test_a_bad_certificate_is_a_failure_of_its_kind_and_nothing_is_sent(
    certificates: Certificates,
    made: Callable[[Certificates, str], ssl.SSLContext],
    name: str,
    kind: FailureKind,
    word: str,
) -> None:
    with serving(KEPT, tls=made(certificates, name)) as server:
        found = failure("https://host.test/", limits(certificates, server))
        assert (found.kind, server.requests) == (kind, [])
        assert word in found.detail


def test_a_certificate_that_nobody_signed_is_untrusted(certificates: Certificates) -> None:
    with serving(KEPT, tls=certificates.of_a_stranger("127.0.0.1")) as server:
        assert failure(server.url + "/").kind is _K.TLS_UNTRUSTED


@contextmanager
def greeting(words: bytes, *, waits: bool) -> Iterator[str]:
    """Takes one connection, perhaps waits for the client's hello, says its words and closes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            connection, _ = listener.accept()
            with connection:
                if waits:
                    connection.recv(65_536)
                connection.sendall(words)

        thread = threading.Thread(target=greet)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}/"
        thread.join(5)


@pytest.mark.parametrize(
    ("words", "waits"),
    [
        (page(b"x"), False),
        (b"", True),
        (b"", False),
        (b"\x15\x03\x03\x00\x02\x02\x28", True),  # the alert "handshake failure"
        (b"\x16\x03\x03\x40\x00" + b"\xff" * 100, True),
        (b"\x16\x03\x03\x00\x04\x02\x00\x00\x00", True),
    ],
)
def test_what_is_no_handshake_is_a_handshake_failure(words: bytes, waits: bool) -> None:
    with greeting(words, waits=waits) as url:
        assert failure(url).kind is _K.TLS_HANDSHAKE


def test_a_list_of_issuers_that_cannot_be_read_is_our_own_fault(certificates: Certificates) -> None:
    with (
        serving(KEPT, tls=certificates.good("127.0.0.1")) as server,
        pytest.raises(UsageError, match="ca_file"),
    ):
        fetch(server.url + "/", FetchSettings(ca_file="/does/not/exist.pem"))


# -- the operator's word for one host


def test_a_host_may_go_unchecked_while_the_others_are_checked(certificates: Certificates) -> None:
    async def use(fetcher: CurlFetcher) -> list[Exchange | Failed]:
        return [
            await fetcher.fetch("https://a.test/", verify_tls=False),
            await fetcher.fetch("https://b.test/"),
            await fetcher.fetch("https://a.test/", verify_tls=False),
        ]

    with serving(KEPT, tls=certificates.of_a_stranger("a.test", "b.test")) as server:
        first, second, third = run(use, limits(certificates, server))
        assert isinstance(first, Exchange)
        assert isinstance(second, Failed)
        assert second.kind is _K.TLS_UNTRUSTED
        assert isinstance(third, Exchange)
        assert third.reused_connection


@pytest.mark.parametrize("answer", [KEPT, CLOSED], ids=["a warm connection", "a session to resume"])
def test_what_was_opened_unchecked_is_never_used_for_a_checked_request(
    certificates: Certificates, answer: Callable[[socket.socket, bytes], bool]
) -> None:
    async def use(fetcher: CurlFetcher) -> list[Exchange | Failed]:
        unchecked = [await fetcher.fetch("https://a.test/1", verify_tls=False) for _ in range(2)]
        return [*unchecked, await fetcher.fetch("https://a.test/2", verify_tls=True)]

    with serving(answer, tls=certificates.of_a_stranger("a.test")) as server:
        first, second, checked = run(use, limits(certificates, server))
        assert isinstance(first, Exchange)
        assert isinstance(second, Exchange)
        assert isinstance(checked, Failed)
        assert checked.kind is _K.TLS_UNTRUSTED
        assert len(server.requests) == 2


def test_a_host_may_be_checked_where_the_crawl_does_not(certificates: Certificates) -> None:
    async def use(fetcher: CurlFetcher) -> tuple[Exchange | Failed, Exchange | Failed]:
        return await fetcher.fetch("https://a.test/"), await fetcher.fetch("https://a.test/", verify_tls=True)

    with serving(KEPT, tls=certificates.of_a_stranger("a.test")) as server:
        careless, careful = run(use, limits(certificates, server, verify=False))
    assert isinstance(careless, Exchange)
    assert isinstance(careful, Failed)
    assert careful.kind is _K.TLS_UNTRUSTED


# -- sessions, facts and times


def test_a_session_is_resumed_when_its_connection_was_closed(certificates: Certificates) -> None:
    async def use(fetcher: CurlFetcher) -> list[bool]:
        found = [await fetcher.fetch(f"https://a.test/{number}") for number in range(5)]
        return [one.reused_connection for one in found if isinstance(one, Exchange)]

    with serving(CLOSED, tls=certificates.good("a.test")) as server:
        assert run(use, limits(certificates, server)) == [False] * 5
        assert (server.connections, server.resumed) == (5, 4)


@pytest.mark.parametrize(
    ("newest", "version"), [(ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")]
)
def test_version_and_cipher_are_recorded_on_new_and_on_kept_connections(
    certificates: Certificates, newest: ssl.TLSVersion, version: str
) -> None:
    async def use(fetcher: CurlFetcher) -> list[tuple[str, str]]:
        found = [await fetcher.fetch(f"https://{name}.test/") for name in "abaab"]
        return [(one.tls_version, one.tls_cipher) for one in found if isinstance(one, Exchange)]

    context = certificates.good("a.test", "b.test")
    context.maximum_version = newest
    with serving(KEPT, tls=context) as server:
        facts = run(use, limits(certificates, server))
        assert server.connections == 2
    assert len(facts) == 5
    assert set(facts) == {(version, facts[0][1])}
    assert "AES" in facts[0][1] or "CHACHA" in facts[0][1]


def test_facts_of_another_connection_are_not_passed_on() -> None:
    seen, agreed = Handshakes(2), Tls("TLSv1.3", "X")
    assert seen.lookup("https://a", 1, agreed) == seen.lookup("https://a", 1, None) == agreed
    assert seen.lookup("https://a", 2, None) == Tls()
    assert not seen.knows("https://a")
    for number, origin in enumerate(("https://a", "https://b", "https://c")):
        seen.lookup(origin, number, agreed)
    assert [seen.knows(origin) for origin in ("https://a", "https://b", "https://c")] == [False, True, True]


def test_times_say_where_the_time_went(certificates: Certificates) -> None:
    async def use(fetcher: CurlFetcher) -> list[Exchange | Failed]:
        return [await fetcher.fetch(f"{server.url}/{number}") for number in range(2)]

    with serving(KEPT, tls=certificates.good("127.0.0.1")) as server:
        new, kept = run(use, limits(certificates, server))
    assert isinstance(new, Exchange)
    assert isinstance(kept, Exchange)
    assert 0 < new.connect_ms < new.connect_ms + new.tls_ms <= new.first_byte_ms <= new.total_ms
    assert (kept.connect_ms, kept.tls_ms) == (0.0, 0.0)
    assert 0 < kept.first_byte_ms <= kept.total_ms


def test_in_the_clear_there_are_no_tls_facts() -> None:
    with serving(KEPT) as server:
        found = exchange(server.url + "/")
    assert (found.tls_version, found.tls_cipher, found.tls_ms) == ("", "", 0.0)
    assert 0 < found.connect_ms <= found.total_ms


def test_many_handshakes_at_once_all_end_well(certificates: Certificates) -> None:
    names = [f"h{number}.test" for number in range(40)]

    async def use(fetcher: CurlFetcher) -> list[Exchange | Failed]:
        return await asyncio.gather(*(fetcher.fetch(f"https://{name}/") for name in names))

    with serving(KEPT, tls=certificates.good(*names)) as server:
        found = run(use, limits(certificates, server))
    assert {one.tls_version for one in found if isinstance(one, Exchange)} == {"TLSv1.3"}
    assert len([one for one in found if isinstance(one, Exchange)]) == 40
