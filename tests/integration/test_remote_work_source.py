"""A worker's end of the wire against a real server: clocks, lost answers, absences."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from skitter.clock import Clock, SystemClock
from skitter.committer.work_source import Delivery, Standing
from skitter.committer.worker_messages import SETTLE, SettleRequest, SettleResponse
from skitter.errors import UsageError
from skitter.folder import CrawlFolder
from skitter.frontier.base import Settled, Settlement
from skitter.frontier.link_batches import pack, unpack
from skitter.log import Log
from skitter.model import Discovered, Fetched, HostLease, LinkBatch, Outcome
from skitter.runtime.listening import listen_for_workers
from skitter.service.http.access import Access, Role
from skitter.settings import FrontierSettings
from skitter.wiring import CrawlServices, open_services
from skitter.worker.remote.http_link import Away, HttpLink, Refused
from skitter.worker.remote.remote_work_source import RemoteWorkSource
from skitter.worker.remote.server_notes import ServerNotes
from tests.frontier_kit import discovered, seed
from tests.integration.test_committer import SETTINGS, delivery
from tests.service_kit import asked

LEASED = msgspec.structs.replace(SETTINGS, frontier=FrontierSettings(lease_duration=30.0))
URL, OTHER = "http://a.test/", "http://b.test/"


class Wrong:
    """A clock that is off by so much."""

    def __init__(self, right: Clock, off: float) -> None:
        self._clock, self._off = right, off

    def now(self) -> float:
        return self._clock.now() + self._off


class Hasty:
    """A clock that goes on by so much whenever it is asked."""

    def __init__(self, right: Clock) -> None:
        self._clock, self._ahead = right, 0.0
        self.step = 0.0

    def now(self) -> float:
        self._ahead += self.step
        return self._clock.now() + self._ahead


LINKS: list[HttpLink] = []


def linked(where: str, token: str = "") -> HttpLink:
    LINKS.append(HttpLink(where, token))
    return LINKS[-1]


def run_to_its_end(main: Coroutine[Any, Any, None]) -> None:
    async def all_of_it() -> None:
        try:
            await main
        finally:
            while LINKS:
                await LINKS.pop().close()

    asyncio.run(all_of_it())


@asynccontextmanager
async def serving(
    folder: Path, listen: str = "127.0.0.1:0", tokens: Access | None = None
) -> AsyncIterator[tuple[str, CrawlServices]]:
    async with (
        open_services(CrawlFolder(folder), LEASED) as services,
        listen_for_workers(services, CrawlFolder(folder), LEASED, listen, tokens or Access(), print) as where,
    ):
        await services.frontier.admit([seed(URL)])
        yield where, services


def run(
    folder: Path, use: Callable[[str, CrawlServices], Awaitable[None]], listen: str = "127.0.0.1:0"
) -> None:
    async def main() -> None:
        async with serving(folder, listen) as (where, services):
            await use(where, services)

    run_to_its_end(main())


async def joined(where: str, clock: Clock | None = None, name: str = "worker-1") -> RemoteWorkSource:
    source = RemoteWorkSource(linked(where), clock or SystemClock(), name)
    assert await source.join() == LEASED
    return source


def settle_request(source: RemoteWorkSource, *deliveries: Delivery, **more: Any) -> SettleRequest:
    """As this worker would write it, with the seals of its leases."""
    seals = source._seals.of((made.outcome.host, made.outcome.token) for made in deliveries)
    said = {"worker": source._name, "incarnation": "1", "sequence": 7, **more}
    return SettleRequest(deliveries=list(deliveries), seals=seals, **said)


async def next_lease(source: RemoteWorkSource) -> HostLease:
    """Of a host that was just asked: a delivery is dated 10 ms ahead, and until then it rests."""
    async with asyncio.timeout(30):
        while not (leases := await source.lease("", 10, 30.0)):
            await asyncio.sleep(0.005)
    (lease,) = leases
    return lease


def made_at(made: Delivery, at: float) -> Delivery:
    outcome = msgspec.structs.replace(made.outcome, sent_at=at, ended_at=at + 0.01)
    return msgspec.structs.replace(made, outcome=outcome)


def dated(lease: HostLease, at: float, *links: str) -> Delivery:
    made = delivery(lease, lease.tasks[0])
    outcome = msgspec.structs.replace(made.outcome, sent_at=at, ended_at=at + 0.01)
    if links:
        result = msgspec.structs.replace(
            outcome.result, link_batches=pack(discovered(url, depth=2, priority=None) for url in links)
        )
        outcome = msgspec.structs.replace(outcome, result=result)
    return msgspec.structs.replace(made, outcome=outcome)


def test_a_worker_takes_over_another_limit_of_requests_with_its_next_response(tmp_path: Path) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        source = await joined(where)
        told: list[int] = []
        source.take_concurrency = told.append
        change = {"settings": {"fetch.concurrency": 7}}
        answer = await asyncio.to_thread(asked, where, "PATCH", "/v1/settings", change)
        assert answer.json["settings"]["fetch"]["concurrency"] == 7
        await source.lease("", 10, 30.0)
        await source.lease("", 10, 30.0)
        assert told == [7]

    run(tmp_path, use)


@pytest.mark.parametrize("off", [-86_400.0, 0.0, 3_600.0])
def test_a_worker_with_a_wrong_clock_keeps_to_its_lease_and_tells_the_right_times(
    tmp_path: Path, off: float
) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        here = Wrong(services.clock, off)
        source = await joined(where, here)
        before = here.now()
        (lease,) = await source.lease("", 10, 30.0)
        after = here.now()
        assert before + 29.9 < lease.deadline <= after + 30.0
        assert before - 0.1 < lease.not_before <= after + 0.1
        renewed = await source.renew([(lease.host, lease.token)], 30.0)
        assert renewed is not None
        (deadline,) = renewed
        assert deadline is not None
        assert after + 29.9 < deadline <= here.now() + 30.0
        sent = here.now()
        await source.settle([dated(lease, sent)])
        (view,) = await services.frontier.hosts(limit=10)
        # with a delay of 0 the host is ready when its last request was sent, or a little later
        assert sent - off - 0.001 <= view.next_start < sent - off + 5.0

    run(tmp_path, use)


def test_a_batch_that_is_sent_again_is_answered_as_the_first_time(tmp_path: Path) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        source, link = await joined(where), linked(where)
        (lease,) = await source.lease("", 10, 30.0)
        ask = settle_request(source, dated(lease, services.clock.now()))
        answers = [await link.post(SETTLE, msgspec.msgpack.encode(ask)) for _ in range(3)]
        settled = [msgspec.msgpack.decode(answer, type=SettleResponse).settled for answer in answers]
        assert settled == [[Settled.ACCEPTED]] * 3
        again = msgspec.structs.replace(ask, incarnation="2")
        answer = msgspec.msgpack.decode(
            await link.post(SETTLE, msgspec.msgpack.encode(again)), type=SettleResponse
        )
        assert answer.settled == [Settled.STALE]
        stats = await services.frontier.stats()
        assert (stats.fetches, stats.stale_outcomes) == (1, 1)

    run(tmp_path, use)


def test_hosts_that_came_with_an_answer_come_with_it_again(tmp_path: Path) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        source, link = await joined(where), linked(where)
        (lease,) = await source.lease("", 10, 30.0)
        made = dated(lease, services.clock.now() - 1.0)
        ask = settle_request(source, made, capacity=9)
        asks = [ask, msgspec.structs.replace(ask, capacity=0), ask]
        answers = [await link.post(SETTLE, msgspec.msgpack.encode(one)) for one in asks]
        tokens = [msgspec.msgpack.decode(answer, type=SettleResponse).leases[0].token for answer in answers]
        assert len(set(tokens)) == len(await services.frontier.leases(limit=10)) == 1

    run(tmp_path, use)


def test_what_was_fetched_while_the_server_was_away_is_delivered_when_it_is_back(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    log = tmp_path / "log"

    async def main() -> None:
        async with AsyncExitStack() as first:
            where, services = await first.enter_async_context(serving(tmp_path / "crawl", listen))
            source = await joined(where)
            noting = Log(log, SystemClock())
            source.notes = ServerNotes("http://server", "w", noting, lambda _: None, SystemClock())
            (robots,) = await source.lease("", 10, 30.0)
            await source.settle([dated(robots, services.clock.now())])
            lease = await next_lease(source)
        await source.settle([dated(lease, SystemClock().now())])
        assert (source.standing, source.undelivered, source.is_away) == (Standing.PAUSED, 1, True)
        assert await source.lease("", 10, 30.0) == []
        assert await source.renew([(lease.host, lease.token)], 30.0) is None
        async with serving(tmp_path / "crawl", listen) as (_, services):
            while source.is_away:
                await source.beat()
                await asyncio.sleep(0.01)
            assert (source.standing, source.undelivered) == (Standing.OPEN, 0)
            stats = await services.frontier.stats()
            assert stats.pages == 1
        noting.close()

    (tmp_path / "crawl").mkdir()
    run_to_its_end(main())
    assert [word in log.read_text() for word in ("server_away", "server_back")] == [True, True]


def test_what_nobody_took_for_too_long_is_dropped_and_told(tmp_path: Path) -> None:
    class Later(Wrong):
        def __init__(self) -> None:
            super().__init__(SystemClock(), 0.0)

        def pass_by(self, seconds: float) -> None:
            self._off += seconds

    async def main() -> None:
        clock = Later()
        async with serving(tmp_path / "crawl") as (where, _):
            source = RemoteWorkSource(linked(where), clock, "w")
            await source.join()
            (lease,) = await source.lease("", 10, 30.0)
        noting = Log(tmp_path / "log", clock)
        source.notes = ServerNotes("http://server", "w", noting, lambda _: None, clock)
        await source.settle([dated(lease, clock.now())])
        clock.pass_by(60.0)
        await source.beat()
        assert source.undelivered == 1
        clock.pass_by(100.0)
        await source.beat()
        assert source.undelivered == 0
        noting.close()

    (tmp_path / "crawl").mkdir()
    run_to_its_end(main())
    assert "deliveries_dropped" in (tmp_path / "log").read_text()


def test_a_worker_without_anything_to_deliver_notices_that_the_server_is_back_or_goes_on(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        listen = f"127.0.0.1:{free.getsockname()[1]}"

    async def until(source: RemoteWorkSource, standing: Standing) -> None:
        while source.standing is not standing:
            await source.beat()
            await asyncio.sleep(0.01)

    async def main() -> None:
        async with serving(tmp_path, listen) as (where, services):
            source = await joined(where)
            services.committer.is_paused = True
            await source.lease("", 10, 30.0)
            assert source.standing is Standing.PAUSED
            services.committer.is_paused = False
            await until(source, Standing.OPEN)
        await source.lease("", 10, 30.0)
        await until(source, Standing.PAUSED)
        async with serving(tmp_path, listen):
            await until(source, Standing.OPEN)

    run_to_its_end(main())


def test_what_waits_to_be_delivered_keeps_its_lease_and_no_more_is_leased(tmp_path: Path) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        clock = Hasty(services.clock)
        source = await joined(where, clock)
        (robots,) = await source.lease("", 10, 30.0)
        await services.frontier.admit([seed(f"{URL}{number}") for number in range(3)])
        await source.settle([dated(robots, clock.now())])
        lease = await next_lease(source)
        assert len(lease.tasks) > 2
        # More than one batch, and no time for a second one.
        clock.step = 2.0
        first, second = (made_at(delivery(lease, task), clock.now()) for task in lease.tasks[:2])
        await source.settle([first] * 64 + [second])
        assert source.undelivered == 1
        (before,) = await services.frontier.leases(limit=10)
        clock.step = 0.0
        await services.frontier.admit([seed("http://other.test/")])
        source._waiting.extend([(clock.now(), 0, second)] * 256)
        assert await source.lease("", 10, 30.0) == []
        standings = [source.standing]
        source._bytes += 64_000_000
        standings.append(source.standing)
        source._bytes -= 64_000_000
        await source.beat()
        assert [*standings, source.standing] == [Standing.OPEN, Standing.PAUSED, Standing.OPEN]
        (kept,) = await services.frontier.leases(limit=10)
        assert (source.undelivered, kept.tasks) == (0, len(lease.tasks) - 2)
        assert kept.deadline > before.deadline

    run(tmp_path, use)


def test_a_server_that_was_started_anew_sees_the_gaps_that_there_were(tmp_path: Path) -> None:
    """The first answer of the last one took long: its clock could be ahead of ours by as much. That of the new
    one comes at once; of two requests of a lease one is told to each."""

    async def use(where: str, services: CrawlServices) -> None:
        source = await joined(where)
        (lease,) = await source.lease("", 10, 30.0)
        source._server, source._offset = "the last one", source._offset + 0.4
        before = source._offset
        await source.settle([dated(lease, services.clock.now() - 1.0)])
        assert (source.undelivered, source._offset) == (0, before)

    run(tmp_path, use)


def test_a_server_whose_first_answer_took_long_is_asked_again_before_anything_is_dated(
    tmp_path: Path,
) -> None:
    """It was stopped, or busy: its clock may be as much behind what the answer says."""

    async def use(where: str, services: CrawlServices) -> None:
        clock = Hasty(services.clock)
        source = await joined(where, clock)
        (lease,) = await source.lease("", 10, 30.0)
        source._server, source._offset = "the last one", 7200.0
        clock.step = 12.0
        await source.renew([(lease.host, lease.token)], 30.0)
        clock.step = 0.0
        right = services.clock.now() - clock.now()
        assert right + 5.0 < source._offset < right + 60.0
        sent = clock.now()
        await source.settle([dated(lease, sent)])
        assert source.undelivered == 0
        assert right - 0.001 <= source._offset < right + 5.0
        (view,) = await services.frontier.hosts(limit=10)
        assert view.next_start < sent + right + 5.0

    run(tmp_path, use)


def test_the_clock_of_a_server_that_was_slow_when_it_was_joined_is_known_from_its_next_answer(
    tmp_path: Path,
) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        clock = Hasty(services.clock)
        clock.step = 12.0
        source = await joined(where, clock)
        clock.step = 0.0
        right = services.clock.now() - clock.now()
        assert source._offset > right + 5.0
        await source.lease("", 10, 30.0)
        assert right - 0.001 <= source._offset < right + 5.0

    run(tmp_path, use)


def test_a_server_that_was_started_anew_and_slow_sees_the_gaps_that_there_were(tmp_path: Path) -> None:
    """As one that answers at once: the bound of the last one's clock holds for its own."""

    async def use(where: str, services: CrawlServices) -> None:
        clock = Hasty(services.clock)
        source = await joined(where, clock)
        (lease,) = await source.lease("", 10, 30.0)
        source._server = "the last one"
        clock.step = 12.0
        await source.renew([(lease.host, lease.token)], 30.0)
        clock.step = 0.0
        source._former = before = services.clock.now() - clock.now() + 0.4
        await source.settle([dated(lease, clock.now() - 1.0)])
        assert (source.undelivered, source._offset) == (0, before)

    run(tmp_path, use)


