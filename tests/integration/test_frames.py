"""The wire of workers that a crawl starts itself: what comes back, and what is hung up on."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from skitter import __version__
from skitter.desk.brain import Standing
from skitter.desk.crew import Crew
from skitter.desk.frames import listening
from skitter.desk.reception import Reception
from skitter.desk.wire import (
    ANSWER_HEAD,
    ASK_HEAD,
    JOIN,
    KINDS,
    LARGEST_BATCH,
    LEASE,
    RENEW,
    SETTLE,
    Given,
    JoinAsk,
    Joined,
    LeaseAsk,
    LeasesAsk,
    Renewed,
)
from skitter.folder import CrawlFolder
from skitter.frontier.base import REMOTE
from skitter.model import Host, Token
from skitter.wiring import Office, leading_office, open_office
from skitter.worker.framed import FramedLink
from skitter.worker.link import Away, Refused
from tests.frontier_kit import seed
from tests.integration.test_remote import LEASED, URL

encode = msgspec.msgpack.encode
JOINING = JoinAsk(worker="w", incarnation="1", sequence=1, version=__version__)


def run(folder: Path, use: Callable[[FramedLink, Office], Awaitable[None]]) -> None:
    async def main() -> None:
        place = folder / "frames.sock"
        async with open_office(CrawlFolder(folder), LEASED) as office, leading_office(office, LEASED, place):
            await office.frontier.admit([seed(URL)])
            link = FramedLink(f"unix:{place}")
            try:
                await use(link, office)
            finally:
                await link.close()

    asyncio.run(main())


async def said_to(reader: asyncio.StreamReader) -> bytes:
    """All of it, until the other side hangs up."""
    async with asyncio.timeout(30):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


def test_asks_are_answered_in_their_turn_and_beside_each_other(tmp_path: Path) -> None:
    async def use(link: FramedLink, office: Office) -> None:
        joined = msgspec.msgpack.decode(await link.post(JOIN, encode(JOINING)), type=Joined)
        assert (joined.settings, joined.standing) == (LEASED, Standing.OPEN)
        asks = [LeaseAsk(worker=f"w{name}", incarnation="1", sequence=1, capacity=9) for name in range(5)]
        answers = await asyncio.gather(*(link.post(LEASE, encode(ask)) for ask in asks))
        given = [msgspec.msgpack.decode(answer, type=Given).leases for answer in answers]
        assert sorted(map(len, given)) == [0, 0, 0, 0, 1]
        (view,) = await office.frontier.leases(limit=10)
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
    async def use(link: FramedLink, office: Office) -> None:
        with pytest.raises(Refused) as refused:
            await link.post(JOIN, body)
        assert refused.value.status == status
        assert await link.post(JOIN, encode(JOINING))

    run(tmp_path, use)


@pytest.mark.parametrize(
    "sent",
    [
        ASK_HEAD.pack(len(KINDS), 1),
        ASK_HEAD.pack(0, 0),
        ASK_HEAD.pack(KINDS.index(SETTLE), LARGEST_BATCH + 1),
    ],
)
def test_who_breaks_the_rules_is_hung_up_on_and_others_are_answered(tmp_path: Path, sent: bytes) -> None:
    async def use(link: FramedLink, office: Office) -> None:
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "frames.sock"))
        writer.write(sent)
        assert await said_to(reader) == b""
        writer.close()
        assert await link.post(JOIN, encode(JOINING))

    run(tmp_path, use)


def test_who_says_more_before_it_is_answered_is_hung_up_on_and_what_it_asked_is_done(tmp_path: Path) -> None:
    async def use(link: FramedLink, office: Office) -> None:
        asked = encode(LeaseAsk(worker="w", incarnation="1", sequence=1, capacity=9))
        async with office.desk._turn.long:
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "frames.sock"))
            writer.write(ASK_HEAD.pack(KINDS.index(LEASE), len(asked)) + asked + b"more")
            assert await said_to(reader) == b""
            writer.close()
        answer = await link.post(LEASE, asked)
        assert len(msgspec.msgpack.decode(answer, type=Given).leases) == 1

    run(tmp_path, use)


def test_an_ask_may_come_byte_by_byte(tmp_path: Path) -> None:
    async def use(link: FramedLink, office: Office) -> None:
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "frames.sock"))
        for byte in ASK_HEAD.pack(0, len(encode(JOINING))) + encode(JOINING):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        status, size = ANSWER_HEAD.unpack(await reader.readexactly(ANSWER_HEAD.size))
        assert (status, len(await reader.readexactly(size))) == (200, size)
        writer.close()

    run(tmp_path, use)


def test_a_short_ask_after_a_long_one_is_read_as_it_is(tmp_path: Path) -> None:
    """Asks of one connection are read into the same memory, those that are very long into their own."""

    async def use(link: FramedLink, office: Office) -> None:
        for length in (10, 100_000, 5, 9_000_000, 7, 100):
            lease = (Host("http://" + "x" * length), Token(1))
            renewing = LeasesAsk(worker="w", incarnation="1", sequence=length, leases=[lease, lease])
            answer = msgspec.msgpack.decode(await link.post(RENEW, encode(renewing)), type=Renewed)
            assert answer.deadlines == [None, None]
            given = await link.post(JOIN, encode(JOINING))
            assert msgspec.msgpack.decode(given, type=Joined).settings == LEASED

    run(tmp_path, use)


def test_only_the_owner_may_connect_and_nobody_once_it_is_over(tmp_path: Path) -> None:
    async def main() -> None:
        place = tmp_path / "frames.sock"
        place.write_bytes(b"left behind by one that was killed")
        async with open_office(CrawlFolder(tmp_path), LEASED) as office:
            reception = Reception(Crew(office.desk, office.clock), LEASED, office.clock)
            link = FramedLink(f"unix:{place}")
            async with listening(reception, place):
                assert stat.S_IMODE(place.stat().st_mode) == 0o600
                assert await link.post(JOIN, encode(JOINING))
            with pytest.raises(Away):
                await link.post(JOIN, encode(JOINING))
            assert not place.exists()
            await link.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "said", [b"", b"\xc8", ANSWER_HEAD.pack(200, 5) + b"abc", ANSWER_HEAD.pack(200, 2) + b"abc"]
)
def test_a_desk_that_speaks_otherwise_is_away(tmp_path: Path, said: bytes) -> None:
    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.write(said)
            writer.close()
            await writer.wait_closed()

        place = str(tmp_path / "other.sock")
        async with await asyncio.start_unix_server(answer, place):
            link = FramedLink(f"unix:{place}", patience=10.0)
            with pytest.raises(Away):
                await link.post(JOIN, b"x")
            await link.close()

    asyncio.run(main())
