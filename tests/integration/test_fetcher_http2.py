"""HTTP/2 where a host offers it: recorded truthfully, archived readably, and broken without harm."""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from h2.connection import H2Connection
from h2.errors import ErrorCodes

from skitter.archive.store import Archive
from skitter.clock import SystemClock
from skitter.fetch.curl import CurlFetcher
from skitter.model import Exchange, Failed, FailureKind
from skitter.settings import ArchiveSettings, FetchSettings
from tests.certificates import Certificates
from tests.exchanges import finished_records, read_with_fastwarc, stored_in
from tests.fetching import exchange, run
from tests.http2_server import Fields, Reply, replies, serving_http2
from tests.raw_server import RawServer

_K = FailureKind
BROKEN, LOST = {_K.PROTOCOL}, {_K.CONNECTION_LOST}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls"))


def limits(certificates: Certificates, server: RawServer, **rest: object) -> FetchSettings:
    given = {"first_byte_timeout": 2.0, "stall_timeout": 1.0, "total_timeout": 5.0, **rest}
    pin = (f"*:443:127.0.0.1:{server.port}",)
    return FetchSettings(ca_file=certificates.ca_file, resolve=pin, **given)  # type: ignore[arg-type]


# -- a server that behaves


def test_http2_is_spoken_where_offered_and_said_so(certificates: Certificates) -> None:
    with serving_http2(replies(b"two", ("x-a", "1"), ("x-a", "2")), certificates.good("two.test")) as server:
        found = exchange("https://two.test/p?q=1", limits(certificates, server))
    assert (found.status, found.http_version, found.body) == (200, "2", b"two")
    assert found.head == b"HTTP/2 200 \r\ncontent-type: text/html\r\nx-a: 1\r\nx-a: 2\r\n\r\n"
    assert [value for name, value in found.headers if name == "x-a"] == ["1", "2"]
    assert found.tls_version == "TLSv1.3"
    # the server looks at its clock late, if anything; what is promised is never to be before it by much
    assert server.requests[0].at - 0.02 <= found.sent_at <= found.ended_at


def test_the_recorded_request_says_in_http1_what_was_sent_in_http2(certificates: Certificates) -> None:
    async def use(fetcher: CurlFetcher) -> Exchange | Failed:
        return await fetcher.fetch("https://two.test/p?q=1", etag='"e"', last_modified="yesterday")

    with serving_http2(replies(b"x"), certificates.good("two.test")) as server:
        found = run(use, limits(certificates, server))
    assert isinstance(found, Exchange)
    sent = dict(server.fields[0])
    line, host, *fields = found.request.decode().rstrip("\r\n").split("\r\n")
    assert line == f"{sent.pop(':method')} {sent.pop(':path')} HTTP/1.1"
    assert (sent.pop(":scheme"), "Host: " + sent.pop(":authority")) == ("https", host)
    recorded = [field.partition(": ") for field in fields]
    assert [(name.lower(), value) for name, _, value in recorded] == list(sent.items())


@pytest.mark.parametrize("offered", [True, False])
def test_http1_is_spoken_where_http2_is_not_offered_or_not_wanted(
    certificates: Certificates, offered: bool
) -> None:
    context = certificates.good("one.test")
    with serving_http2(replies(b"x"), context) as server:
        if not offered:
            context.set_alpn_protocols(["http/1.1"])
        found = exchange("https://one.test/", limits(certificates, server, http2=not offered))
    assert (found.http_version, found.body) == ("1.1", b"by HTTP/1.1")


def test_a_connection_is_kept_and_never_shared_between_hosts(certificates: Certificates) -> None:
    async def use(fetcher: CurlFetcher) -> list[bool]:
        found = [await fetcher.fetch(f"https://{name}.test/") for name in "abab"]
        return [one.reused_connection for one in found if isinstance(one, Exchange)]

    with serving_http2(replies(b"x"), certificates.good("a.test", "b.test")) as server:
        assert run(use, limits(certificates, server)) == [False, False, True, True]
        assert server.connections == 2