def test_a_server_that_was_started_anew_gets_times_by_its_own_clock(tmp_path: Path) -> None:
    """The last one's may have been hours ahead, and a host that was asked in the future waits until then."""

    async def use(where: str, services: CrawlServices) -> None:
        source = await joined(where)
        (lease,) = await source.lease("", 10, 30.0)
        sent = services.clock.now()
        source._server, source._offset = "the last one", 7200.0
        await source.settle([dated(lease, sent)])
        assert source.undelivered == 0
        (view,) = await services.frontier.hosts(limit=10)
        assert view.next_start < sent + 5.0

    run(tmp_path, use)


def test_links_that_a_page_of_the_same_host_told_of_do_not_cross_the_wire_again(tmp_path: Path) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        source = await joined(where)
        (robots,) = await source.lease("", 10, 30.0)
        await source.settle([dated(robots, services.clock.now())])
        own, elsewhere = [f"{URL}{number}" for number in range(5)], ["http://b.test/", "http://c.test/"]
        for saved in (0, 5):
            lease = await next_lease(source)
            await source.settle([dated(lease, services.clock.now(), *own, *elsewhere)])
            assert source.sent_links.saved == saved
            await source.release([(lease.host, lease.token)])
        stats = await services.frontier.stats()
        assert stats.urls["queued"] == 4
        source.sent_links.forget()

    run(tmp_path, use)


