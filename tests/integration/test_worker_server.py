"""The calls of worker processes over a unix socket: what comes back, and who is hung up on."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from skitter import __version__
from skitter.committer.delivery_check import DeliveryCheck
from skitter.committer.work_source import Standing
from skitter.committer.worker_messages import (
    JOIN,
    LARGEST_BATCH,
    LEASE,
    RENEW,
    JoinRequest,
    JoinResponse,
    LeaseRequest,
    LeaseResponse,
    LeasesRequest,
    RenewResponse,
)
from skitter.committer.worker_registry import WorkerRegistry
from skitter.committer.worker_rpc import WorkerRpc
from skitter.committer.worker_server import serve_on_unix_socket
from skitter.folder import CrawlFolder
from skitter.frontier.base import REMOTE
from skitter.model import Host, Token
from skitter.wiring import CrawlServices, open_services, serve_workers
from skitter.worker.remote.http_link import Away, HttpLink, Refused
from tests.frontier_kit import seed
from tests.integration.test_remote_work_source import LEASED, URL

encode = msgspec.msgpack.encode
JOINING = JoinRequest(worker="w", incarnation="1", sequence=1, version=__version__)


def run(folder: Path, use: Callable[[HttpLink, CrawlServices], Awaitable[None]]) -> None:
    async def main() -> None:
        place = folder / "workers.sock"
        async with (
            open_services(CrawlFolder(folder), LEASED) as services,
            serve_workers(services, LEASED, place),
        ):
            await services.frontier.admit([seed(URL)])
            link = HttpLink(f"unix:{place}")
            try:
                await use(link, services)
            finally:
                await link.close()

    asyncio.run(main())


def posted(path: str, body: bytes) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def said_to(reader: asyncio.StreamReader) -> bytes:
    """All of it, until the other side hangs up."""
    async with asyncio.timeout(30):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


def test_asks_are_answered_in_their_turn_and_beside_each_other(tmp_path: Path) -> None:
    async def use(link: HttpLink, services: CrawlServices) -> None:
        joined = msgspec.msgpack.decode(await link.post(JOIN, encode(JOINING)), type=JoinResponse)
        assert (joined.settings, joined.standing) == (LEASED, Standing.OPEN)
        asks = [LeaseRequest(worker=f"w{name}", incarnation="1", sequence=1, capacity=9) for name in range(5)]
        answers = await asyncio.gather(*(link.post(LEASE, encode(ask)) for ask in asks))
        given = [msgspec.msgpack.decode(answer, type=LeaseResponse).leases for answer in answers]
        assert sorted(map(len, given)) == [0, 0, 0, 0, 1]
        (view,) = await services.frontier.leases(limit=10)
        assert not view.worker.startswith(REMOTE)

    run(tmp_path, use)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"\xc1", 400),
        (encode({"worker": 1}), 422),
        (encode(msgspec.structs.replace(JOINING, version="0")), 422),
    ],
)
def test_what_is_no_ask_is_refused_and_the_next_one_answered(
    tmp_path: Path, body: bytes, status: int
) -> None:
    async def use(link: HttpLink, services: CrawlServices) -> None:
        with pytest.raises(Refused) as refused:
            await link.post(JOIN, body)
        assert refused.value.status == status
        assert await link.post(JOIN, encode(JOINING))

    run(tmp_path, use)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x00\x01\x02\x03\r\n\r\n", 400),
        (b"POST /v1/work/settle HTTP/1.1\r\nContent-Length: ten\r\n\r\n", 400),
        (b"POST /v1/work/settle HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST /v1/work/settle HTTP/1.1\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n", 400),
        (b"POST /v1/work/join HTTP/1.1\r\nContent-Length: 1\r\n\r\nxPOST /", 400),
        (b"POST /v1/seeds HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", 404),
        (b"GET /v1/work/join HTTP/1.1\r\n\r\n", 405),
        (b"POST /v1/work/settle HTTP/1.1\r\n\r\n", 411),
        (b"POST /v1/work/settle HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST /v1/work/settle HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (LARGEST_BATCH + 1), 413),
        (b"POST /v1/work/settle HTTP/1.1\r\n" + b"A: b\r\n" * 5_000, 431),
    ],
)
def test_who_breaks_the_rules_is_hung_up_on_and_others_are_answered(
    tmp_path: Path, sent: bytes, status: int
) -> None:
    async def use(link: HttpLink, services: CrawlServices) -> None:
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "workers.sock"))
        writer.write(sent)
        answer = await said_to(reader)
        # with bytes of ours unread, the kernel may take the refusal back
        assert answer.startswith(b"HTTP/1.1 %d " % status) or (not answer and status in (400, 431))
        writer.close()
        assert await link.post(JOIN, encode(JOINING))

    run(tmp_path, use)


def test_a_client_that_hangs_up_in_the_middle_of_a_body_is_forgotten(tmp_path: Path) -> None:
    async def use(link: HttpLink, services: CrawlServices) -> None:
        for _ in range(3):
            _, writer = await asyncio.open_unix_connection(str(tmp_path / "workers.sock"))
            writer.write(b"POST /v1/work/settle HTTP/1.1\r\nContent-Length: 60000000\r\n\r\nhalf")
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        assert await link.post(JOIN, encode(JOINING))

    run(tmp_path, use)


def test_who_says_more_before_it_is_answered_is_hung_up_on_and_what_it_asked_is_done(tmp_path: Path) -> None:
    async def use(link: HttpLink, services: CrawlServices) -> None:
        asked = encode(LeaseRequest(worker="w", incarnation="1", sequence=1, capacity=9))
        async with services.frontier.settling([]):
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "workers.sock"))
            writer.write(posted(LEASE, asked))
            await writer.drain()
            await asyncio.sleep(0.05)  # it is under way, and waits for the settling
            writer.write(b"more")
            assert await said_to(reader) == b""
            writer.close()
        answer = await link.post(LEASE, asked)
        assert len(msgspec.msgpack.decode(answer, type=LeaseResponse).leases) == 1

    run(tmp_path, use)


def test_an_ask_may_come_byte_by_byte(tmp_path: Path) -> None:
    async def use(link: HttpLink, services: CrawlServices) -> None:
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "workers.sock"))
        for byte in posted(JOIN, encode(JOINING)):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        size = int(head.partition(b"Content-Length: ")[2])
        joined = msgspec.msgpack.decode(await reader.readexactly(size), type=JoinResponse)
        assert joined.settings == LEASED
        writer.close()

    run(tmp_path, use)


def test_a_short_ask_after_a_long_one_is_read_as_it_is(tmp_path: Path) -> None:
    """Asks of one connection are read into the same memory, those that are very long into their own."""

    async def use(link: HttpLink, services: CrawlServices) -> None:
        for length in (10, 100_000, 5, 9_000_000, 7, 100):
            lease = (Host("http://" + "x" * length), Token(1))
            renewing = LeasesRequest(worker="w", incarnation="1", sequence=length, leases=[lease, lease])
            answer = msgspec.msgpack.decode(await link.post(RENEW, encode(renewing)), type=RenewResponse)
            assert answer.deadlines == [None, None]
            given = await link.post(JOIN, encode(JOINING))
            assert msgspec.msgpack.decode(given, type=JoinResponse).settings == LEASED

    run(tmp_path, use)


def test_only_the_owner_may_connect_and_nobody_once_it_is_over(tmp_path: Path) -> None:
    async def main() -> None:
        place = tmp_path / "workers.sock"
        place.write_bytes(b"left behind by one that was killed")
        async with open_services(CrawlFolder(tmp_path), LEASED) as services:
            rpc = WorkerRpc(
                WorkerRegistry(services.committer, services.clock, DeliveryCheck(LEASED)),
                LEASED,
                services.clock,
            )
            link = HttpLink(f"unix:{place}")
            async with serve_on_unix_socket(rpc, place):
                assert stat.S_IMODE(place.stat().st_mode) == 0o600
                assert await link.post(JOIN, encode(JOINING))
            with pytest.raises(Away):
                await link.post(JOIN, encode(JOINING))
            assert not place.exists()
            await link.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "said", [b"", b"\xc8", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", b"HTTP/1.1 200 OK\r\nContent"]
)
def test_a_server_that_speaks_otherwise_is_away(tmp_path: Path, said: bytes) -> None:
    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.write(said)
            writer.close()
            await writer.wait_closed()

        place = str(tmp_path / "other.sock")
        async with await asyncio.start_unix_server(answer, place):
            link = HttpLink(f"unix:{place}", patience=10.0)
            with pytest.raises(Away):
                await link.post(JOIN, b"x")
            await link.close()

    asyncio.run(main())