def test_the_archive_holds_it_as_http1_that_readers_understand(
    certificates: Certificates, tmp_path: Path
) -> None:
    body = b"<title>two</title>"
    with serving_http2(replies(body, ("x-a", "1")), certificates.good("two.test")) as server:
        found = exchange("https://two.test/", limits(certificates, server))
    settings = ArchiveSettings(tables=(), metadata=False)
    archive = Archive.open(tmp_path, settings, SystemClock(), (), {}, in_child=False)
    stored_in(archive, found)
    archive.marks()
    archive.committed()
    archive.close()
    (file,) = tmp_path.glob("*.warc.gz")
    for records in (finished_records(tmp_path), read_with_fastwarc(file.read_bytes())):
        (response,) = [record for record in records if record.kind == "response"]
        assert (response.status, response.payload) == ("200", body)
        assert response.fields["WARC-Protocol"] == "h2"
        assert ("x-a", "1") in response.headers
        (request,) = [record for record in records if record.kind == "request"]
        assert ("Host", "two.test") in request.headers


def test_a_body_is_cut_at_the_limit_and_an_unwanted_one_not_read(certificates: Certificates) -> None:
    async def use(fetcher: CurlFetcher) -> tuple[Exchange | Failed, Exchange | Failed]:
        cut = await fetcher.fetch("https://two.test/")
        return cut, await fetcher.fetch(
            "https://two.test/", unwanted=lambda status, headers, start: "unwanted"
        )

    with serving_http2(replies(b"x" * 5000), certificates.good("two.test")) as server:
        cut, unwanted = run(use, limits(certificates, server, max_body=1000))
    assert isinstance(cut, Exchange)
    assert (len(cut.body), cut.truncated) == (1000, True)
    assert unwanted == Failed(kind=_K.TYPE_UNWANTED, detail="unwanted", status=200)


# -- one that does not


def frame(kind: int, flags: int, stream: int, payload: bytes, length: int | None = None) -> bytes:
    size = len(payload) if length is None else length
    return struct.pack("!I", size)[1:] + bytes((kind, flags)) + struct.pack("!I", stream) + payload


def raw(words: bytes) -> Reply:
    return lambda speaker, stream, fields: words


def resets(speaker: H2Connection, stream: int, _: Fields) -> bytes:
    speaker.reset_stream(stream, ErrorCodes.INTERNAL_ERROR)
    return b""


def goes_away(speaker: H2Connection, stream: int, _: Fields) -> bytes:
    speaker.close_connection(ErrorCodes.ENHANCE_YOUR_CALM)
    return b""


def breaks_off(speaker: H2Connection, stream: int, _: Fields) -> bytes:
    speaker.send_headers(stream, [(":status", "200"), ("content-type", "text/html")])
    speaker.send_data(stream, b"half")
    speaker.reset_stream(stream, ErrorCodes.CANCEL)
    return b""


def lies_about_its_length(speaker: H2Connection, stream: int, _: Fields) -> bytes:
    speaker.send_headers(stream, [(":status", "200"), ("content-length", "100")])
    speaker.send_data(stream, b"short", end_stream=True)
    return b""


def has_no_status(speaker: H2Connection, stream: int, _: Fields) -> bytes:
    speaker.send_headers(stream, [("content-type", "text/html")], end_stream=True)
    return b""


def has_upper_case(speaker: H2Connection, stream: int, _: Fields) -> bytes:
    speaker.send_headers(stream, [(":status", "200"), ("X-Upper", "1")], end_stream=True)
    return b""


def has_many_fields(speaker: H2Connection, stream: int, _: Fields) -> bytes:
    fields = [(f"x-{number}", "v" * 20) for number in range(400)]
    speaker.send_headers(stream, [(":status", "200"), *fields], end_stream=True)
    return b""