def test_a_unix_socket_is_joined_as_well_and_nobody_elses(tmp_path: Path) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        source = await joined(where)
        assert len(await source.lease("", 10, 30.0)) == 1
        assert (tmp_path / "s").stat().st_mode & 0o777 == 0o600

    run(tmp_path, use, f"unix:{tmp_path / 's'}")


def test_a_token_that_does_not_allow_it_is_the_users_fault(tmp_path: Path) -> None:
    async def main() -> None:
        tokens = Access([(Role.TRUSTED_WORKER, "t" * 20), (Role.WORKER, "w" * 20), (Role.READ, "r" * 20)])
        async with serving(tmp_path, tokens=tokens) as (where, _):
            assert await RemoteWorkSource(linked(where, "t" * 20), SystemClock(), "w").join() == LEASED
            for token in ("", "r" * 20, "w" * 20, "nonsense"):
                with pytest.raises(UsageError, match="refuses the token"):
                    await RemoteWorkSource(linked(where, token), SystemClock(), "w").join()

    run_to_its_end(main())


def test_garbage_is_refused_and_harms_nobody(tmp_path: Path) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        link = linked(where)
        for body in (b"", b"\xc1", b"\x80", b"\xff" * 100, msgspec.msgpack.encode({"worker": "w"})):
            with pytest.raises(Refused) as refused:
                await link.post(SETTLE, body)
            assert refused.value.status in (400, 422)
        assert len(await (await joined(where)).lease("", 10, 30.0)) == 1

    run(tmp_path, use)


