"""A worker's connection: against a server that is not ours, or not quite HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from skitter.errors import UsageError
from skitter.worker.remote.http_link import Away, Connection, HttpLink, Refused

GOOD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def against(answers: list[bytes], use: Callable[[HttpLink], Awaitable[None]]) -> list[bytes]:
    """Each answer is for one request; after an empty one the server hangs up. What was asked, after the port of
    who asked it."""
    asked = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split()[0]))
                asked.append(b"%d " % writer.get_extra_info("peername")[1] + head + body)
                answer = answers.pop(0) if answers else b""
                writer.write(answer)
                if not answer or b"close" in answer:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    async def main() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            link = HttpLink(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "t0ken")
            try:
                await use(link)
            finally:
                await link.close()

    asyncio.run(main())
    return asked


@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        b"HTTP/1.1 100 Continue\r\n\r\n" + GOOD,
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
    ],
)
def test_an_answer_is_read_however_it_is_framed_and_the_next_call_goes_on(answer: bytes) -> None:
    async def use(link: HttpLink) -> None:
        assert await link.post("/a", b"one") == b"ok"
        assert await link.post("/b", b"two") == b"ok"

    first, second = against([answer, GOOD], use)
    assert b" POST /a HTTP/1.1\r\n" in first
    assert b"\r\nAuthorization: Bearer t0ken\r\n" in first
    assert first.endswith(b"\r\n\r\none")
    assert second.endswith(b"\r\n\r\ntwo")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nclose",
        b"\x00" * 1000,
    ],
)
def test_who_does_not_answer_in_http_is_away_and_may_be_back(answer: bytes) -> None:
    async def use(link: HttpLink) -> None:
        with pytest.raises(Away):
            await link.post("/a", b"")
        assert await link.post("/b", b"") == b"ok"

    against([answer, GOOD], use)


def test_an_answer_nobody_asked_for_is_not_taken_for_the_next_one() -> None:
    async def use(link: HttpLink) -> None:
        assert await link.post("/a", b"") == b"ok"
        assert await link.post("/b", b"") == b"ok"

    first, second = against([GOOD + GOOD.replace(b"ok", b"no"), GOOD], use)
    assert first.split()[0] != second.split()[0], "what else that server says is not read"


def test_a_server_that_speaks_first_is_hung_up_on() -> None:
    faults: list[dict[str, Any]] = []

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"welcome")
        await reader.read()
        writer.close()

    async def use() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: faults.append(context))
        async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
            _, connection = await loop.create_connection(Connection, *server.sockets[0].getsockname())
            await asyncio.wait_for(connection.closed, 10)

    asyncio.run(use())
    assert faults == []


def test_a_refusal_is_told_in_the_servers_words() -> None:
    async def use(link: HttpLink) -> None:
        with pytest.raises(Refused, match="413: too much") as refused:
            await link.post("/a", b"")
        assert refused.value.status == 413

    against([b"HTTP/1.1 413 No\r\ncontent-length: 8\r\n\r\ntoo much"], use)


def test_who_never_answers_is_away_when_patience_ends() -> None:
    async def main() -> None:
        held = []

        def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            held.append(writer)

        async with await asyncio.start_server(hold, "127.0.0.1", 0) as server:
            link = HttpLink(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", patience=0.05)
            with pytest.raises(Away):
                await link.post("/a", b"")
            for writer in held:
                writer.close()

    asyncio.run(main())


def test_a_token_cannot_add_headers() -> None:
    with pytest.raises(UsageError):
        HttpLink("http://127.0.0.1:1", "token\r\nX-More: 1")


def test_who_asks_while_an_answer_is_awaited_does_not_wait_for_it() -> None:
    ports: list[int] = []

    async def main() -> None:
        later = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while head := await reader.read(65_536):
                ports.append(writer.get_extra_info("peername")[1])
                if head.startswith(b"POST /slow"):
                    await later.wait()
                writer.write(GOOD)
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            link = HttpLink(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            slow = asyncio.create_task(link.post("/slow", b"one"))
            assert await link.post("/quick", b"two") == b"ok"
            assert await link.post("/quick", b"three") == b"ok"
            assert not slow.done()
            later.set()
            assert await slow == b"ok"
            await link.close()

    asyncio.run(main())
    assert len(ports) == 3
    assert len(set(ports)) == 2