@pytest.mark.parametrize(
    ("reply", "kinds"),
    [
        (resets, BROKEN),
        (goes_away, BROKEN | LOST),
        (breaks_off, BROKEN | LOST),
        (lies_about_its_length, BROKEN | LOST),
        (has_no_status, BROKEN),
        (has_upper_case, BROKEN),
        (has_many_fields, {_K.HEADERS_TOO_LARGE}),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"), BROKEN),
        (raw(b"\xff" * 400), BROKEN),
        (raw(frame(0x1, 0x4, 1, b"\xff\xff\xff\xff\xff\xff")), BROKEN),
        (raw(frame(0x0, 0x1, 1, b"data first")), BROKEN),
        (raw(frame(0x0, 0x1, 7, b"a stream nobody opened")), BROKEN),
        (raw(frame(0x9, 0x4, 1, b"")), BROKEN),
        (raw(frame(0x4, 0x0, 0, b"odd")), BROKEN),
        (raw(frame(0x0, 0x0, 1, b"", length=0xFFFFFF)), BROKEN),
        (raw(frame(0x6, 0x0, 0, b"12345678") * 20_000), BROKEN | LOST | {_K.FIRST_BYTE_TIMEOUT}),
        (raw(b""), {_K.FIRST_BYTE_TIMEOUT}),
    ],
)
def test_broken_http2_is_a_failure_and_the_next_host_is_none_the_worse(
    certificates: Certificates, reply: Reply, kinds: set[FailureKind]
) -> None:
    def answer(speaker: H2Connection, stream: int, fields: Fields) -> bytes:
        chosen = reply if (":authority", "bad.test") in fields else replies(b"fine")
        return chosen(speaker, stream, fields)

    async def use(fetcher: CurlFetcher) -> tuple[Exchange | Failed, Exchange | Failed]:
        return await fetcher.fetch("https://bad.test/"), await fetcher.fetch("https://good.test/")

    with serving_http2(answer, certificates.good("bad.test", "good.test")) as server:
        bad, good = run(use, limits(certificates, server, first_byte_timeout=0.5))
    assert isinstance(bad, Failed), bad
    assert bad.kind in kinds, bad
    assert isinstance(good, Exchange)
    assert good.body == b"fine"


# -- a server that others wrote

NGINX = """
daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{ }}
http {{
    access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder};
    server {{
        listen 127.0.0.1:{port} ssl http2;
        ssl_certificate {chain}; ssl_certificate_key {key};
        location / {{ default_type text/html; return 200 "$server_protocol $http_user_agent"; }}
    }}
}}
"""


@pytest.fixture
def nginx(certificates: Certificates, tmp_path: Path) -> Iterator[str]:
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    if program is None:
        pytest.skip("needs the Debian package nginx")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    chain, key = certificates.files(tmp_path, "127.0.0.1")
    configuration = tmp_path / "nginx.conf"
    configuration.write_text(NGINX.format(folder=tmp_path, port=port, chain=chain, key=key))
    with subprocess.Popen(
        [program, "-p", str(tmp_path), "-e", str(tmp_path / "error.log"), "-c", str(configuration)]
    ) as server:
        while not _listens(port):
            assert server.poll() is None, (tmp_path / "error.log").read_text()
        yield f"https://127.0.0.1:{port}"
        server.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_nginx_is_asked_in_http2(certificates: Certificates, nginx: str) -> None:
    async def use(fetcher: CurlFetcher) -> list[Exchange | Failed]:
        return [await fetcher.fetch(nginx + "/") for _ in range(3)]

    found = run(use, FetchSettings(ca_file=certificates.ca_file))
    exchanges = [one for one in found if isinstance(one, Exchange)]
    assert [one.body.split()[0] for one in exchanges] == [b"HTTP/2.0"] * 3
    assert [(one.http_version, one.reused_connection) for one in exchanges] == [
        ("2", False),
        ("2", True),
        ("2", True),
    ]