@pytest.mark.parametrize("where", ["", "ftp://x", "127.0.0.1:8600", "http://"])
def test_a_server_is_named_as_a_url(where: str) -> None:
    with pytest.raises(UsageError, match="no server to join"):
        HttpLink(where)


@pytest.mark.parametrize("said", [b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx"])
def test_a_server_that_is_none_is_away(said: bytes) -> None:
    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(said)
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(Away):
                await linked(f"http://127.0.0.1:{port}").post("/", b"x")

    run_to_its_end(main())


def test_a_link_that_another_worker_told_is_known_and_counted_as_such(tmp_path: Path) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        first, second = await joined(where), await joined(where)
        await first.settle([dated(await next_lease(first), services.clock.now())])  # robots.txt
        watch = Watching(services)
        await first.settle([dated(await next_lease(first), services.clock.now(), "http://a.test/new")])
        await first.leave()
        told = ("http://a.test/new", "http://a.test/newer")
        await second.settle([dated(await next_lease(second), services.clock.now(), *told)])
        assert watch.links == [("http://a.test/new",), told]
        assert watch.counts == [(1, 0), (1, 1)]

    run(tmp_path, use)


def test_links_that_are_none_are_refused_and_their_sender_is_told(tmp_path: Path) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        source, link = await joined(where), linked(where)
        made = dated(await next_lease(source), services.clock.now())
        broken = LinkBatch(b"short", URL, 1)
        result = Fetched(status=200, link_batches=(broken,))
        made = msgspec.structs.replace(made, outcome=msgspec.structs.replace(made.outcome, result=result))
        ask = settle_request(source, made)
        answer = await link.post(SETTLE, msgspec.msgpack.encode(ask))
        taken = msgspec.msgpack.decode(answer, type=SettleResponse)
        assert taken.settled == [Settled.STALE]
        assert taken.refused == {0: "its result is not of its kind of task"}
        assert (await services.frontier.stats()).fetches == 0

    run(tmp_path, use)


def test_a_fingerprint_that_is_none_is_refused_and_the_desk_goes_on(tmp_path: Path) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        source, link = await joined(where), linked(where)
        await source.settle([dated(await next_lease(source), services.clock.now())])  # robots.txt
        made = dated(await next_lease(source), services.clock.now())
        result = Fetched(status=200, simhash=-1)
        broken = msgspec.structs.replace(made, outcome=msgspec.structs.replace(made.outcome, result=result))
        ask = settle_request(source, broken)
        with pytest.raises(Refused, match="422"):
            await link.post(SETTLE, msgspec.msgpack.encode(ask))
        await source.settle([made])
        assert (await services.frontier.stats()).fetches == 2

    run(tmp_path, use)


def test_hosts_that_a_settle_frees_come_with_its_answer(tmp_path: Path) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        source, leases = await joined(where), Watching(services).leases
        (robots,) = await source.lease("", 10, 30.0)
        await source.settle([dated(robots, services.clock.now() - 1.0)])
        assert leases == [1, 1]
        await source.beat()
        (lease,) = await source.lease("", 10, 30.0)
        assert (lease.host, leases) == (robots.host, [1, 1])
        assert lease.deadline > robots.deadline
        await source.settle([dated(lease, services.clock.now() - 1.0)])
        assert await source.lease("", 10, 30.0) == []

    run(tmp_path, use)


def test_hosts_that_came_with_an_answer_and_are_not_wanted_are_given_back(tmp_path: Path) -> None:
    """By the second pulse, or when the loop has ended: it drained meanwhile, or was told to wait."""

    async def use(where: str, services: CrawlServices) -> None:
        source = await joined(where)
        (robots,) = await source.lease("", 10, 30.0)
        await source.settle([dated(robots, services.clock.now() - 1.0)])
        await source.beat()
        held = [len(await services.frontier.leases(limit=10))]
        await source.beat()
        held.append(len(await services.frontier.leases(limit=10)))
        (lease,) = await source.lease("", 10, 30.0)
        await source.settle([dated(lease, services.clock.now() - 1.0, f"{URL}1")])
        held.append(len(await services.frontier.leases(limit=10)))
        await source.leave()
        held.append(len(await services.frontier.leases(limit=10)))
        assert held == [1, 0, 1, 0]

    run(tmp_path, use)


def test_pages_with_thousands_of_links_are_committed_one_by_one(tmp_path: Path) -> None:
    """So that who asks for hosts does not wait for all of them."""

    async def use(where: str, services: CrawlServices) -> None:
        source, watch = await joined(where), Watching(services)
        (robots,) = await source.lease("", 10, 30.0)
        await services.frontier.admit([seed(f"{URL}{number}") for number in range(3)])
        await source.settle([dated(robots, services.clock.now() - 1.0)])
        (lease,) = await source.lease("", 10, 30.0)
        plain, *long = (
            dated(msgspec.structs.replace(lease, tasks=(task,)), services.clock.now()) for task in lease.tasks
        )
        links = tuple(discovered(f"{URL}a/{number}") for number in range(2_000))
        assert len(long) > 1
        filled = [with_links(made, links) for made in long]
        await source.settle([plain, *filled])
        assert watch.commits == [1, 2, *([1] * (len(long) - 1))]

    run(tmp_path, use)


def test_who_holds_no_host_is_given_those_that_its_first_page_frees_before_the_next_is_taken(
    tmp_path: Path,
) -> None:
    """Two indexes with thousands of links: a worker idled until the committer had admitted all of both."""
    links = tuple(discovered(f"{URL}a/{number}") for number in range(4_000))

    async def use(where: str, services: CrawlServices) -> None:
        await services.frontier.admit([seed(OTHER)])
        source, watch = await joined(where), Watching(services)
        await source.settle(
            [dated(lease, services.clock.now() - 1.0) for lease in await source.lease("", 10, 30.0)]
        )
        pages = [dated(lease, services.clock.now() - 1.0) for lease in await source.lease("", 10, 30.0)]
        assert len(pages) == 2
        first, second = (with_links(made, links) for made in pages)
        watch.commits.clear()
        await source.settle([first, second])
        await source.beat()
        assert (watch.commits, source.undelivered) == ([1], 1)
        assert [lease.host for lease in await source.lease("", 10, 30.0)] == [first.outcome.host]
        source.held = lambda: 1
        await source.beat()
        assert (watch.commits, source.undelivered) == ([1, 1], 0)

    run(tmp_path, use)


def test_who_does_not_want_hosts_delivers_all_the_same(tmp_path: Path) -> None:
    """It was told to stop after it had asked for them: they go back, and the rest is delivered."""
    links = tuple(discovered(f"{URL}a/{number}") for number in range(4_000))

    async def use(where: str, services: CrawlServices) -> None:
        await services.frontier.admit([seed(OTHER)])
        source = await joined(where)
        await source.settle(
            [dated(lease, services.clock.now() - 1.0) for lease in await source.lease("", 10, 30.0)]
        )
        pages = [dated(lease, services.clock.now() - 1.0) for lease in await source.lease("", 10, 30.0)]
        await source.settle([with_links(made, links) for made in pages])
        for _ in range(2):
            await source.beat()
        assert source.undelivered == 0
        assert await services.frontier.leases(limit=10) == []

    run(tmp_path, use)


def with_links(made: Delivery, links: tuple[Discovered, ...]) -> Delivery:
    result = msgspec.structs.replace(made.outcome.result, link_batches=pack(links))
    return msgspec.structs.replace(made, outcome=msgspec.structs.replace(made.outcome, result=result))


def test_who_holds_more_hosts_than_one_that_went_short_leaves_it_those_that_become_free(
    tmp_path: Path,
) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        rich, poor = await joined(where), await joined(where, name="worker-2")
        rich.held = lambda: 10
        (robots,) = await rich.lease("", 10, 30.0)
        assert await poor.lease("", 10, 30.0) == []
        await rich.settle([dated(robots, services.clock.now() - 1.0)])
        assert (await rich.lease("", 10, 30.0), await services.frontier.leases(limit=10)) == ([], [])
        assert (await rich.lease("", 10, 30.0), await services.frontier.leases(limit=10)) == ([], [])
        (lease,) = await poor.lease("", 1, 30.0)
        await poor.release([(lease.host, lease.token)])
        assert len(await rich.lease("", 10, 30.0)) == 1, "the other has all that it asked for"

    run(tmp_path, use)


def test_who_went_short_and_was_not_heard_since_keeps_nobody_waiting(tmp_path: Path) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        rich, poor = await joined(where), await joined(where, name="worker-2")
        rich.held = lambda: 10
        (robots,) = await rich.lease("", 10, 30.0)
        assert await poor.lease("", 10, 30.0) == []
        await rich.settle([dated(robots, services.clock.now() - 1.0)])
        async with asyncio.timeout(20):
            while not await rich.lease("", 10, 30.0):
                await asyncio.sleep(0.1)

    run(tmp_path, use)


def test_who_did_not_ask_lately_is_given_no_hosts_with_an_answer(tmp_path: Path) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        source = await joined(where)
        (robots,) = await source.lease("", 10, 30.0)
        await source.beat()
        await source.settle([dated(robots, services.clock.now() - 1.0)])
        assert await services.frontier.leases(limit=10) == []

    run(tmp_path, use)


class Watching:
    """A witness of what reaches the frontier, and of what it says to it."""

    def __init__(self, services: CrawlServices) -> None:
        self.links: list[tuple[str, ...]] = []
        self.counts: list[tuple[int, int]] = []
        self.leases: list[int] = []
        self.commits: list[int] = []
        services.frontier.attend(self)

    def leased(self, worker: str, leases: int, now: float) -> None:
        self.leases.append(leases)

    def settled(self, outcomes: Sequence[Outcome], settlements: Sequence[Settlement], now: float) -> None:
        self.commits.append(len(outcomes))
        for outcome, settlement in zip(outcomes, settlements, strict=True):
            if not isinstance(outcome.result, Fetched):
                continue
            self.links.append(tuple(link.url for link in unpack(outcome.result.link_batches)))
            self.counts.append((settlement.added, settlement.known))

    def syncing(self) -> None: ...

    def synced(self) -> None: ...
